import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { type ForeignRows, restoreInto } from '../../../src/lanes/stores/restore.ts'
import type { StoreBackend, StoreLifecycle, StoreSpec } from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { RecordBatchBuilder, setBaseOffset } from '../../../src/broker/wire/record-batch.ts'
import { checkpointAt } from '../state/backend-suite.ts'
import { open, specOf } from '../state/store-suite.ts'

interface Change {
  readonly key: number
  readonly value: number | null
  readonly timestamp: number
}

const changes: fc.Arbitrary<Change[]> = fc.array(
  fc.record({
    key: fc.integer({ min: 0, max: 4 }),
    value: fc.option(fc.nat({ max: 9 })),
    timestamp: fc.integer({ min: 0, max: 3 }),
  }),
  { maxLength: 40 },
)

const kinds: ReadonlyArray<readonly [string, Partial<StoreSpec>]> = [
  ['plain rows', { kind: 'key-value' }],
  ['rows with timestamps', { kind: 'key-value', timestamped: true }],
  ['windows', { kind: 'window', windowSizeMs: 10, retentionMs: 1000 }],
  ['versions', { kind: 'versioned', retentionMs: 1000 }],
]

/** A window's key ends in its start and a sequence number; for the others it is a key as any. */
function keyOf(key: number): Uint8Array {
  return Uint8Array.of(65 + key, 0, 0, 0, 0, 0, 0, 0, key * 10, 0, 0, 0, 0)
}

function batchOf(all: readonly Change[], offset: number): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (const { key, value, timestamp } of all) {
    builder.append(timestamp, keyOf(key), value === null ? null : Uint8Array.of(value, 0, 0, 0), [])
  }
  const batch = builder.finish()
  setBaseOffset(batch, offset)
  return batch
}

function restored(
  spec: StoreSpec,
  runs: ReadonlyArray<readonly Change[]>,
  foreign?: ForeignRows,
): { rows: string[]; count: number } {
  const backend: StoreBackend = new MemoryBackend()
  const store = open<StoreLifecycle>(spec, backend)
  let offset = 0
  let count = 0
  for (const run of runs) {
    const records = run.length === 0 ? new Uint8Array(0) : batchOf(run, offset)
    const untilOffset = offset + run.length
    const part = { records, fromOffset: offset, untilOffset, aborted: [], checkpoint: checkpointAt(1) }
    count += restoreInto(store, part, foreign)
    offset = untilOffset
  }
  return {
    rows: [...backend.range(undefined, undefined)].map(
      ([key, value]) => `${Buffer.from(key).toString('hex')}=${value}`,
    ),
    count,
  }
}

describe('restoring a changelog', () => {
  for (const [name, fields] of kinds) {
    test(`${name}: a run at once is the same as record by record, and every record counts`, () => {
      const spec = specOf(fields)
      fc.assert(
        fc.property(changes, (all) => {
          const oneByOne = restored(
            spec,
            all.map((change) => [change]),
          )
          assert.deepEqual(restored(spec, [all]), oneByOne)
          assert.equal(oneByOne.count, all.length)
        }),
      )
    })
  }

  test('of records that somebody else wrote a run at once is the same as record by record', () => {
    // Two keys mean the same one, and some records are nothing to the store.
    const foreign: ForeignRows = {
      check: () => undefined,
      rowOf: ({ bytes, keyStart, valueStart, timestamp }) => {
        const value = valueStart < 0 ? null : bytes.slice(valueStart, valueStart + 4)
        if (value !== null && (value[0] as number) > 6) return undefined
        return { key: Uint8Array.of((bytes[keyStart] as number) & 0xfe), value, timestamp }
      },
    }
    const spec = specOf({ kind: 'key-value', timestamped: true })
    fc.assert(
      fc.property(changes, (all) => {
        const oneByOne = restored(
          spec,
          all.map((change) => [change]),
          foreign,
        )
        assert.deepEqual(restored(spec, [all], foreign), oneByOne)
        assert.equal(oneByOne.count, all.length)
      }),
    )
  })
})
