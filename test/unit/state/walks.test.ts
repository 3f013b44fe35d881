/** Walks over rows that come and go meanwhile: over every backend they show what a plain model shows. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { lmdbBackends } from '../../../src/state/backends.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { WriteBehind } from '../../../src/state/backends/write-behind.ts'
import type {
  KeyValueStore,
  SessionStore,
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
  WindowStore,
} from '../../../src/state/contract.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'millrace-walks-'))
const durable = lmdbBackends({ dir, applicationId: 'walks', maxStores: 4000 })
let stores = 0
after(() => {
  durable.close()
  rmSync(dir, { recursive: true, force: true })
})

/** A store whose rows are told apart by a number, in the order of which they are walked over. */
interface Walked {
  readonly lifecycle: StoreLifecycle
  write(row: number, value: number | null): void
  walk(): Iterable<readonly [row: number, value: unknown]>
}

type Kind = (backend: StoreBackend) => Walked

const sized = { windowSizeMs: 4, retentionMs: 2 ** 40 }
const spec = (over: Partial<StoreSpec>): StoreSpec => specOf({ timestamped: false, ...over })
const kinds: Readonly<Record<string, Kind>> = {
  'key-value store': (backend) => {
    const store = open<KeyValueStore<string, number>>(spec({}), backend)
    return {
      lifecycle: store,
      write: (row, value) => store.put(String.fromCharCode(97 + row), value),
      *walk() {
        for (const [key, value] of store.all()) yield [key.charCodeAt(0) - 97, value]
      },
    }
  },
  'window store': (backend) => {
    const store = open<WindowStore<string, number>>(spec({ kind: 'window', ...sized }), backend)
    return {
      lifecycle: store,
      write: (row, value) => store.put('k', value, row),
      *walk() {
        for (const [start, { value }] of store.fetchRange('k', 0, 100)) yield [start, value]
      },
    }
  },
  'window store, all keys': (backend) => {
    const store = open<WindowStore<string, number>>(spec({ kind: 'window', ...sized }), backend)
    return {
      lifecycle: store,
      write: (row, value) => store.put(`k${row % 3}`, value, Math.floor(row / 3)),
      *walk() {
        for (const [key, start, { value }] of store.all()) yield [start * 3 + Number(key.slice(1)), value]
      },
    }
  },
  'window store, one start': (backend) => {
    const store = open<WindowStore<string, number>>(spec({ kind: 'window', ...sized }), backend)
    return {
      lifecycle: store,
      write: (row, value) => store.put(String.fromCharCode(97 + row), value, 40),
      *walk() {
        for (const [key, , { value }] of store.fetchAll(40, 40)) yield [key.charCodeAt(0) - 97, value]
      },
    }
  },
  'session store': (backend) => {
    const store = open<SessionStore<string, number>>(spec({ kind: 'session', ...sized }), backend)
    return {
      lifecycle: store,
      write: (row, value) => store.put('k', row, row, value),
      *walk() {
        for (const [start, , value] of store.findSessions('k', 0, 100)) yield [start, value]
      },
    }
  },
}

const write = fc.record({
  do: fc.constant('write' as const),
  row: fc.nat(15),
  value: fc.option(fc.nat(9), { freq: 2 }),
})
const step = fc.oneof(
  { weight: 6, arbitrary: write },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('seal' as const, 'apply' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('flush' as const), keep: fc.boolean() }) },
)
const steps = fc.array(step, { maxLength: 60 })
/** What is written behind each row of the walk. */
const meanwhile = fc.array(fc.array(write, { maxLength: 4 }), { maxLength: 12 })

function runs(open: Kind, backend: () => StoreBackend, numRuns: number): void {
  const property = fc.property(steps, meanwhile, (before, during) => {
    const below = backend()
    const { lifecycle, write, walk } = open(below)
    const model = new Map<number, number>()
    const sealed: number[] = []
    let epoch = 0
    const put = ({ row, value }: { row: number; value: number | null }): void => {
      write(row, value)
      if (value === null) model.delete(row)
      else model.set(row, value)
    }
    for (const each of before) {
      if (each.do === 'write') put(each)
      if (each.do === 'seal' && lifecycle.seal(++epoch) !== null) sealed.push(epoch)
      if (each.do === 'apply') {
        const oldest = sealed.shift()
        if (oldest !== undefined) lifecycle.applied(oldest, checkpointAt(oldest))
      }
      if (each.do === 'flush' && below instanceof WriteBehind && below.write(3) >= 0) below.written(each.keep)
    }
    /** Rows that were there when the walk began, and have not gone since. */
    const old = new Set(model.keys())
    const seen: Array<readonly [number, unknown]> = []
    const expected: Array<readonly [number, unknown]> = []
    let last = -1
    for (const shown of walk()) {
      seen.push(shown)
      last = [...old].filter((row) => row > last).sort((a, b) => a - b)[0] ?? 100
      expected.push([last, model.get(last)])
      for (const each of during[seen.length - 1] ?? []) {
        put(each)
        if (each.value === null) old.delete(each.row)
      }
      if (seen.length > 16) break
    }
    const left = [...old].filter((row) => row > last)
    assert.deepEqual(seen, expected)
    assert.deepEqual(left, [], 'rows that are not shown')
    below.wipe()
    lifecycle.close()
  })
  fc.assert(property, { numRuns })
}

for (const [name, kind] of Object.entries(kinds)) {
  describe(`a walk over a ${name} shows what was there when it began, as it is by then`, () => {
    test('in memory', () => runs(kind, () => new MemoryBackend(), 300))
    test('on disk', () => runs(kind, () => new WriteBehind(durable.open(`store-${stores++}`, 0)), 100))
  })
}
