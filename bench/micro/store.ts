/**
 * Point operations of a store as an operator that counts does them: read, add one, write; a commit every 50,000 records.
 * Durable rows are written every 20 commits. `node bench/micro/store.ts [records] [keys]`
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serdes } from '../../src/serde/index.ts'
import { lmdbBackends } from '../../src/state/backends.ts'
import { memoryBackends } from '../../src/state/backends/memory-backend.ts'
import type {
  StoreBackend,
  StoreLifecycle,
  StoreSpec,
  TimestampedKeyValueStore,
  WindowStore,
} from '../../src/state/contract.ts'
import { openStore } from '../../src/state/open-store.ts'
import { WriteBehind } from '../../src/state/backends/write-behind.ts'

const records = Number(process.argv[2] ?? 1_000_000)
const keyCount = Number(process.argv[3] ?? 100_000)
const perCommit = 50_000

const spec = {
  name: 'counts',
  kind: 'key-value',
  keySerde: serdes.string,
  valueSerde: serdes.count,
  timestamped: true,
  changelog: true,
} as unknown as StoreSpec
const windowSpec: StoreSpec = { ...spec, kind: 'window', windowSizeMs: 60_000, retentionMs: 3_600_000 }

const encoded = Array.from({ length: keyCount }, (_, i) => new Uint8Array(Buffer.from(`key-${i}`)))

function open<S>(storeSpec: StoreSpec, backend: StoreBackend, streamTime: () => number): S & StoreLifecycle {
  return openStore(storeSpec, backend, 0, { streamTime }) as unknown as S & StoreLifecycle
}

const behind: WriteBehind[] = []

/** As a lane has it. */
function held(backend: StoreBackend): StoreBackend {
  if (!backend.durable) return backend
  const front = new WriteBehind(backend)
  behind.push(front)
  return front
}

function measure(name: string, store: StoreLifecycle, step: (key: string, bytes: Uint8Array, i: number) => void): void {
  let epoch = 0
  let committing = 0
  const run = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const bytes = encoded[(i * 7919) % keyCount] as Uint8Array
      // A new string each time, as decoding a record makes one.
      step(Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length), bytes, i)
      if ((i + 1) % perCommit === 0) {
        const before = performance.now()
        store.seal(++epoch)?.each(() => undefined)
        store.applied(epoch, { changelogOffset: i, commitId: `1.${epoch}`, topicId: 't' })
        if (epoch % 20 === 0) for (const each of behind) each.writeAll()
        committing += performance.now() - before
      }
    }
  }
  run(perCommit * 2)
  committing = 0
  const before = performance.now()
  run(records)
  const ms = performance.now() - before
  const perSecond = Math.round((records / ms) * 1000).toLocaleString('en')
  console.log(
    `${name.padEnd(28)} ${perSecond.padStart(12)} read+write/s, ${Math.round((committing / ms) * 100)} % in commits`,
  )
  store.close()
}

const dir = mkdtempSync(join(tmpdir(), 'millrace-bench-'))
try {
  for (const [backend, factory] of [
    ['memory', memoryBackends()],
    ['lmdb', lmdbBackends({ dir, applicationId: 'bench' })],
  ] as const) {
    let now = 0
    const counts = open<TimestampedKeyValueStore<string, number>>(spec, held(factory.open('counts', 0)), () => now)
    measure(`${backend}: key-value count`, counts, (key, bytes, i) => {
      const row = counts.get(key, bytes)
      counts.put(key, (row?.value ?? 0) + 1, i, bytes)
    })
    const windows = open<WindowStore<string, number>>(windowSpec, held(factory.open('windows', 0)), () => now)
    measure(`${backend}: windowed count`, windows, (key, bytes, i) => {
      now = i
      const start = i - (i % 60_000)
      const row = windows.fetch(key, start, bytes)
      windows.put(key, (row?.value ?? 0) + 1, start, i, bytes)
    })
    factory.close()
  }
} finally {
  rmSync(dir, { recursive: true, force: true })
}
