/**
 * Keeps two processes out of one state folder. The lock is the operating system's, taken through SQLite's exclusive
 * mode (the platform offers file locks nowhere else): it goes with its holder, however that one ends, so there are no
 * stale locks to judge, also between containers in which all processes have the same number.
 */
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { EngineError, messageOf } from '../../base/errors.ts'
import { isOnReadOnlyFileSystem, refuseTooManyFiles } from '../../base/named-file.ts'
import { stateFolder } from '../backends.ts'

export interface StateLock {
  release(): void
}

/** Locks that are held: one that nobody refers to would be let go by the garbage collector. */
const held = new Set<DatabaseSync>()

/**
 * Taken once per process, before any store is opened.
 *
 * @throws EngineError `STORE_LOCKED` where another process holds it.
 */
export function lockStateFolder(dir: string, applicationId: string): StateLock {
  const folder = stateFolder(dir, applicationId)
  const owner = join(folder, 'owner')
  let database: DatabaseSync | undefined
  try {
    mkdirSync(folder, { recursive: true })
    database = new DatabaseSync(join(folder, 'lock'), { timeout: 0 })
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (cause) {
    database?.close()
    if ((cause as { errcode?: unknown }).errcode === 5) {
      throw new EngineError(
        'STORE_LOCKED',
        `The state folder ${folder} is in use by ${ownerIn(owner)}. Give this process another 'engine.state.dir', or end the other one.`,
        { cause },
      )
    }
    refuseTooManyFiles(whyClosed(cause, folder), folder)
    const why = isOnReadOnlyFileSystem(folder)
      ? "its file system is read-only. Mount a volume there that can be written to, or name a folder of one as 'engine.state.dir'"
      : messageOf(cause)
    throw new EngineError('CONFIG_INVALID', `The state folder ${folder} cannot be used: ${why}.`, { cause })
  }
  writeFileSync(owner, String(process.pid))
  const lock = database
  held.add(lock)
  return {
    release(): void {
      if (held.delete(lock)) lock.close()
    },
  }
}

/** SQLite says that it could not open a file, and not why. */
function whyClosed(cause: unknown, folder: string): unknown {
  try {
    closeSync(openSync(folder, 'r'))
    return cause
  } catch (error) {
    return error
  }
}

function ownerIn(file: string): string {
  try {
    return `the process ${readFileSync(file, 'utf8').trim()}`
  } catch {
    return 'another process'
  }
}
