/**
 * Changelog records back into a store. Of a key that a run tells of several times only its last word is taken: what it
 * was before is neither cut out nor written, and a changelog that was not compacted yet is mostly that.
 */
import type { AbortedRange as AbortedTransaction } from '../../broker/wire/record-batch.ts'
import { RecordCursor } from '../../broker/wire/record-batch.ts'
import { keyString, textOfBytes } from '../../state/rows/bytes.ts'
import { type ChangelogRecord, restoreEntry } from '../../state/rows/changelog.ts'
import type { ByteChange, Checkpoint, StoreLifecycle } from '../../state/contract.ts'

export interface ChangelogRun {
  readonly records: Uint8Array
  readonly fromOffset: number
  /** Records from this offset on are left out. */
  readonly untilOffset: number
  readonly aborted: readonly AbortedTransaction[]
  readonly checkpoint: Checkpoint
}

type Field = 'bytes' | 'keyStart' | 'keyEnd' | 'valueStart' | 'valueEnd' | 'timestamp' | 'offset'

/** A record of a changelog, where it lies. */
export interface Place extends Readonly<Pick<RecordCursor, Field>> {
  /** The one before it with the same bytes for a key, where a record may turn out to be none of the store's. */
  readonly before?: Place | undefined
}

/** For a changelog that the store did not write itself. */
export interface ForeignRows {
  /** Throws at a key that the topic must not have in this partition. */
  check(place: Place): void
  /** What the store would have written of the record; undefined: nothing. */
  rowOf(place: Place): (ChangelogRecord & { readonly key: Uint8Array }) | undefined
}

/** Records read. One run of record batches goes in as one atomic step with its checkpoint; where something throws, nothing does. */
export function restoreInto(store: StoreLifecycle, run: ChangelogRun, foreign?: ForeignRows): number {
  const { records, fromOffset, untilOffset, aborted, checkpoint } = run
  // The engine's thread has been through the batches and verified them.
  const cursor = new RecordCursor({ verifyChecksums: false })
  cursor.reset(records, fromOffset, aborted, 'read_committed')
  const newest = new Map<string, Place>()
  // Versions of one key are rows of their own.
  const versioned = store.spec.kind === 'versioned'
  let count = 0
  while (cursor.next()) {
    if (cursor.offset >= untilOffset) break
    const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp, offset } = cursor
    if (keyStart < 0) continue
    count++
    const text = textOfBytes(bytes, keyStart, keyEnd)
    const name = versioned ? `${text}@${timestamp}` : text
    const before = foreign === undefined ? undefined : newest.get(name)
    if (before === undefined) foreign?.check(cursor)
    newest.set(name, { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp, offset, before })
  }
  const changes: ByteChange[] = []
  const rows = foreign === undefined ? ownRows(newest.values()) : foreignRows(newest.values(), foreign)
  for (const row of rows) changes.push(restoreEntry(store.spec, row))
  store.restore(changes, checkpoint)
  return count
}

function* ownRows(places: Iterable<Place>): Iterable<ChangelogRecord> {
  for (const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp } of places) {
    const value = valueStart < 0 ? null : bytes.slice(valueStart, valueEnd)
    yield { key: bytes.slice(keyStart, keyEnd), value, timestamp }
  }
}

/** Keys of different bytes may mean the same one. */
function foreignRows(places: Iterable<Place>, foreign: ForeignRows): Iterable<ChangelogRecord> {
  const rows = new Map<string, ChangelogRecord>()
  const offsets = new Map<string, number>()
  for (const last of places) {
    for (let place: Place | undefined = last; place !== undefined; place = place.before) {
      const row = foreign.rowOf(place)
      if (row === undefined) continue
      const name = keyString(row.key)
      if ((offsets.get(name) ?? -1) < place.offset) {
        rows.set(name, row)
        offsets.set(name, place.offset)
      }
      break
    }
  }
  return rows.values()
}
