/**
 * Keeps a second process out of a folder. The lock is the operating system's, taken through SQLite's exclusive mode (the
 * platform offers file locks nowhere else): it goes with its holder, however that one ends.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { BrokerError } from '../port.ts'
import { damagedFile } from './files/damage.ts'

const busy = 5
const notADatabase = 26

/** Answers the function that gives the folder free again. */
export function lockFolder(folder: string): () => void {
  const database = lockedIn(folder)
  writeFileSync(join(folder, 'owner'), String(process.pid))
  return () => {
    database.close()
  }
}

/**
 * As `lockFolder`, of a folder where nothing can be written. It may be another process's view of one that is in use: then the
 * lock is there, and taken.
 */
export function lockReadOnly(folder: string): () => void {
  const database = existsSync(join(folder, 'lock')) ? lockedIn(folder) : undefined
  return () => {
    database?.close()
  }
}

function lockedIn(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, 'lock'), { timeout: 0 })
  try {
    database.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return database
  } catch (cause) {
    database.close()
    const { errcode } = cause as { readonly errcode?: unknown }
    if (errcode === notADatabase) {
      const why = "it holds something else than the broker's lock, of which nothing is lost if it is deleted"
      throw damagedFile(folder, { path: join(folder, 'lock'), at: 0, why })
    }
    if (errcode !== busy) throw cause
    throw new BrokerError(
      'STORAGE_LOCKED',
      `The embedded broker's folder ${folder} is in use by ${ownerIn(join(folder, 'owner'))}: end that one, or give this one a folder of its own.`,
      'config',
      cause,
    )
  }
}

function ownerIn(file: string): string {
  try {
    return `the process ${readFileSync(file, 'utf8').trim()}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'another process'
    throw error
  }
}
