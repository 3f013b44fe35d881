/** A list of sorted runs is a sorted array, however it grows and shrinks. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { runLength, SortedList } from '../../../src/state/rows/sorted-list.ts'

type Step =
  | { readonly do: 'rise' | 'fall' | 'scatter' | 'remove'; readonly from: number; readonly count: number }
  | { readonly do: 'take'; readonly below: number }

const most = 4000
const someStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('rise' as const, 'fall' as const, 'scatter' as const, 'remove' as const),
      from: fc.nat(most),
      count: fc.integer({ min: 1, max: runLength }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('take' as const), below: fc.nat(most) }) },
)

/** Numbers that a step adds or removes. */
function numbersOf(step: Extract<Step, { from: number }>): number[] {
  const by = { rise: 1, fall: -1, scatter: 1597, remove: 3 }[step.do]
  return Array.from({ length: step.count }, (_, i) => (step.from + by * i + 4 * most) % most)
}

describe('a sorted list', () => {
  test('agrees with a sorted array under additions, removals and what is taken from its front', () => {
    const property = fc.property(fc.array(someStep, { minLength: 10, maxLength: 40 }), fc.nat(most), (steps, from) => {
      const list = new SortedList<number>((a, b) => a - b)
      const model = new Set<number>()
      const inOrder = (): number[] => [...model].sort((a, b) => a - b)
      for (const step of steps) {
        if (step.do === 'take') {
          const taken = inOrder().filter((n) => n < step.below)
          assert.deepEqual(
            list.takeWhile((n) => n < step.below),
            taken,
          )
          for (const n of taken) model.delete(n)
        } else {
          for (const n of numbersOf(step)) {
            if (step.do === 'remove') {
              list.remove(n)
              model.delete(n)
            } else if (!model.has(n)) {
              list.add(n)
              model.add(n)
            }
          }
        }
        assert.equal(list.size, model.size)
        assert.equal(list.first, inOrder()[0])
      }
      const shown: number[] = []
      list.each(
        (n) => n < from,
        (n) => shown.push(n) < 700,
      )
      assert.deepEqual(
        shown,
        inOrder()
          .filter((n) => n >= from)
          .slice(0, 700),
      )
    })
    fc.assert(property, { numRuns: 40 })
  })

  test('compares few items for each that comes or goes, wherever that is', () => {
    let compared = 0
    const list = new SortedList<number>((a, b) => {
      compared++
      return a - b
    })
    const count = 20_000
    for (let i = 0; i < count; i++) list.add((i * 7919) % count)
    for (let i = 0; i < count; i++) list.remove((i * 104_729) % count)
    assert.equal(list.size, 0)
    assert.ok(compared < 2 * count * (Math.log2(count) + 6), `${compared} comparisons`)
  })
})
