/** A disk without room: nothing is wrong with what lies on it, and whoever waits can go on. */
import { statfsSync } from 'node:fs'
import { EngineError, messageOf } from '../../base/errors.ts'

const noRoom = /ENOSPC|EDQUOT|No space left on device|Disk quota exceeded/i
/** What LMDB says where less was written than it asked for, or where it could not say afterwards what is there. */
const cutShort = /Input\/output error|MDB_PANIC/
/** Most bytes that LMDB writes with one call, with room to spare. */
const leastFreeBytes = 4 * 1024 * 1024
/** Most bytes that opening takes. */
const leastOpenBytes = 256 * 1024

/** Whether a write to a file of this folder failed for want of room. */
export function isDiskFull(error: unknown, folder: string): boolean {
  const message = messageOf(error)
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ENOSPC' || code === 'EDQUOT' || noRoom.test(message)) return true
  return cutShort.test(message) && freeBytes(folder) < leastFreeBytes
}

export function diskFull(store: string, folder: string, cause: unknown): EngineError {
  return new EngineError(
    'STORE_DISK_FULL',
    `The disk has no room for the store ${store} in ${folder} (${howFull(cause, folder)}): ` +
      'the engine takes in no more records until there is free space; enlarge the volume, and delete no file of a store.',
    { cause },
  )
}

/** A write that was cut short says something of input and output alone. */
function howFull(cause: unknown, folder: string): string {
  const message = messageOf(cause)
  return cutShort.test(message)
    ? `${Math.floor(freeBytes(folder) / 1024)} KiB are free; a write was cut short: ${message}`
    : message
}

/**
 * Before files are opened: LMDB maps the file of its locks, and the system ends a process that writes to a mapped page for
 * which the disk has no room.
 */
export function refuseWithoutRoom(store: string, folder: string): void {
  const free = freeBytes(folder)
  if (free >= leastOpenBytes) return
  throw diskFull(store, folder, new EngineError('STORE_DISK_FULL', `${free} bytes are free`))
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    // Where nobody can say, the error is taken for what it says.
    return Number.POSITIVE_INFINITY
  }
}
