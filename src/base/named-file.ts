import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { EngineError, messageOf } from './errors.ts'

/**
 * The file that a configuration key names.
 * @throws EngineError `CONFIG_INVALID` where it is missing or cannot be read, `TOO_MANY_FILES`.
 */
export function readNamedFile(key: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    refuseTooManyFiles(cause, path)
    throw new EngineError('CONFIG_INVALID', `${key} cannot be read: ${messageOf(cause)}`, { cause })
  }
}

/**
 * Whoever opens a file asks this of a failure first: nothing is wrong with the name of the file then.
 * @throws EngineError `TOO_MANY_FILES` where the process or the machine has no descriptor left.
 */
export function refuseTooManyFiles(cause: unknown, path: string): void {
  const found = /EMFILE|ENFILE|too many open files( in system)?/i.exec(messageOf(cause))
  if (found === null) return
  const ofMachine = found[0] === 'ENFILE' || found[1] !== undefined
  const who = ofMachine ? 'the machine has' : 'this process has'
  throw new EngineError(
    'TOO_MANY_FILES',
    `${path} could not be opened, because ${who} as many files open as it may (${ofMachine ? 'ENFILE' : 'EMFILE'}): raise the limit (\`ulimit -n\`), then start the process again.`,
    { cause },
  )
}

/**
 * Whether a folder, or where it is missing the one that it would be made in, lies on a file system that takes no writes.
 * To be asked once writing has failed: Node says then that a folder is missing, and SQLite that a file cannot be opened.
 */
export function isOnReadOnlyFileSystem(folder: string): boolean {
  let existing = folder
  while (!existsSync(existing) && dirname(existing) !== existing) existing = dirname(existing)
  try {
    accessSync(existing, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}
