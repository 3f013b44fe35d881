/** A key-value store that is used as a queue: its oldest row is found at once, however many rows came and went before it. */
import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import fc from '../../support/properties.ts'
import { serdes } from '../../../src/serde/index.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { Row, RowCodec } from '../../../src/state/rows/row.ts'
import { CellTable } from '../../../src/state/table/cell-table.ts'
import { KeyValueRows } from '../../../src/state/table/key-value-rows.ts'
import { checkpointAt } from './backend-suite.ts'

const backends: Readonly<Record<string, () => MemoryBackend | WriteBehind>> = {
  'in memory': () => new MemoryBackend(),
  'written behind': () => new WriteBehind(new MemoryBackend()),
}
const keyOf = (n: number): string => String(n).padStart(8, '0')
const codec = (): RowCodec => new RowCodec('stamped', serdes.count)

/** How many rows are looked at to find the oldest one. */
function looksToFind(rows: KeyValueRows, oldest: string): number {
  const look = mock.method(CellTable.prototype, 'find')
  try {
    assert.equal(rows.range(undefined, undefined).next().value?.[0], oldest)
    return look.mock.callCount()
  } finally {
    look.mock.restore()
  }
}

describe('the oldest row of a queue is found with a look at few rows', () => {
  const records = 1000
  for (const [name, backend] of Object.entries(backends)) {
    for (const epochs of [1, 10, records]) {
      for (const length of [1, 50]) {
        test(`${name}, with ${length} rows in it, over ${epochs} epochs`, () => {
          const below = backend()
          const rows = new KeyValueRows(below, codec())
          let epoch = 0
          for (let n = 0; n < records; n++) {
            rows.put(keyOf(n), n, n)
            if (n >= length) rows.delete(keyOf(n - length))
            const found = rows.range(undefined, undefined).next().value
            assert.equal(found?.[0], keyOf(Math.max(0, n - length + 1)))
            if (n % (records / epochs) > 0) continue
            rows.seal(++epoch)
            rows.applied(epoch, [], checkpointAt(epoch))
          }
          assert.ok(looksToFind(rows, keyOf(records - length)) < 24)
          if (!(below instanceof WriteBehind)) return
          below.writeAll()
          assert.ok(looksToFind(rows, keyOf(records - length)) < 24)
        })
      }
    }
  }
})

const most = 40

interface Step {
  readonly do: 'put' | 'delete' | 'range' | 'seal' | 'apply' | 'commit' | 'write' | 'discard' | 'hold'
  /** Which keys: of those below `most`, where there are any. */
  readonly from: number
  readonly to: number
  readonly isReverse: boolean
  /** Walks end behind so many rows; what is done meanwhile is done behind the first. */
  readonly rows: number
  readonly meanwhile: 'put' | 'delete' | 'ahead' | undefined
}

/** Many keys that come and go together, in every generation, beside a plain model. */
class Beside {
  readonly #below: MemoryBackend | WriteBehind
  readonly #rows: KeyValueRows
  #open = new Map<string, number>()
  #committed: ReadonlyMap<string, number> = new Map()
  #sealed: Array<{ readonly epoch: number; readonly content: ReadonlyMap<string, number> }> = []
  #epoch = 0
  #value = 0

  constructor(below: MemoryBackend | WriteBehind) {
    this.#below = below
    this.#rows = new KeyValueRows(below, codec())
  }

  take(step: Step): void {
    const { from, to } = step
    if (step.do === 'put') this.#put(from, to)
    else if (step.do === 'delete') this.#delete(from, to)
    else if (step.do === 'range') this.#range(step)
    else if (step.do === 'seal') this.#seal()
    else if (step.do === 'apply') this.#apply()
    else if (step.do === 'commit') {
      this.#seal()
      this.#apply()
    } else if (step.do === 'write' && this.#below instanceof WriteBehind) {
      if (this.#below.write(1 + from) >= 0) this.#below.written()
    } else if (step.do === 'discard') {
      this.#rows.discard()
      this.#open = new Map(this.#committed)
      this.#sealed = []
    } else if (step.do === 'hold') this.#hold(from)
  }

  #put(from: number, to: number): void {
    for (let n = from; n < to; n++) {
      this.#rows.put(keyOf(n), ++this.#value, n)
      this.#open.set(keyOf(n), this.#value)
    }
  }

  #delete(from: number, to: number): void {
    for (let n = from; n < to; n++) {
      this.#rows.delete(keyOf(n))
      this.#open.delete(keyOf(n))
    }
  }

  /** What somebody else has committed, as a store gets it that follows. */
  #hold(n: number): void {
    if (this.#sealed.length > 0 || this.#rows.isChanged) return
    this.#below.apply([[Buffer.from(keyOf(n)), codec().toBackend(new Row(++this.#value, undefined, n))]])
    this.#open.set(keyOf(n), this.#value)
    this.#committed = new Map(this.#open)
  }

  #seal(): void {
    if (this.#rows.seal(++this.#epoch) === null) return
    this.#sealed.push({ epoch: this.#epoch, content: new Map(this.#open) })
  }

  #apply(): void {
    const oldest = this.#sealed.shift()
    if (oldest === undefined) return
    this.#rows.applied(oldest.epoch, [], checkpointAt(oldest.epoch))
    this.#committed = oldest.content
  }

  #range({ from, to, isReverse, rows, meanwhile }: Step): void {
    const [low, high] = [keyOf(from), keyOf(to)]
    const expected = [...this.#open].filter(([key]) => key >= low && key < high).sort(([a], [b]) => (a < b ? -1 : 1))
    if (isReverse) expected.reverse()
    const seen: Array<[string, unknown]> = []
    for (const [key, { value }] of this.#rows.range(low, high, isReverse)) {
      if (seen.push([key, value]) >= rows) break
      if (seen.length > 1) continue
      // Outside of what is still to come; or there: keys that had no row are not seen then, the others as they are now.
      const [first, behind] = isReverse ? [to, most] : [0, from]
      if (meanwhile === 'put') this.#put(first, behind)
      else if (meanwhile === 'delete') this.#delete(first, behind)
      else if (meanwhile === 'ahead') this.#put(from, to)
    }
    const isLater = (at: number): boolean => meanwhile === 'ahead' && at > 0
    assert.deepEqual(
      seen,
      expected.slice(0, rows).map(([key, value], at) => [key, isLater(at) ? this.#open.get(key) : value]),
    )
  }

  look(): void {
    for (const isReverse of [false, true]) {
      this.#range({ do: 'range', from: 0, to: most, isReverse, rows: most, meanwhile: undefined })
    }
    assert.deepEqual(
      Array.from(this.#below.range(), ([key]) => Buffer.from(key).toString('latin1')),
      [...this.#committed.keys()].sort(),
      'a reader sees what is committed',
    )
  }
}

const names: ReadonlyArray<Step['do']> = [
  ...Array.from({ length: 4 }, () => 'range' as const),
  ...(['put', 'put', 'delete', 'delete', 'delete'] as const),
  ...(['seal', 'apply', 'commit', 'write', 'write', 'discard', 'hold'] as const),
]
const steps = fc.array(
  fc
    .record({
      do: fc.constantFrom(...names),
      from: fc.nat(most - 1),
      length: fc.nat(most),
      isReverse: fc.boolean(),
      rows: fc.constantFrom(1, 2, most),
      meanwhile: fc.constantFrom('put' as const, 'delete' as const, 'ahead' as const, undefined),
    })
    .map(({ length, ...step }) => ({ ...step, to: Math.min(most, step.from + length) })),
  { maxLength: 120, size: 'max' },
)

describe('rows that come and go are those of a plain model', () => {
  for (const [name, backend] of Object.entries(backends)) {
    test(name, () =>
      fc.assert(
        fc.property(steps, (taken) => {
          const beside = new Beside(backend())
          for (const each of taken) {
            beside.take(each)
            if (each.do !== 'range') continue
            beside.look()
          }
          beside.look()
        }),
        { numRuns: 400 },
      ),
    )
  }
})
