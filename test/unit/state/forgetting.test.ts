/**
 * What a store has forgotten follows from its input: commits may fall anywhere, runs may be lost and begun again from
 * their last commit, in their own files or from the changelog; readers see the same at every step, and the same rows
 * are left in the end.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { restoreEntry } from '../../../src/state/rows/changelog.ts'
import type {
  ByteChange,
  SealedChanges,
  SessionStore,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
  TimestampedKeyValueStore,
  VersionedStore,
  WindowStore,
} from '../../../src/state/contract.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { readOnlyView } from '../../../src/state/read-only-view.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-forgetting-'))
const durable = lmdbBackends({ dir, applicationId: 'forgetting', maxStores: 64 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

const backends: Readonly<Record<string, () => StoreBackend>> = {
  memory: () => new MemoryBackend(),
  lmdb: () => durable.open(`store-${stores++ % 32}`, 0),
  'write-behind': () => new WriteBehind(durable.open(`store-${stores++ % 32}`, 0)),
}

/** A record: event time goes on before it, and it is so much older than that. */
interface Input {
  readonly key: string
  readonly by: number
  readonly back: number
  readonly value: number | null
}

/**
 * What happens behind a record; `written`, `crashed`: what is held in front of the files is written, or lost; `stepped`: some
 * of it is written, and stays; `shrunk`: what stayed goes.
 */
type Cut = 'nothing' | 'seal' | 'commit' | 'lost' | 'rebuilt' | 'written' | 'stepped' | 'shrunk' | 'crashed'

interface Kind {
  readonly spec: StoreSpec
  put(store: StoreLifecycle, input: Input, now: number): void
  look(store: StoreLifecycle, input: Input, now: number): unknown
}

const window = (store: unknown): WindowStore<string, number> => store as WindowStore<string, number>
const session = (store: unknown): SessionStore<string, number> => store as SessionStore<string, number>
const table = (store: unknown): TimestampedKeyValueStore<string, number> =>
  store as TimestampedKeyValueStore<string, number>
const versions = (store: unknown): VersionedStore<string, number> => store as VersionedStore<string, number>
const before = (now: number, { back }: Input): number => Math.max(0, now - back)

const kinds: Readonly<Record<string, Kind>> = {
  window: {
    spec: specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 25 }),
    put(store, input, now) {
      const time = before(now, input)
      window(store).put(input.key, input.value, time - (time % 5), time)
    },
    look(store, input, now) {
      const time = before(now, input)
      return [
        window(store).fetch(input.key, time - (time % 5))?.value,
        [...window(store).fetchRange(input.key, 0, now)],
        [...window(store).fetchAll(time, now)],
        [...window(store).all()],
      ]
    },
  },
  'tumbling window': {
    // Its segments are shorter than its windows, and begin elsewhere.
    spec: specOf({ kind: 'window', windowSizeMs: 7, retentionMs: 9, tumbling: true }),
    put(store, input, now) {
      const time = before(now, input)
      window(store).put(input.key, input.value, time - (time % 7), time)
    },
    look(store, input, now) {
      return [[...window(store).fetchRange(input.key, 0, now)], [...window(store).all()]]
    },
  },
  'window with duplicates': {
    spec: specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 25, retainDuplicates: true }),
    put(store, input, now) {
      window(store).put(input.key, input.value, before(now, input), now)
    },
    look(store, input, now) {
      return [[...window(store).fetchRange(input.key, 0, now)], [...window(store).all()]]
    },
  },
  session: {
    spec: specOf({ kind: 'session', timestamped: false, windowSizeMs: 5, retentionMs: 30 }),
    put(store, input, now) {
      const end = before(now, input)
      session(store).put(input.key, Math.max(0, end - 4), end, input.value)
    },
    look(store, input, now) {
      const end = before(now, input)
      return [
        session(store).fetchSession(input.key, Math.max(0, end - 4), end),
        [...session(store).findSessions(input.key, 0, now)],
        [...session(store).all()],
      ]
    },
  },
  'table with a time to live': {
    spec: specOf({ ttlMs: 30 }),
    put(store, input, now) {
      table(store).put(input.key, input.value, before(now, input))
    },
    look(store, input) {
      return [table(store).get(input.key), [...table(store).all()]]
    },
  },
  versioned: {
    spec: specOf({ kind: 'versioned', timestamped: false, retentionMs: 30 }),
    put(store, input, now) {
      versions(store).put(input.key, input.value, before(now, input))
    },
    look(store, input, now) {
      return [
        versions(store).get(input.key),
        ...Array.from({ length: 10 }, (_, i) =>
          versions(store).get(input.key, Math.max(0, before(now, input) - 4 * i)),
        ),
        [...versions(store).all()],
      ]
    },
  },
}

function write(behind: WriteBehind, what: Cut): void {
  if (what === 'written') behind.writeAll()
  else if (what === 'shrunk') behind.shrink()
  else if (what === 'stepped') {
    behind.write(2)
    behind.written(true)
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

/** A store that takes in records one by one, commits as it is told, and begins again where it was left. */
class Run {
  readonly #kind: Kind
  readonly #inputs: readonly Input[]
  readonly #times: readonly number[]
  #backend: StoreBackend
  #store: StoreLifecycle
  #now = 0
  #epoch = 0
  readonly #sealed: Array<{ epoch: number; changes: SealedChanges | null; at: number }> = []
  readonly #changelog: ByteChange[] = []
  /** Its length behind each epoch. */
  readonly #ends: number[] = [0]
  #committed = 0
  /** What queries saw behind the last commit. */
  #shown: unknown = []
  /** What was seen at each record. */
  readonly seen: unknown[] = []

  constructor(kind: Kind, backend: StoreBackend, inputs: readonly Input[]) {
    this.#kind = kind
    this.#inputs = inputs
    let time = 0
    this.#times = inputs.map(({ by }) => {
      time += by
      return time
    })
    this.#backend = backend
    this.#store = this.#open()
  }

  run(cuts: readonly Cut[]): void {
    let cut = 0
    for (let i = 0; i < this.#inputs.length; i++) {
      const input = this.#inputs[i] as Input
      this.#now = this.#times[i] as number
      this.#kind.put(this.#store, input, this.#now)
      this.seen[i] = this.#kind.look(this.#store, input, this.#now)
      assert.deepEqual(this.#queried(), this.#shown, 'queries see the last commit')
      const what = cuts[cut++]
      if (what === 'seal') this.#seal(i + 1)
      else if (what === 'commit') this.#commit(i + 1)
      else if (what === 'lost') i = this.#again() - 1
      else if (what === 'rebuilt') i = this.#rebuilt() - 1
      else if (what === 'crashed') i = this.#crashed() - 1
      else if (what !== undefined && this.#backend instanceof WriteBehind) write(this.#backend, what)
    }
    this.#commit(this.#inputs.length)
    for (let left = 20; this.#store.hasExpired; left--) {
      assert.ok(left > 0, 'the store comes to rest')
      this.#commit(this.#inputs.length)
    }
  }

  /** What the backend holds, and what a query sees. */
  left(): { rows: string[]; shown: unknown } {
    const rows = [...this.#backend.range(undefined, undefined)].map(([key, value]) => `${hex(key)}=${hex(value)}`)
    const last = this.#inputs[this.#inputs.length - 1] as Input
    return { rows, shown: this.#kind.look(readOnlyView(this.#store as never) as never, last, this.#now) }
  }

  close(): void {
    this.#backend.wipe()
    this.#store.close()
  }

  #open(): StoreLifecycle {
    return open<object>(this.#kind.spec, this.#backend, () => this.#now)
  }

  #seal(at: number): void {
    // As in the engine, an epoch is sealed once the one before it is committed.
    this.#apply()
    const epoch = ++this.#epoch
    this.#sealed.push({ epoch, changes: this.#store.seal(epoch, this.#now), at })
  }

  #apply(): void {
    for (const { epoch, changes, at } of this.#sealed.splice(0)) {
      changes?.changes.forEach(([key, value], i) => {
        const timestamp = changes.timestamps[i] as number
        const record = { key: key.slice(), value: value === null ? null : value.slice(), timestamp }
        this.#changelog.push(restoreEntry(this.#kind.spec, record))
      })
      this.#ends[epoch] = this.#changelog.length
      if (changes !== null) this.#store.applied(epoch, checkpointAt(epoch))
      this.#store.committed(epoch)
      this.#committed = at
      this.#shown = this.#queried()
    }
  }

  #queried(): unknown {
    const view = readOnlyView(this.#store as never) as { all(): Iterable<unknown> }
    return [...view.all()]
  }

  #commit(at: number): void {
    this.#seal(at)
    this.#apply()
  }

  #again(): number {
    this.#store.detach()
    return this.#reopen()
  }

  #rebuilt(): number {
    if (this.#backend instanceof MemoryBackend) {
      this.#store.close()
      this.#backend = new MemoryBackend()
    } else {
      this.#store.detach()
    }
    return this.#reopen(() => {
      this.#store.wipe()
      this.#store.restore(this.#changelog, checkpointAt(this.#epoch))
    })
  }

  #crashed(): number {
    this.#store.detach()
    if (!(this.#backend instanceof WriteBehind)) return this.#reopen()
    this.#backend = new WriteBehind(this.#backend.backend)
    const from = this.#ends[this.#backend.checkpoint()?.changelogOffset ?? 0]
    return this.#reopen(() => this.#store.restore(this.#changelog.slice(from), checkpointAt(this.#epoch)))
  }

  #reopen(restore?: () => void): number {
    this.#sealed.length = 0
    this.#now = Number.NEGATIVE_INFINITY
    this.#store = this.#open()
    restore?.()
    this.#now = this.#times[this.#committed - 1] ?? 0
    this.#store.begin(this.#now)
    assert.deepEqual(this.#queried(), this.#shown, 'queries see the last commit after a restart, too')
    return this.#committed
  }
}

const someInputs: fc.Arbitrary<Input[]> = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b', 'ab', ''),
    by: fc.oneof({ weight: 6, arbitrary: fc.nat(4) }, { weight: 1, arbitrary: fc.nat(60) }),
    back: fc.nat(40),
    value: fc.option(fc.nat(9), { freq: 6 }),
  }),
  { minLength: 1, maxLength: 50 },
)

const someCuts: fc.Arbitrary<Cut[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<Cut>('nothing') },
    { weight: 4, arbitrary: fc.constantFrom<Cut>('seal', 'commit', 'written', 'stepped', 'shrunk') },
    { weight: 1, arbitrary: fc.constantFrom<Cut>('lost', 'rebuilt', 'crashed') },
  ),
  { maxLength: 120 },
)

/** With a durable backend; in memory five times as many. */
const numRuns = Number(process.env.FORGETTING_RUNS ?? 25)

for (const [name, kind] of Object.entries(kinds)) {
  describe(`what a ${name} store forgets does not depend on where commits fall`, () => {
    for (const [backend, make] of Object.entries(backends)) {
      test(backend, () => {
        const property = fc.property(someInputs, someCuts, (inputs, cuts) => {
          const whole = new Run(kind, make(), inputs)
          whole.run([])
          const cut = new Run(kind, make(), inputs)
          cut.run(cuts)
          assert.deepEqual(cut.seen, whole.seen, 'what readers saw')
          assert.deepEqual(cut.left(), whole.left(), 'what is left')
          whole.close()
          cut.close()
        })
        fc.assert(property, { numRuns: backend === 'memory' ? 5 * numRuns : numRuns })
      })
    }
  })
}
