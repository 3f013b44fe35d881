import { readFileSync } from 'node:fs'
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
