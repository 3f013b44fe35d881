import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { BlockWriter, eachRow, splitAt, valueIn } from '../../../src/state/backends/block.ts'
import { writeKeyString } from '../../../src/state/rows/bytes.ts'
import type { HashedRows, StoreBackend, StoreLifecycle, TimestampedKeyValueStore } from '../../../src/state/contract.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { backendSuite, checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

type Texts = TimestampedKeyValueStore<string, string> & StoreLifecycle
type Change = readonly [key: string, value: string | null]

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

/** Few hashes, so that keys share them. */
const hashOf = (key: string): number => (key.charCodeAt(0) % 5) * 1_000_000_007

function rowsOf(changes: readonly Change[]): HashedRows {
  const sorted = [...changes].sort(([a], [b]) => hashOf(a) - hashOf(b))
  const at = (place: number): Change => sorted[place] as Change
  return {
    hashes: Uint32Array.from(sorted, ([key]) => hashOf(key)),
    keyLength: (place) => at(place)[0].length,
    writeKey: (place, target, from) => writeKeyString(at(place)[0], target, from),
    value: (place) => {
      const value = at(place)[1]
      return value === null ? null : Buffer.from(value, 'latin1')
    },
    touch: () => undefined,
  }
}

test('a block has the rows that were merged into it, each once, and can be divided', () => {
  const someKey = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'b', 'ÿ'), minLength: 1, maxLength: 3 }),
    fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 600 }),
  )
  const someValue = fc.oneof(fc.string({ unit: 'binary-ascii', maxLength: 5 }), fc.constant('x'.repeat(300)))
  const changes = fc.uniqueArray(fc.tuple(someKey, fc.option(someValue)), { selector: ([key]) => key, maxLength: 30 })
  fc.assert(
    fc.property(fc.array(changes, { maxLength: 6 }), fc.nat(2 ** 32 - 1), (merges, hash) => {
      const writer = new BlockWriter()
      const model = new Map<string, string>()
      let block: Uint8Array | undefined
      let count = 0
      for (const merge of merges) {
        const rows = rowsOf(merge)
        writer.merge(block, block?.length ?? 0, rows, 0, rows.hashes.length)
        block = writer.length === 0 ? undefined : writer.bytes.slice(0, writer.length)
        count += writer.added
        for (const [key, value] of merge) {
          if (value === null) model.delete(key)
          else model.set(key, value)
        }
        assert.equal(count, model.size)
      }
      const bytes = block ?? new Uint8Array(0)
      const found: Array<readonly [string, string]> = []
      eachRow(bytes, bytes.length, (key, value) => found.push([text(key), text(value)]))
      assert.deepEqual(new Map(found), model)
      assert.equal(found.length, model.size)
      for (const [key, value] of model) {
        assert.equal(text(valueIn(bytes, bytes.length, hashOf(key), key) as Uint8Array), value)
      }
      assert.equal(valueIn(bytes, bytes.length, hashOf('z'), 'zzzz'), undefined)
      const at = splitAt(bytes, bytes.length, hash)
      const lower: string[] = []
      eachRow(bytes.subarray(0, at), at, (key) => lower.push(text(key)))
      assert.deepEqual(new Set(lower), new Set([...model.keys()].filter((key) => hashOf(key) < hash)))
    }),
  )
})

test('a block that ends within a row is refused, wherever it ends', () => {
  const writer = new BlockWriter()
  const rows = rowsOf([
    ['a', 'one'],
    ['b', 'x'.repeat(300)],
  ])
  writer.merge(undefined, 0, rows, 0, 2)
  const block = writer.bytes.slice(0, writer.length)
  const whole = new Set<number>()
  eachRow(block, block.length, (_key, value) => whole.add(value.byteOffset + value.length))
  for (let end = 1; end < block.length; end++) {
    if (whole.has(end)) continue
    const part = block.slice(0, end)
    assert.throws(() => eachRow(part, end, () => undefined), /MDB_CORRUPTED/, `after ${end} bytes`)
  }
})

const dir = (): string => mkdtempSync(join(tmpdir(), 'millrace-blocks-'))

function inFolder(use: (folder: string) => void): void {
  const folder = dir()
  try {
    use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe('rows in blocks', () => {
  const folder = dir()
  const factory = lmdbBackends({ dir: folder, applicationId: 'suite', maxStores: 4000 })
  let stores = 0
  test.after(() => {
    factory.close()
    rmSync(folder, { recursive: true, force: true })
  })
  backendSuite('lmdb (blocks)', () => {
    const backend = factory.open(`store-${stores++ % 2000}`, 0)
    const { backend: wrapped } = begun(backend)
    assert.equal(wrapped.inHashOrder, true)
    return wrapped
  })
})

/** A store that was written once, so that its rows lie in blocks, and is empty. */
function begun(backend: StoreBackend): WriteBehind {
  backend.wipe()
  const behind = new WriteBehind(backend)
  const store = open<Texts>(specOf({}), behind)
  for (const [epoch, value] of [
    [1, 'one'],
    [2, null],
  ] as const) {
    store.put('key', value, epoch)
    store.seal(epoch)
    store.applied(epoch, checkpointAt(epoch))
    behind.writeAll()
  }
  store.detach()
  return behind
}

/** Thousands of rows: so many that blocks are divided again and again. */
test('a store is as a model says, whatever was written, taken back, opened anew and walked', () => {
  const steps = ['put', 'put', 'put', 'few', 'few', 'delete', 'fail', 'reopen', 'walk'] as const
  const someSteps = fc.array(fc.tuple(fc.constantFrom(...steps), fc.nat(4000), fc.nat(2000)), {
    minLength: 3,
    maxLength: 12,
  })
  fc.assert(
    fc.property(someSteps, fc.constantFrom(20, 20, 90), (script, valueLength) =>
      inFolder((folder) => {
        let factory = lmdbBackends({ dir: folder, applicationId: 'app' })
        let below = factory.open('texts', 0)
        let behind = new WriteBehind(below)
        let store = open<Texts>(specOf({}), behind)
        let epoch = 0
        const model = new Map<string, string>()
        const check = (): void => {
          assert.equal(behind.entries(), model.size)
          for (let n = 0; n < 6000; n += 7) {
            const found = below.get(Buffer.from(`key-${n}`))
            const expected = model.get(`key-${n}`)
            // The value comes behind eight bytes of its time.
            assert.equal(
              found && text(found.subarray(8)),
              expected === undefined ? undefined : JSON.stringify(expected),
            )
          }
        }
        for (const [what, first, count] of script) {
          epoch++
          const from = what === 'few' ? first - (first % 50) : first
          const to = from + (what === 'few' ? 20 : count)
          if (what === 'put' || what === 'few' || what === 'delete' || what === 'fail') {
            for (let n = from; n < to; n++) {
              const value = what === 'delete' ? null : `${epoch}-`.padEnd(valueLength, String(n))
              store.put(`key-${n}`, value, epoch)
              if (what === 'fail') continue
              if (value === null) model.delete(`key-${n}`)
              else model.set(`key-${n}`, value)
            }
          }
          if (what === 'fail') {
            // The transaction fails after the rows were put: the files are as they were before.
            store.seal(epoch)
            store.applied(epoch, checkpointAt(epoch))
            const failed = factory
            assert.throws(() =>
              failed.together(0, () => {
                behind.write(Number.POSITIVE_INFINITY)
                throw new TypeError('a store of the same partition failed')
              }),
            )
            store.detach()
            behind = new WriteBehind(below)
            store = open<Texts>(specOf({}), behind)
          } else if (what === 'walk') {
            const walked = [...store.all()].map(([key, row]) => [key, row.value] as const)
            assert.deepEqual(
              walked,
              [...model].sort(([a], [b]) => (a < b ? -1 : 1)),
            )
          } else if (what === 'reopen') {
            store.detach()
            factory.close()
            factory = lmdbBackends({ dir: folder, applicationId: 'app' })
            below = factory.open('texts', 0)
            behind = new WriteBehind(below)
            store = open<Texts>(specOf({}), behind)
          } else {
            store.seal(epoch)
            store.applied(epoch, checkpointAt(epoch))
            while (behind.isHolding) {
              factory.together(0, () => void behind.write(100))
              behind.written(epoch % 2 === 0)
            }
          }
          check()
        }
        factory.close()
      }),
    ),
    {
      numRuns: 25,
      // The first block becomes longer than a page, and is divided within the same transaction: it keeps both of its pages.
      examples: [
        [
          [
            ['put', 0, 0],
            ['put', 0, 98],
            ['reopen', 0, 0],
          ],
          20,
        ],
      ],
    },
  )
})

test('rows of a few hundred bytes each have a place of their own', () =>
  inFolder((folder) => {
    const factory = lmdbBackends({ dir: folder, applicationId: 'app' })
    const below = factory.open('texts', 0)
    const behind = new WriteBehind(below)
    const store = open<Texts>(specOf({}), behind)
    for (let n = 0; n < 100; n++) store.put(`key-${n}`, 'x'.repeat(400), 1)
    store.seal(1)
    store.applied(1, checkpointAt(1))
    behind.writeAll()
    assert.equal(below.inHashOrder, false)
    assert.equal(below.entries(), 100)
    factory.close()
  }))

test('a store whose rows were put into the order of their keys stays so', () =>
  inFolder((folder) => {
    const factory = lmdbBackends({ dir: folder, applicationId: 'app' })
    const below = factory.open('texts', 0)
    const behind = new WriteBehind(below)
    const store = open<Texts>(specOf({}), behind)
    const commit = (epoch: number): void => {
      for (let n = 0; n < 3000; n++) store.put(`key-${n % 2 === 0 ? n : n + epoch}`, String(epoch), epoch)
      store.seal(epoch)
      store.applied(epoch, checkpointAt(epoch))
      behind.writeAll()
    }
    commit(1)
    assert.equal(below.inHashOrder, true)
    const before = below.entries()
    assert.equal([...below.range(undefined, undefined)].length, before)
    assert.equal(below.inHashOrder, false)
    commit(2)
    assert.equal(below.inHashOrder, false)
    assert.equal([...below.range(undefined, undefined)].length, below.entries())
    below.wipe()
    assert.equal(below.inHashOrder, true)
    factory.close()
  }))
