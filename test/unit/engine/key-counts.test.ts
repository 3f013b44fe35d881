/** Records of each key, against a `Map`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keySlot } from '../../../src/base/hash.ts'
import { Random } from '../../../src/base/random.ts'
import { KeyCounts } from '../../../src/engine/input/admission/key-counts.ts'

const slots = (count: number, of: (i: number) => number): number[] => Array.from({ length: count }, (_, i) => of(i))

for (const [what, all] of [
  ['of hashed keys', slots(4000, (i) => keySlot(Buffer.from(`k${i}`)))],
  ['of one partition of 1,024', slots(4000, (i) => i * 1024)],
  ['at both ends', [...slots(50, (i) => i), ...slots(50, (i) => 2 ** 31 - 1 - i)]],
] as const) {
  test(`counts keys as a map does: ${what}`, () => {
    const generator = new Random(7)
    const random = (): number => generator.next()
    const counts = new KeyCounts()
    const model = new Map<number, number>()
    for (let i = 0; i < 100_000; i++) {
      // Grows at first, and shrinks to nothing in the end.
      const isAdded = random() < (i < 30_000 ? 0.7 : 0.35)
      const slot = all[Math.floor(random() * all.length)] as number
      const before = model.get(slot) ?? 0
      assert.equal(counts.of(slot), before, `slot ${slot} at step ${i}`)
      if (isAdded) {
        const most = 1 + Math.floor(random() * 8)
        assert.equal(counts.addBelow(slot, most), before < most)
        if (before < most) model.set(slot, before + 1)
      } else {
        counts.remove(slot)
        if (before > 1) model.set(slot, before - 1)
        else model.delete(slot)
      }
    }
    for (const slot of all) assert.equal(counts.of(slot), model.get(slot) ?? 0)
    counts.clear()
    for (const slot of all) assert.equal(counts.of(slot), 0)
  })
}
