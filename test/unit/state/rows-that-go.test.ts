/** Rows that come and go, as sessions do that grow with each record: nothing of them is left to walk over, and nothing is lost. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, mock, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import type { SealedChanges, SessionStore, StoreBackend, StoreLifecycle } from '../../../src/state/contract.ts'
import { type ReadOnlySessionStore, readOnlyView } from '../../../src/state/read-only-view.ts'
import { keyString } from '../../../src/state/rows/bytes.ts'
import { restoreEntry } from '../../../src/state/rows/changelog.ts'
import { PlainTable } from '../../../src/state/versions/node-table.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

type Sessions = SessionStore<string, number> & StoreLifecycle

const dir = mkdtempSync(join(tmpdir(), 'millrace-going-'))
const durable = lmdbBackends({ dir, applicationId: 'going', maxStores: 4000 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

const inLmdb = (): StoreBackend => durable.open(`store-${stores++ % 2000}`, 0)
const backends: Readonly<Record<string, () => StoreBackend>> = {
  'in memory': () => new MemoryBackend(),
  'written behind': () => new WriteBehind(new MemoryBackend()),
  'written behind, on disk': () => new WriteBehind(inLmdb()),
  'on disk': inLmdb,
}

const spec = specOf({ kind: 'session', timestamped: false, retentionMs: 2 ** 40 })
const most = Number.MAX_SAFE_INTEGER

/** As the operator does: what the record touches goes, and a longer one comes. */
function grow(store: Sessions, key: string, time: number, gap = 1000): void {
  let [start, count] = [time, 0]
  for (const [from, end, value] of [...store.findSessions(key, time - gap, time + gap)]) {
    store.put(key, from, end, null)
    start = Math.min(start, from)
    count += value
  }
  store.put(key, start, time, count + 1)
}

function commit(store: Sessions, epoch: number): number {
  const count = store.seal(epoch)?.count ?? 0
  store.applied(epoch, checkpointAt(epoch))
  return count
}

/** How many rows are looked at to find the only session. */
function looksToFind(store: Sessions, last: number, records: number): number {
  const look = mock.method(PlainTable.prototype, 'get')
  try {
    assert.deepEqual([...store.findSessions('hot', last - 1000, last)], [[0, last, records]])
    return look.mock.callCount()
  } finally {
    look.mock.restore()
  }
}

describe('a session that grows with each of many records is found with a look at few rows', () => {
  for (const [name, backend] of Object.entries(backends)) {
    const records = 100

    test(`${name}, within an epoch`, () => {
      const store = open<Sessions>(spec, backend())
      // Greater than all keys below: the backend is asked about these.
      grow(store, 'zoo', 1)
      commit(store, 1)
      for (let i = 0; i < records; i++) grow(store, 'hot', i)
      assert.ok(looksToFind(store, records - 1, records) < 10)
      assert.equal(store.changedCount, 1)
      assert.equal(commit(store, 2), 1, 'of what came and went the changelog hears nothing')
      store.close()
    })

    test(`${name}, over epochs that are committed`, () => {
      const below = backend()
      const store = open<Sessions>(spec, below)
      const keys = ['a', 'b', 'hot', 'c']
      grow(store, 'zoo', 1)
      commit(store, 1)
      if (below instanceof WriteBehind) below.writeAll()
      for (let i = 0; i < records; i++) {
        for (const key of keys) grow(store, key, i)
        assert.ok(commit(store, i + 2) <= 2 * keys.length)
      }
      assert.ok(looksToFind(store, records - 1, records) < 10)
      assert.equal(store.entries(), keys.length + 1)
      if (below instanceof WriteBehind) {
        assert.equal(below.write(most), keys.length, 'of what came and went the backend hears nothing')
        below.written()
      }
      store.close()
    })

    test(`${name}, restored from its changelog`, () => {
      const first = open<Sessions>(spec, backend())
      const below = backend()
      const restored = open<Sessions>(spec, below)
      for (let i = 0; i < records; i++) {
        grow(first, 'hot', i)
        restored.restore(entriesOf(first.seal(i + 1)), checkpointAt(i + 1))
        first.applied(i + 1, checkpointAt(i + 1))
      }
      assert.ok(looksToFind(restored, records - 1, records) < 10)
      assert.equal(restored.entries(), 1)
      // All that a compacted changelog may have of a session.
      restored.restore([[Buffer.from(restored.rowOf('cold', 1, 2), 'latin1'), null]], checkpointAt(most))
      if (below instanceof WriteBehind) assert.equal(below.write(most), 1)
      first.close()
      restored.close()
    })
  }
})

function entriesOf(sealed: SealedChanges | null): Array<readonly [Uint8Array, Uint8Array | null]> {
  return (sealed?.changes ?? []).map(([key, value], i) => {
    const timestamp = sealed?.timestamps[i] as number
    return restoreEntry(spec, { key: key.slice(), value: value?.slice() ?? null, timestamp })
  })
}

type Model = ReadonlyMap<string, readonly [key: string, start: number, end: number, value: number]>
interface Sealed {
  readonly epoch: number
  readonly changes: ReturnType<typeof entriesOf> | null
  readonly content: Model
}

/** A store beside what it must hold, what of that is committed, and what its changelog says. */
class Beside {
  #store: Sessions
  #below: StoreBackend
  readonly #first: StoreBackend
  #open: Map<string, readonly [string, number, number, number]> = new Map()
  #committed: Model = new Map()
  #sealed: Sealed[] = []
  readonly #changelog: Array<readonly [Uint8Array, Uint8Array | null]> = []
  #epoch = 0

  constructor(below: StoreBackend) {
    this.#first = below
    this.#below = below
    this.#store = open<Sessions>(spec, below)
  }

  put(key: string, start: number, end: number, value: number | null): void {
    this.#store.put(key, start, end, value)
    const at = `${key}/${start}/${end}`
    this.#open.delete(at)
    if (value !== null) this.#open.set(at, [key, start, end, value])
  }

  grow(key: string, time: number): void {
    const own = [...this.#open.values()].filter(
      ([of, start, end]) => of === key && end >= time - 2 && start <= time + 2,
    )
    const found = [...this.#store.findSessions(key, time - 2, time + 2)]
    assert.deepEqual(
      found,
      own.sort(byEnd).map(([, ...rest]) => rest),
    )
    for (const [start, end] of found) this.put(key, start, end, null)
    this.put(
      key,
      Math.min(time, ...found.map(([start]) => start)),
      Math.max(time, ...found.map(([, end]) => end)),
      time,
    )
  }

  seal(): void {
    const sealed = this.#store.seal(++this.#epoch)
    const changes = sealed === null ? null : entriesOf(sealed)
    assert.equal(changes?.length, sealed?.count)
    this.#sealed.push({ epoch: this.#epoch, changes, content: new Map(this.#open) })
    assert.equal(this.#store.uncommittedBytes, 0)
    assert.equal(this.#store.changedCount, 0)
  }

  apply(): void {
    const oldest = this.#sealed.shift()
    if (oldest === undefined) return
    if (oldest.changes !== null) this.#store.applied(oldest.epoch, checkpointAt(oldest.epoch))
    this.#changelog.push(...(oldest.changes ?? []))
    this.#committed = oldest.content
    const fold = new Set<string>()
    for (const [key, value] of this.#changelog) {
      if (value === null) fold.delete(keyString(key))
      else fold.add(keyString(key))
    }
    const rows = [...this.#committed.values()].map(([key, start, end]) => this.#store.rowOf(key, start, end))
    assert.deepEqual([...fold].sort(), rows.sort(), 'the changelog gives what is committed')
  }

  /** The open and the sealed epochs are taken back; perhaps by another store in the place of this one. */
  undo(isAnother: boolean): void {
    if (isAnother) {
      this.#store.detach()
      this.#store = open<Sessions>(spec, this.#below)
    } else this.#store.discard()
    this.#sealed = []
    this.#open = new Map(this.#committed)
  }

  write(count: number): void {
    if (this.#below instanceof WriteBehind && this.#below.write(count) >= 0) this.#below.written()
  }

  /** Everything is written, and the files are opened anew. */
  reopen(): void {
    this.undo(true)
    if (!(this.#below instanceof WriteBehind)) return
    this.#store.detach()
    this.#below.writeAll()
    this.#below = new WriteBehind(this.#below.backend)
    this.#store = open<Sessions>(spec, this.#below)
  }

  /** Begins anew with the changelog alone. */
  restore(): void {
    this.undo(false)
    this.#store.wipe()
    for (let at = 0; at < this.#changelog.length; at += 7) {
      this.#store.restore(this.#changelog.slice(at, at + 7), checkpointAt(at))
      this.write(3)
    }
  }

  look(): void {
    const rows = (of: Model) => [...of.values()].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : byEnd(a, b)))
    assert.deepEqual([...this.#store.all()], rows(this.#open))
    for (const key of ['a', 'b']) {
      const own = rows(this.#open).filter(([of]) => of === key)
      assert.deepEqual(
        [...this.#store.findSessions(key, 0, most)],
        own.map(([, ...rest]) => rest),
      )
    }
    const view = readOnlyView(this.#store) as ReadOnlySessionStore<string, number>
    assert.deepEqual([...view.all()], rows(this.#committed), 'a view shows what is committed')
    if (this.#below instanceof WriteBehind) assert.equal(this.#below.entries(), this.#committed.size)
  }

  end(): void {
    this.look()
    for (const [key, start, end] of [...this.#open.values()]) this.put(key, start, end, null)
    this.seal()
    while (this.#sealed.length > 0) this.apply()
    this.look()
    if (this.#below instanceof WriteBehind) {
      this.#below.writeAll()
      assert.deepEqual([this.#below.heldBytes, this.#below.entriesAbout(), this.#below.backend.entries()], [0, 0, 0])
    }
    assert.equal(this.#store.entries(), 0)
    this.#first.wipe()
    this.#store.close()
  }
}

function byEnd(a: readonly [string, number, number, number], b: readonly [string, number, number, number]): number {
  return a[2] - b[2] || a[1] - b[1]
}

type Step = { readonly do: string; readonly key: string; readonly n: number; readonly value: number | null }

function take(beside: Beside, { do: what, key, n, value }: Step): void {
  if (what === 'put') beside.put(key, n % 4, n % 8, n % 4 > n % 8 ? null : value)
  else if (what === 'grow') beside.grow(key, n)
  else if (what === 'seal') beside.seal()
  else if (what === 'apply') beside.apply()
  else if (what === 'commit') {
    beside.seal()
    beside.apply()
  } else if (what === 'write') beside.write(1 + (n % 3))
  else if (what === 'undo') beside.undo(n % 2 === 0)
  else if (what === 'reopen') beside.reopen()
  else if (what === 'restore') beside.restore()
  else beside.look()
}

/** Few rows, so that each comes and goes many times, in every place where it may lie. */
const step = (names: readonly string[]): fc.Arbitrary<Step> =>
  fc.record({
    do: fc.constantFrom(...names),
    key: fc.constantFrom('a', 'b'),
    n: fc.nat(11),
    value: fc.option(fc.nat(99), { freq: 1 }),
  })
const steps = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: step(['put', 'put', 'grow']) },
    { weight: 8, arbitrary: step(['seal', 'apply', 'commit', 'write', 'look']) },
    { weight: 1, arbitrary: step(['undo', 'reopen', 'restore']) },
  ),
  { maxLength: 150, size: 'max' },
)

describe('rows that come and go are those of a plain model, whatever is sealed, taken back, written and restored', () => {
  for (const [name, backend] of Object.entries(backends)) {
    test(name, () =>
      fc.assert(
        fc.property(steps, (taken) => {
          const beside = new Beside(backend())
          for (const each of taken) take(beside, each)
          beside.end()
        }),
        { numRuns: name.endsWith('disk') ? 60 : 300 },
      ),
    )
  }
})
