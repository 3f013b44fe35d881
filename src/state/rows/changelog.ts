/** Changelog topics: their names, their settings, and the way of a record back into a store. */
import { unreachable } from '../../base/assert.ts'
import { EngineError } from '../../base/errors.ts'
import type { ByteChange, StoreSpec } from '../contract.ts'
import { readInt64 } from '../../serde/primitive.ts'
import { backendKey, segmentPrefix, sessionSuffix, versionSuffix, windowSuffix } from './layout.ts'
import { backendValue, rowForm } from './row.ts'

export function changelogTopic(applicationId: string, spec: Pick<StoreSpec, 'name' | 'changelogTopic'>): string {
  return spec.changelogTopic ?? `${applicationId}-${spec.name}-changelog`
}

/** What a changelog keeps beyond the store's own retention, for a store that comes back late (Kafka Streams' default). */
const slackMs = 86_400_000

/** How long compaction leaves a deletion to be read: a store that comes back sooner hears of it. */
export const deleteRetentionMs = 86_400_000

/** Settings with which a changelog topic is made, by Kafka's names. */
export function changelogConfig(spec: Pick<StoreSpec, 'kind' | 'retentionMs'>): Readonly<Record<string, string>> {
  // The timestamps are those of the data: a broker that checked them against its clock would refuse a replay.
  const common = { 'message.timestamp.type': 'CreateTime', 'delete.retention.ms': String(deleteRetentionMs) }
  const retention = spec.retentionMs
  switch (spec.kind) {
    case 'key-value':
    case 'window':
    case 'session':
      // Kafka Streams also lets the broker delete windows by time. The broker compares the records' timestamps with its own
      // clock: data from the past would be gone before it is needed. The store writes a tombstone for each window instead.
      return { ...common, 'cleanup.policy': 'compact' }
    case 'versioned':
      // Older versions share their key with the newest one: compaction must leave them alone while they are history. As in
      // Kafka Streams. The broker counts from the records' timestamps: of events older than the lag only the newest
      // version of a key may survive compaction, and so a store that is rebuilt from it.
      return {
        ...common,
        'cleanup.policy': 'compact',
        'min.compaction.lag.ms': String((retention ?? 0) + slackMs),
      }
    default:
      return unreachable(spec.kind, 'store kind')
  }
}

export interface ChangelogRecord {
  readonly key: Uint8Array | null
  readonly value: Uint8Array | null
  readonly timestamp: number
}

/** The changelog record of a row as the backend has it: what `restoreEntry` makes that row of. */
export function changelogRecord(
  spec: StoreSpec,
  at: Uint8Array,
  row: Uint8Array,
): ChangelogRecord & { readonly key: Uint8Array } {
  const form = rowForm(spec)
  if (form === 'versioned') {
    const end = at.length - versionSuffix
    return { key: at.subarray(0, end), value: row[0] === 0 ? null : row.subarray(1), timestamp: readInt64(at, end) }
  }
  const key = spec.kind === 'window' ? at.subarray(segmentPrefix) : at
  if (form === 'stamped') return { key, value: row.subarray(8), timestamp: readInt64(row, 0) }
  const time = spec.kind === 'window' ? key.length - windowSuffix : key.length - sessionSuffix
  return { key, value: row, timestamp: spec.kind === 'key-value' ? 0 : readInt64(key, time) }
}

/**
 * One change in the form of the backend, made of a changelog record; what `StoreLifecycle.restore` takes. The bytes of
 * the result may be those of the record.
 */
export function restoreEntry(spec: StoreSpec, record: ChangelogRecord): ByteChange {
  const { key, value, timestamp } = record
  const least = spec.kind === 'window' ? windowSuffix : spec.kind === 'session' ? sessionSuffix : 0
  if (key === null || key.length < least) {
    throw new EngineError(
      'STORE_CORRUPT',
      `The changelog of the store '${spec.name}' holds a record whose key is ${key === null ? 'null' : `${key.length} bytes long`}: ` +
        'it was not written by this store. Give the store a name of its own.',
    )
  }
  const form = rowForm(spec)
  const at = backendKey(spec, key, timestamp)
  if (value !== null) return [at, backendValue(form, value, timestamp)]
  return [at, form === 'versioned' ? Uint8Array.of(0) : null]
}
