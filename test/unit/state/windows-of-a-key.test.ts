/** A store of windows, many of which are of one key: what a join remembers of a key that many records have. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, mock, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import type { StoreBackend, StoreLifecycle, WindowStore } from '../../../src/state/contract.ts'
import { restoreEntry } from '../../../src/state/rows/changelog.ts'
import { CellTable } from '../../../src/state/table/cell-table.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-windows-of-a-key-'))
const durable = lmdbBackends({ dir, applicationId: 'windows', maxStores: 4000 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

type Rows = WindowStore<string, number> & StoreLifecycle

/** Two and a half segments long. */
const time = 2000
const retentionMs = 1600

type Step =
  | { readonly do: 'put' | 'remove'; readonly from: number; readonly by: number; readonly count: number }
  | { readonly do: 'seal' | 'apply' | 'discard' }
  | { readonly do: 'write'; readonly keep: boolean }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'fetch'; readonly from: number; readonly ms: number; readonly backward: boolean }

const some = <K extends string>(kind: K) => fc.constant(kind)
const someStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('put' as const, 'put' as const, 'remove' as const),
      from: fc.nat(time),
      by: fc.constantFrom(0, 1, -1, 7, 797),
      count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 100, max: 600 })),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('seal' as const, 'apply' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: some('discard') }) },
  { weight: 1, arbitrary: fc.record({ do: some('write'), keep: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: some('advance'), ms: fc.nat(600) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: some('fetch'),
      from: fc.nat(time),
      ms: fc.oneof(fc.nat(5), fc.nat(time)),
      backward: fc.boolean(),
    }),
  },
)

type Found = readonly [start: number, value: number]

/** Rows in the order in which they came, and the newest start ever put. */
class Model {
  rows: Found[] = []
  newest = Number.NEGATIVE_INFINITY
  readonly #duplicates: boolean

  constructor(duplicates: boolean) {
    this.#duplicates = duplicates
  }

  copy(): Model {
    const copy = new Model(this.#duplicates)
    copy.rows = [...this.rows]
    copy.newest = this.newest
    return copy
  }

  horizon(now: number): number {
    return Math.min(this.newest, now) - retentionMs
  }

  put(start: number, value: number | null, now: number): void {
    if (start <= this.horizon(now)) return
    if (value === null || !this.#duplicates) this.rows = this.rows.filter(([at]) => at !== start)
    if (value === null) return
    this.rows.push([start, value])
    this.newest = Math.max(this.newest, start)
  }

  fetch(from: number, to: number, backward: boolean, now: number): Found[] {
    const first = Math.max(from, this.horizon(now) + 1)
    const found = this.rows.filter(([start]) => start >= first && start <= to).sort(([a], [b]) => a - b)
    return backward ? found.reverse() : found
  }
}

const specFor = (duplicates: boolean) =>
  specOf({ kind: 'window', windowSizeMs: 1000, retentionMs, retainDuplicates: duplicates })

/** What a store and its model go through together. */
class World {
  model: Model
  readonly records: Array<{ key: Uint8Array; value: Uint8Array | null; timestamp: number }> = []
  readonly #below: StoreBackend
  readonly #store: Rows
  readonly #duplicates: boolean
  #committed: Model
  readonly #sealed: Array<{ epoch: number; model: Model; record: () => void; count: number }> = []
  #now = 0
  #epoch = 0
  #values = 0

  constructor(duplicates: boolean, below: StoreBackend) {
    this.#duplicates = duplicates
    this.#below = below
    this.#store = open<Rows>(specFor(duplicates), below, () => this.#now)
    this.model = new Model(duplicates)
    this.#committed = this.model.copy()
  }

  step(step: Step): void {
    if (step.do === 'put' || step.do === 'remove') {
      for (let i = 0; i < step.count; i++) {
        const start = (step.from + step.by * i + 1000 * time) % time
        const value = step.do === 'put' ? ++this.#values : null
        this.#store.put('k', value as number, start)
        this.model.put(start, value, this.#now)
      }
    } else if (step.do === 'fetch') this.look(this.#store, step.from, step.from + step.ms, step.backward)
    else if (step.do === 'advance') this.#now += step.ms
    else if (step.do === 'seal') this.#seal()
    else if (step.do === 'apply') this.#apply()
    else if (step.do === 'discard') {
      this.#store.discard()
      this.#sealed.length = 0
      this.model = this.#committed.copy()
    } else if (step.do === 'write' && this.#below instanceof WriteBehind) {
      if (this.#below.write(200) >= 0) this.#below.written(step.keep)
    }
  }

  /** The store shows what the model shows, here and in the store that its changelog gives. */
  end(): void {
    this.look(this.#store, 0, time, false)
    this.#seal()
    while (this.#sealed.length > 0) this.#apply()
    this.look(this.#store, 0, time, true)
    const spec = specFor(this.#duplicates)
    const restored = open<Rows>(spec, new MemoryBackend(), () => this.#now)
    const entries = this.records.map((record) => restoreEntry(spec, record))
    restored.restore(entries, checkpointAt(this.records.length))
    // What is over may have left the changelog, and with it the newest row.
    const first = this.model.horizon(this.#now) + 1
    this.look(restored, Math.max(0, first), time, false)
    this.#below.wipe()
    this.#store.close()
  }

  look(store: Rows, from: number, to: number, backward: boolean): void {
    const shown = [...store.fetchRange('k', from, to, backward)].map(([start, { value }]): Found => [start, value])
    assert.deepEqual(shown, this.model.fetch(from, to, backward, this.#now))
    const [first] = this.model.fetch(from, from, false, this.#now)
    assert.equal(store.fetch('k', from)?.value, first?.[1])
  }

  #seal(): void {
    const sealed = this.#store.seal(++this.#epoch)
    const record = (): void =>
      sealed?.changes.forEach(([key, value], i) => {
        const timestamp = sealed.timestamps[i] as number
        this.records.push({ key: key.slice(), value: value === null ? null : value.slice(), timestamp })
      })
    this.#sealed.push({ epoch: this.#epoch, model: this.model.copy(), record, count: sealed?.changes.length ?? 0 })
  }

  #apply(): void {
    const oldest = this.#sealed.shift()
    if (oldest === undefined) return
    oldest.record()
    if (oldest.count > 0) this.#store.applied(oldest.epoch, checkpointAt(oldest.epoch))
    this.#store.committed(oldest.epoch)
    this.#committed = oldest.model
  }
}

const backends: Readonly<Record<string, () => StoreBackend>> = {
  'in memory': () => new MemoryBackend(),
  'written behind to the disk': () => new WriteBehind(durable.open(`windows-${stores++}`, 0)),
  'on the disk alone': () => durable.open(`windows-${stores++}`, 0),
}

for (const [name, backend] of Object.entries(backends)) {
  describe(`many windows of one key ${name}`, () => {
    for (const duplicates of [false, true]) {
      test(`are those of a naive model, ${duplicates ? 'with' : 'without'} duplicates`, () => {
        const property = fc.property(fc.array(someStep, { minLength: 5, maxLength: 30 }), (steps) => {
          const world = new World(duplicates, backend())
          for (const step of steps) world.step(step)
          world.end()
        })
        fc.assert(property, { numRuns: 30 })
      })
    }
  })
}

/** How often a key's bytes are read while a store that keeps duplicates has so many windows of one key. */
function readsAmong(rows: number): Record<'newest' | 'amidst' | 'short walk', number> {
  const spec = specOf({ kind: 'window', windowSizeMs: 4_000_000, retentionMs: 8_000_000, retainDuplicates: true })
  const store = open<Rows>(spec, new MemoryBackend())
  const put = (start: number): void => store.put('k', start, start)
  for (let i = 0; i < rows; i++) put(2 * i)
  const read = mock.method(CellTable.prototype, 'numberAt')
  const reads = (work: (i: number) => void): number => {
    read.mock.resetCalls()
    for (let i = 0; i < 20; i++) work(i)
    return read.mock.callCount()
  }
  try {
    return {
      newest: reads((i) => put(2 * (rows + i))),
      amidst: reads((i) => put(rows + 1 + 2 * i)),
      'short walk': reads((i) => {
        assert.equal([...store.fetchRange('k', rows + 2 * i, rows + 2 * i + 2)].length, 3)
      }),
    }
  } finally {
    read.mock.restore()
  }
}

test('a window is put and found among many of its key with few steps, wherever it lies', () => {
  const few = readsAmong(1000)
  const many = readsAmong(16_000)
  for (const work of ['newest', 'amidst', 'short walk'] as const)
    assert.ok(
      many[work] < 3 * few[work] + 20,
      `${work}: ${many[work]} reads, with a sixteenth of the windows ${few[work]}`,
    )
})
