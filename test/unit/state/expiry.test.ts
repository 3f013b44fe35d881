/** Window stores in memory while windows come, close and go: whole segments, parts of them, and epochs that abort. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import type { SealedChanges, WindowStore } from '../../../src/state/contract.ts'
import { restoreEntry } from '../../../src/state/rows/changelog.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import { checkpointAt } from './backend-suite.ts'
import { open, specOf } from './store-suite.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

type Step =
  | { readonly do: 'put'; readonly key: string; readonly back: number; readonly value: number | null }
  | { readonly do: 'seal' | 'apply' | 'discard' | 'look' }
  | { readonly do: 'advance'; readonly by: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      key: fc.constantFrom('a', 'b', 'a\0', ''),
      back: fc.nat(40),
      value: fc.option(fc.nat(9), { freq: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), by: fc.nat(25) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('seal' as const, 'apply' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('discard' as const, 'look' as const) }) },
)

const spec = specOf({ kind: 'window', windowSizeMs: 10, retentionMs: 20 })

/** The store with its backend, and what a changelog has heard of it. */
class Scene {
  now = 0
  readonly backend = new MemoryBackend()
  readonly store = open<WindowStore<string, number>>(spec, this.backend, () => this.now)
  readonly #sealed: Array<{ epoch: number; changes: SealedChanges | null; now: number }> = []
  readonly #fold = new Map<string, string>()
  #epoch = 0
  #committedNow = 0

  run(step: Step): void {
    if (step.do === 'put') {
      const start = Math.max(0, this.now - step.back)
      this.store.put(step.key, step.value, start - (start % 5), start)
    } else if (step.do === 'advance') this.now += step.by
    else if (step.do === 'seal') this.seal()
    else if (step.do === 'apply') this.apply()
    else if (step.do === 'discard') {
      this.store.discard()
      this.#sealed.length = 0
      this.now = this.#committedNow
    } else this.check()
  }

  seal(): void {
    const epoch = ++this.#epoch
    this.#sealed.push({ epoch, changes: this.store.seal(epoch), now: this.now })
  }

  apply(): void {
    const oldest = this.#sealed.shift()
    if (oldest === undefined) return
    this.#committedNow = oldest.now
    if (oldest.changes === null) return
    oldest.changes.changes.forEach(([key, value], i) => {
      const timestamp = oldest.changes?.timestamps[i] ?? 0
      const [at, row] = restoreEntry(spec, { key, value, timestamp })
      if (row === null) this.#fold.delete(hex(at))
      else this.#fold.set(hex(at), hex(row))
    })
    this.store.applied(oldest.epoch, checkpointAt(oldest.epoch))
  }

  check(): void {
    const rows = [...this.backend.range(undefined, undefined)].map(([key, value]) => [hex(key), hex(value)])
    assert.deepEqual(rows, [...this.#fold].sort(), 'the committed rows are the fold of the changelog, in order')
    assert.equal(this.backend.entries() >= rows.length, true)
  }
}

describe('a window store in memory', () => {
  test('is always the fold of its changelog, whatever expires, aborts or is put back', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const scene = new Scene()
        for (const one of steps) {
          scene.run(one)
          if (one.do === 'apply' || one.do === 'discard') scene.check()
        }
        scene.seal()
        for (let i = 0; i < 100; i++) scene.apply()
        scene.check()
      }),
      { numRuns: 500 },
    )
  })

  test('shows each window within its retention, and tells nobody of one that came and went within an epoch', () => {
    let now = 0
    const store = open<WindowStore<string, number>>(spec, new MemoryBackend(), () => now)
    let told = 0
    for (let epoch = 1; epoch <= 50; epoch++) {
      for (let i = 0; i < 100; i++) {
        now += 1
        store.put(`k${i % 7}`, i, now - (now % 10), now)
        assert.equal(store.fetch(`k${i % 7}`, now - (now % 10))?.value, i)
      }
      const newest = now - (now % 10)
      assert.equal([...store.fetchAll(newest - 10, newest)].length, 8)
      const sealed = store.seal(epoch)
      told += sealed?.count ?? 0
      store.applied(epoch, checkpointAt(epoch))
      assert.ok(store.entries() <= 21, `${store.entries()} windows are left`)
    }
    // 500 segments of 7 windows came; of each epoch's ten segments three are left when it is sealed, and go in the next.
    assert.ok(told < 50 * 45, `${told} changes were told`)
  })
})
