/** Rows in cells against maps: every program of writes, seals, commits and aborts shows what a plain model shows. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { serdes } from '../../../src/serde/index.ts'
import { Prefetch, mostPrefetched } from '../../../src/state/table/prefetch.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { RowCodec } from '../../../src/state/rows/row.ts'
import { KeyValueRows } from '../../../src/state/table/key-value-rows.ts'

type Stamped = readonly [value: unknown, timestamp: number]
type Rows = Map<string, Stamped>

/** What the store should hold, kept as plainly as can be. */
class Model {
  top: Rows = new Map()
  committed: Rows = new Map()
  open: Map<string, Stamped | null> = new Map()
  sealed: Array<{ readonly epoch: number; readonly rows: Rows }> = []
  epoch = 0
}

interface World {
  readonly model: Model
  readonly rows: KeyValueRows
  readonly backend: MemoryBackend
  readonly codec: RowCodec
}

type Step = (world: World) => void

const key = fc
  .tuple(
    fc.constantFrom('', 'k', 'key-of-some-length-', 'a key that is longer than its record has room for '),
    fc.nat(40),
  )
  .map(([text, n]) => `${text}${n}`)
const time = fc.integer({ min: 0, max: 2 ** 40 })

const put = (value: fc.Arbitrary<unknown>): fc.Arbitrary<Step> =>
  fc.tuple(key, value, time).map(([at, what, when]) => ({ model, rows }: World): void => {
    rows.put(at, what, when)
    model.top.set(at, [what, when])
    model.open.set(at, [what, when])
  })

const remove = key.map((at) => ({ model, rows }: World): void => {
  rows.delete(at)
  if (model.top.delete(at)) model.open.set(at, null)
})

const read = key.map((at) => ({ model, rows, codec }: World): void => {
  const row = rows.get(at)
  assert.deepEqual(row && [codec.value(row), row.timestamp], model.top.get(at))
})

/** What is looked at ahead need not be there, and stays as it is. */
const lookAhead = fc.array(key, { maxLength: mostPrefetched }).map((keys) => ({ rows }: World): void => {
  const ahead = new Prefetch()
  for (const at of keys) {
    const bytes = Buffer.from(`..${at}.`)
    ahead.add(rows.ahead, bytes, 2, bytes.length - 1)
  }
  ahead.look()
})

const seal = fc.constant(({ model, rows, codec }: World): void => {
  const generation = rows.seal(++model.epoch)
  const told = new Map<string, Stamped | null>()
  generation?.each(-1, (keyBytes, value, timestamp) => {
    const at = Buffer.from(keyBytes).toString('latin1')
    assert.ok(!told.has(at), `${at} is told twice`)
    const row = value && codec.fromBackend(stamped(value, timestamp))
    told.set(at, row && [codec.value(row), row.timestamp])
  })
  assert.deepEqual(sorted(told), sorted(model.open))
  if (model.open.size > 0) model.sealed.push({ epoch: model.epoch, rows: new Map(model.top) })
  model.open = new Map()
})

const commit = fc.constant(({ model, rows }: World): void => {
  const oldest = model.sealed.shift()
  if (oldest === undefined) return
  rows.applied(oldest.epoch, [], { changelogOffset: oldest.epoch, commitId: '', topicId: '' })
  model.committed = oldest.rows
})

const abort = fc.constant(({ model, rows }: World): void => {
  rows.discard()
  model.top = new Map(model.committed)
  model.open = new Map()
  model.sealed = []
})

const walk = fc.boolean().map((reverse) => ({ model, rows, codec }: World): void => {
  const seen = [...rows.range(undefined, undefined, reverse)].map(([at, row]) => [
    at,
    [codec.value(row), row.timestamp],
  ])
  assert.deepEqual(seen, reverse ? sorted(model.top).reverse() : sorted(model.top))
})

const readCommitted = fc.constant(({ model, backend, codec }: World): void => {
  const seen = [...backend.range()].map(([at, value]) => {
    const row = codec.fromBackend(value)
    return [Buffer.from(at).toString('latin1'), [codec.value(row), row.timestamp]]
  })
  assert.deepEqual(seen, sorted(model.committed))
})

/** What lies in the backend: the timestamp, then the value. */
function stamped(value: Uint8Array, timestamp: number): Uint8Array {
  const bytes = Buffer.alloc(8 + value.length)
  bytes.writeBigInt64BE(BigInt(timestamp))
  bytes.set(value, 8)
  return bytes
}

function sorted<V>(map: Map<string, V>): Array<[string, V]> {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}

function hold(codec: () => RowCodec, value: fc.Arbitrary<unknown>): void {
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: put(value), weight: 8 },
    { arbitrary: remove, weight: 4 },
    { arbitrary: read, weight: 3 },
    { arbitrary: lookAhead, weight: 1 },
    { arbitrary: seal, weight: 2 },
    { arbitrary: commit, weight: 2 },
    { arbitrary: abort, weight: 1 },
    { arbitrary: walk, weight: 1 },
    { arbitrary: readCommitted, weight: 1 },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const backend = new MemoryBackend()
      const form = codec()
      const world = { model: new Model(), rows: new KeyValueRows(backend, form), backend, codec: form }
      for (const each of steps) each(world)
      readCommittedOf(world)
    }),
    { numRuns: 150 },
  )
}

function readCommittedOf({ model, backend }: World): void {
  assert.deepEqual(
    [...backend.range()].map(([at]) => Buffer.from(at).toString('latin1')),
    sorted(model.committed).map(([at]) => at),
  )
}

describe('rows in cells', () => {
  test('numbers are as a model says, through writes, seals, commits and aborts', () => {
    hold(() => new RowCodec('stamped', serdes.count), fc.nat(1000))
  })

  test('objects too', () => {
    hold(
      () => new RowCodec('stamped', serdes.json()),
      fc.record({ a: fc.nat(9), b: fc.string({ maxLength: 3 }) }, { noNullPrototype: true }),
    )
  })

  test('and numbers among objects', () => {
    const object = fc.record({ a: fc.nat(9) }, { noNullPrototype: true })
    hold(
      () => new RowCodec('stamped', serdes.json()),
      fc.oneof(
        fc.nat(1000),
        fc.nat(1000).map((n) => n + 0.5),
        object,
      ),
    )
  })

  test('a table that grows far is whole, and an abort takes back what was changed in it', () => {
    const rows = new KeyValueRows(new MemoryBackend(), new RowCodec('stamped', serdes.count))
    const count = 80_000
    const keyOf = (i: number): string =>
      i % 7 === 0 ? `a key that is longer than its record has room for ${i}` : `k${i}`
    for (let i = 0; i < count; i++) rows.put(keyOf(i), i, i)
    rows.seal(1)
    rows.applied(1, [], { changelogOffset: 1, commitId: '', topicId: '' })
    for (let i = 0; i < count; i += 2) rows.put(keyOf(i), -1, 0)
    for (let i = 0; i < count; i += 3) rows.delete(keyOf(i))
    for (let i = count; i < count + 100; i++) rows.put(keyOf(i), i, i)
    rows.discard()
    for (let i = 0; i < count; i++) {
      const row = rows.get(keyOf(i))
      assert.deepEqual([row?.value, row?.timestamp], [i, i])
    }
    assert.equal(rows.get(keyOf(count)), undefined)
    assert.equal(rows.rows.size, count)
  })

  test('a store that is opened over what another one left holds the same', () => {
    const backend = new MemoryBackend()
    const codec = new RowCodec('stamped', serdes.json())
    const before = new KeyValueRows(backend, codec)
    for (let i = 0; i < 1000; i++) before.put(`key-${i}`, { i }, i)
    for (let i = 0; i < 1000; i += 3) before.delete(`key-${i}`)
    before.seal(1)
    before.applied(1, [], { changelogOffset: 1, commitId: '', topicId: '' })
    before.put('not committed', { i: 0 }, 0)
    const after = new KeyValueRows(backend, codec)
    const seen = [...after.range(undefined, undefined)].map(([at, row]) => [at, codec.value(row), row.timestamp])
    const left = Array.from({ length: 1000 }, (_, i) => i).filter((i) => i % 3 !== 0)
    assert.deepEqual(
      seen.sort((a, b) => (a[2] as number) - (b[2] as number)),
      left.map((i) => [`key-${i}`, { i }, i]),
    )
  })
})
