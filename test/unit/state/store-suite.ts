/** What every store promises over any backend: each property holds the store against a naive model. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from '../../support/properties.ts'
import { serdes } from '../../../src/serde/index.ts'
import type {
  ChangedRows,
  KeyValueStore,
  SealedChanges,
  SessionStore,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
  TimestampedKeyValueStore,
  VersionedStore,
  WindowStore,
} from '../../../src/state/contract.ts'
import { restoreEntry } from '../../../src/state/rows/changelog.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { openStore } from '../../../src/state/open-store.ts'
import { checkpointAt } from './backend-suite.ts'

export const specOf = (over: Partial<StoreSpec>): StoreSpec => ({
  name: 'store',
  kind: 'key-value',
  keySerde: serdes.string as StoreSpec['keySerde'],
  valueSerde: serdes.json() as StoreSpec['valueSerde'],
  timestamped: true,
  changelog: true,
  ...over,
})

export function open<S>(spec: StoreSpec, backend: StoreBackend, streamTime = () => 0): S & StoreLifecycle {
  return openStore(spec, backend, 0, { streamTime }) as unknown as S & StoreLifecycle
}

/** The store that the changelog of this one gives. */
class Changelog {
  readonly records: Array<{ key: Uint8Array; value: Uint8Array | null; timestamp: number }> = []

  add(sealed: SealedChanges | null): void {
    sealed?.changes.forEach(([key, value], i) => {
      // A copy, as the way over the broker makes one.
      const timestamp = sealed.timestamps[i] as number
      this.records.push({ key: key.slice(), value: value === null ? null : value.slice(), timestamp })
    })
  }

  restored<S>(spec: StoreSpec, streamTime = () => 0): S & StoreLifecycle {
    const store = open<S>(spec, new MemoryBackend(), streamTime)
    const entries = this.records.map((record) => restoreEntry(spec, record))
    store.restore(entries, checkpointAt(this.records.length))
    return store
  }
}

const keys = ['', 'a', 'a\u0000', 'ab', 'b', 'ä', 'λόγος', '\u{1f600}', 'a'.repeat(70)]
const someKey = fc.constantFrom(...keys)
const someValue = fc.oneof(
  fc.integer(),
  fc.string(),
  fc.boolean(),
  fc.record({ n: fc.nat(), list: fc.array(fc.nat(), { maxLength: 3 }) }, { noNullPrototype: true }),
)
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

type Step =
  | { readonly do: 'put'; readonly key: string; readonly value: unknown; readonly time: number; readonly end: number }
  | { readonly do: 'seal' | 'apply' | 'discard' | 'look' }
  | { readonly do: 'write'; readonly keep: boolean }

const somePut = (time: fc.Arbitrary<number>) =>
  fc.record({
    do: fc.constant('put' as const),
    key: someKey,
    value: fc.option(someValue, { freq: 4 }),
    time,
    end: fc.nat(40),
  })
const someStep = (time: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 8, arbitrary: somePut(time) },
    { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('seal' as const, 'apply' as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('discard' as const, 'look' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('write' as const), keep: fc.boolean() }) },
  )
const someSteps = (time: fc.Arbitrary<number>) => fc.array(someStep(time), { maxLength: 60 })

/** How the model of a store names a row that is shown as changed, and what of the model is its value. */
interface Shown {
  readonly name: (row: ChangedRows) => string
  readonly value: (content: unknown) => unknown
}

/** What the open epoch has changed is shown once, as it was before and as it is; what came and went is not. */
function lookAtChanges(
  store: StoreLifecycle,
  before: ReadonlyMap<string, unknown>,
  now: ReadonlyMap<string, unknown>,
  { name, value }: Shown,
): void {
  const valueIn = (model: ReadonlyMap<string, unknown>, at: string) => (model.has(at) ? value(model.get(at)) : null)
  const seen = new Set<string>()
  const rows = store.changedRows()
  while (rows.next()) {
    const at = name(rows)
    assert.ok(!seen.has(at), `${at} is shown twice`)
    seen.add(at)
    assert.ok(before.has(at) || now.has(at), `${at} came and went`)
    assert.equal(rows.row, store.rowOf(rows.key, rows.start, rows.end))
    assert.deepEqual([rows.before, rows.value], [valueIn(before, at), valueIn(now, at)])
    assert.equal(rows.isThere, now.has(at))
  }
  assert.ok(seen.size <= store.changedCount)
  for (const at of new Set([...before.keys(), ...now.keys()]))
    assert.ok(seen.has(at) || isDeepStrictEqual(before.get(at), now.get(at)), `${at} has changed`)
}

/**
 * Runs steps against a store and a model that is a plain map; the model's committed, sealed and open contents are
 * three copies of it.
 */
function run(
  store: StoreLifecycle,
  below: StoreBackend,
  steps: readonly Step[],
  write: (step: Extract<Step, { do: 'put' }>, model: Map<string, unknown>) => void,
  look: (model: ReadonlyMap<string, unknown>) => void,
  shown?: Shown,
): Changelog {
  const changelog = new Changelog()
  let committed = new Map<string, unknown>()
  let open = new Map<string, unknown>()
  /** What was there when the open epoch began. */
  let before = new Map<string, unknown>()
  const sealed: Array<{ epoch: number; content: Map<string, unknown>; changes: SealedChanges | null }> = []
  let epoch = 0
  const apply = (): void => {
    const oldest = sealed.shift()
    if (oldest === undefined) return
    changelog.add(oldest.changes)
    if (oldest.changes !== null) store.applied(oldest.epoch, checkpointAt(oldest.epoch))
    committed = oldest.content
  }
  const seal = (): void => {
    before = new Map(open)
    sealed.push({ epoch: ++epoch, changes: store.seal(epoch), content: before })
  }
  const lookAtAll = (): void => {
    look(open)
    if (shown !== undefined) lookAtChanges(store, before, open, shown)
  }
  for (const step of steps) {
    if (step.do === 'put') write(step, open)
    else if (step.do === 'seal') seal()
    else if (step.do === 'apply') apply()
    else if (step.do === 'discard') {
      store.discard()
      sealed.length = 0
      open = new Map(committed)
      before = committed
    } else if (step.do === 'write') {
      if (below instanceof WriteBehind && below.write(3) >= 0) below.written(step.keep)
    } else lookAtAll()
  }
  lookAtAll()
  seal()
  lookAtAll()
  while (sealed.length > 0) apply()
  lookAtAll()
  assert.equal(store.uncommittedBytes, 0)
  return changelog
}

export function storeSuite(name: string, backend: () => StoreBackend, numRuns: number): void {
  describe(`stores over the ${name} backend`, () => {
    test('a key-value store is a map, with its changes open, sealed, applied or dropped', () => {
      const property = fc.property(someSteps(fc.nat(100)), fc.tuple(someKey, someKey), (steps, [from, to]) => {
        const spec = specOf({ timestamped: false })
        const below = backend()
        const store = open<KeyValueStore<string, unknown>>(spec, below)
        const look = (model: ReadonlyMap<string, unknown>): void => {
          const expected = [...model].sort(([a], [b]) => byBytes(a, b))
          assert.deepEqual([...store.all()], expected)
          const within = expected.filter(([key]) => byBytes(key, from) >= 0 && byBytes(key, to) <= 0)
          assert.deepEqual([...store.range(from, to)], within)
          for (const key of keys) assert.deepEqual(store.get(key), model.get(key))
          for (const key of keys) assert.deepEqual(store.get(key, Buffer.from(key)), model.get(key))
        }
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value }, model) => {
            store.put(key, value)
            if (value === null) model.delete(key)
            else model.set(key, value)
          },
          look,
          { name: ({ key }) => `${key}`, value: (content) => content },
        )
        assert.deepEqual([...changelog.restored<KeyValueStore<string, unknown>>(spec).all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })

    test('a timestamped store keeps the time beside the value, through its changelog too', () => {
      const property = fc.property(someSteps(fc.nat(2 ** 41)), (steps) => {
        const below = backend()
        const spec = specOf({})
        const store = open<TimestampedKeyValueStore<string, unknown>>(spec, below)
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value, time }, model) => {
            store.put(key, value, time)
            if (value === null) model.delete(key)
            else model.set(key, { value, timestamp: time })
          },
          (model) => {
            assert.deepEqual(
              [...store.all()],
              [...model].sort(([a], [b]) => byBytes(a, b)),
            )
            for (const key of keys) assert.deepEqual(store.get(key), model.get(key))
          },
          { name: ({ key }) => `${key}`, value: (content) => (content as { value: unknown }).value },
        )
        const restored = changelog.restored<TimestampedKeyValueStore<string, unknown>>(spec)
        assert.deepEqual([...restored.all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })

    test('a window store finds the windows of a key and of a time, both in order', () => {
      const start = fc.oneof(fc.nat(60), fc.nat(2 ** 41))
      const property = fc.property(someSteps(start), start, start, (steps, a, b) => {
        const [from, to] = [Math.min(a, b), Math.max(a, b)]
        const below = backend()
        const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 2 ** 42 })
        const store = open<WindowStore<string, unknown>>(spec, below)
        type Cell = { key: string; start: number; row: { value: unknown } }
        const look = (model: ReadonlyMap<string, unknown>): void => {
          const cells = [...model.values()] as Cell[]
          cells.sort((x, y) => x.start - y.start || byBytes(x.key, y.key))
          const shown = (list: readonly Cell[]) => list.map((cell) => [cell.key, cell.start, cell.row])
          assert.deepEqual([...store.all()], shown(cells))
          const within = cells.filter((cell) => cell.start >= from && cell.start <= to)
          assert.deepEqual([...store.fetchAll(from, to)], shown(within))
          for (const key of keys) {
            const own = within.filter((cell) => cell.key === key).map((cell) => [cell.start, cell.row])
            assert.deepEqual([...store.fetchRange(key, from, to)], own)
            assert.deepEqual([...store.fetchRange(key, from, to, true)], own.reverse())
          }
          for (const cell of cells) assert.deepEqual(store.fetch(cell.key, cell.start), cell.row)
        }
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value, time, end }, model) => {
            store.put(key, value, time, end)
            if (value === null) model.delete(`${key}/${time}`)
            else model.set(`${key}/${time}`, { key, start: time, row: { value, timestamp: end } })
          },
          look,
          { name: ({ key, start }) => `${key}/${start}`, value: (content) => (content as Cell).row.value },
        )
        assert.deepEqual([...changelog.restored<WindowStore<string, unknown>>(spec).all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })

    test('a window store that keeps duplicates keeps them in the order they came', () => {
      const property = fc.property(someSteps(fc.nat(30)), (steps) => {
        const below = backend()
        const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 1000, retainDuplicates: true })
        const store = open<WindowStore<string, unknown>>(spec, below)
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value, time }, model) => {
            store.put(key, value, time, time)
            const at = `${key}/${time}`
            const before = (model.get(at) ?? []) as unknown[]
            if (value === null) model.delete(at)
            else model.set(at, [...before, value])
          },
          (model) => {
            for (const key of keys) {
              const times = [...new Set(steps.flatMap((step) => (step.do === 'put' ? [step.time] : [])))]
              for (const time of times) {
                const values = [...store.fetchRange(key, time, time)].map(([, row]) => row.value)
                assert.deepEqual(values, model.get(`${key}/${time}`) ?? [])
              }
            }
          },
        )
        assert.deepEqual([...changelog.restored<WindowStore<string, unknown>>(spec).all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })

    test('a session store finds the sessions that reach into a time', () => {
      const property = fc.property(someSteps(fc.nat(80)), fc.nat(120), fc.nat(120), (steps, earliest, latest) => {
        const below = backend()
        const spec = specOf({ kind: 'session', timestamped: false, retentionMs: 10_000 })
        const store = open<SessionStore<string, unknown>>(spec, below)
        type Cell = { key: string; start: number; end: number; value: unknown }
        const look = (model: ReadonlyMap<string, unknown>): void => {
          const cells = [...model.values()] as Cell[]
          cells.sort((x, y) => byBytes(x.key, y.key) || x.end - y.end || x.start - y.start)
          for (const key of keys) {
            const own = cells.filter((cell) => cell.key === key)
            const found = own.filter((cell) => cell.end >= earliest && cell.start <= latest)
            assert.deepEqual(
              [...store.findSessions(key, earliest, latest)],
              found.map((cell) => [cell.start, cell.end, cell.value]),
            )
          }
          for (const cell of cells) assert.deepEqual(store.fetchSession(cell.key, cell.start, cell.end), cell.value)
          assert.equal([...store.all()].length, cells.length)
        }
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value, time, end: length }, model) => {
            const end = time + length
            store.put(key, time, end, value)
            if (value === null) model.delete(`${key}/${time}/${end}`)
            else model.set(`${key}/${time}/${end}`, { key, start: time, end, value })
          },
          look,
          { name: ({ key, start, end }) => `${key}/${start}/${end}`, value: (content) => (content as Cell).value },
        )
        assert.deepEqual([...changelog.restored<SessionStore<string, unknown>>(spec).all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })

    test('of a versioned store all newest rows are those of keys whose rows lie between one another', () => {
      const store = open<VersionedStore<string, unknown>>(
        specOf({ kind: 'versioned', timestamped: false, retentionMs: 1000 }),
        backend(),
      )
      for (const [key, time] of [
        ['a', 0],
        ['a\u0000', 3],
        ['a', 5],
        ['b', 1],
      ] as const)
        store.put(key, time, time)
      store.put('b', null, 2)
      assert.deepEqual(
        [...store.all()],
        [
          ['a\u0000', { value: 3, validFrom: 3 }],
          ['a', { value: 5, validFrom: 5 }],
        ],
      )
      store.close()
    })

    test('a versioned store knows what was valid when', () => {
      const property = fc.property(someSteps(fc.nat(50)), (steps) => {
        const below = backend()
        const spec = specOf({ kind: 'versioned', timestamped: false, retentionMs: 1000 })
        const store = open<VersionedStore<string, unknown>>(spec, below)
        const versions = (model: ReadonlyMap<string, unknown>, key: string): Array<[time: number, value: unknown]> =>
          ([...((model.get(key) ?? new Map()) as Map<number, unknown>)] as Array<[number, unknown]>).sort(
            ([a], [b]) => a - b,
          )
        const look = (model: ReadonlyMap<string, unknown>): void => {
          for (const key of keys) {
            const all = versions(model, key)
            for (let time = 0; time <= 51; time += 3) {
              const at = all.findLastIndex(([from]) => from <= time)
              const [from, value] = all[at] ?? [0, null]
              const next = all[at + 1]
              const row = next ? { value, validFrom: from, validTo: next[0] } : { value, validFrom: from }
              assert.deepEqual(store.get(key, time), value === null ? undefined : row)
            }
            const last = all.at(-1)
            const newest = !last || last[1] === null ? undefined : { value: last[1], validFrom: last[0] }
            assert.deepEqual(store.get(key), newest)
          }
          const newest = keys.flatMap((key): Array<[string, unknown]> => {
            const [from, value = null] = versions(model, key).at(-1) ?? [0]
            return value === null ? [] : [[key, { value, validFrom: from }]]
          })
          assert.deepEqual(new Map(store.all()), new Map(newest))
          assert.equal([...store.all()].length, newest.length)
        }
        const changelog = run(
          store,
          below,
          steps,
          ({ key, value, time }, model) => {
            const before = new Map(versions(model, key))
            const next = [...before.keys()].sort((a, b) => a - b).find((from) => from > time)
            assert.deepEqual(store.put(key, value, time), { validTo: next })
            model.set(key, before.set(time, value))
          },
          look,
        )
        assert.deepEqual([...changelog.restored<VersionedStore<string, unknown>>(spec).all()], [...store.all()])
        below.wipe()
        store.close()
      })
      fc.assert(property, { numRuns })
    })
  })
}
