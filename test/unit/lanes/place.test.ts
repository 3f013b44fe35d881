import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isBefore, Places } from '../../../src/lanes/levels/place.ts'
import { Random } from '../../../src/base/random.ts'

interface Handed {
  /** The numbers of the hand-offs on the way. */
  readonly path: readonly number[]
  readonly sub: number
}

/** The order of a queue: who is fewer hand-offs away, then whose way parts from the other's by the smaller number. */
function inQueue(a: Handed, b: Handed): number {
  if (a.path.length !== b.path.length) return a.path.length - b.path.length
  for (const [at, number] of a.path.entries()) if (number !== b.path[at]) return number - (b.path[at] as number)
  return 0
}

/** Goes on from a place, one hand-off further. */
function onward(places: Places, from: Handed, number: number): Handed {
  return { path: [...from.path, number], sub: places.under(from.sub, number) + 1 }
}

const source: Handed = { path: [], sub: 0 }

/** Ways of a record to the last level: most places hand on up to `few`, one of each way up to `many`. */
function ways(random: Random, places: Places, levels: number, few: number, many: number): Handed[] {
  return Array.from({ length: 300 }, () => {
    const wide = random.int(levels - 1)
    let at = source
    for (let level = 0; level < levels - 1; level++)
      at = onward(places, at, 1 + random.int(level === wide ? many : few))
    return at
  })
}

describe('places', () => {
  for (const [levels, few, many] of [
    [2, 1, 60_000_000],
    [3, 70, 260_000],
    [5, 8, 260_000],
    [7, 4, 260_000],
    [9, 4, 260_000],
    [12, 2, 260_000],
    [12, 4, 2000],
    [16, 4, 4],
  ] as const) {
    test(`${levels} levels, of which one hands on ${many} and the others ${few}: in the order of a queue`, () => {
      const places = new Places(levels)
      const all = ways(new Random(levels), places, levels, few, many)
      for (const a of all) {
        for (const b of all) {
          const before = inQueue(a, b)
          assert.equal(isBefore(0, 0, a.sub, { at: 0, seq: 0, sub: b.sub }), before < 0, `${a.path} and ${b.path}`)
        }
      }
      assert.equal(places.hasRunOut, false)
    })
  }

  test('what a stage passes on, and what that hands over, has its turn among what its record hands over', () => {
    const places = new Places(4)
    const first = places.under(0, 1) + 1
    const passed = places.under(0, 2)
    const last = places.under(0, 3) + 1
    const below = Array.from({ length: 1000 }, (_, at) => places.under(passed, at + 1) + 1)
    assert.ok(passed > 0 && passed < first)
    assert.deepEqual(
      [first, ...below, last],
      [first, ...below, last].toSorted((a, b) => a - b),
    )
    assert.equal(new Set([first, ...below, last]).size, 1002)
  })

  test('where there are more than can be told apart, they stay in their order among what follows from the same place', () => {
    const places = new Places(12)
    const random = new Random(1)
    let at = source
    for (let level = 0; level < 11; level++) {
      const share = [1, 2, 300, 5000, 70_000, 80_000].map((number) => onward(places, at, number))
      const next = onward(places, { ...at, sub: at.sub }, 80_001)
      const subs = [...share, next].map(({ sub }) => sub)
      assert.deepEqual(
        subs,
        subs.toSorted((a, b) => a - b),
      )
      at = share[random.int(share.length)] as Handed
    }
    assert.equal(places.hasRunOut, true)
    // The next one of its level comes behind all of it.
    const parents = [1, 2, 3].map((number) => places.under(0, number))
    const children = parents.map((parent) => places.under(places.under(parent, 60_000_000), 60_000_000))
    assert.deepEqual(
      parents.flatMap((parent, n) => [parent, children[n] as number]).toSorted((a, b) => a - b),
      parents.flatMap((parent, n) => [parent, children[n] as number]),
    )
  })

  test('where every place hands on once, all are told apart however deep it goes', () => {
    const places = new Places(40)
    const random = new Random(1)
    for (let way = 0; way < 20; way++) {
      let at = onward(places, source, 1 + random.int(20))
      for (let level = 1; level < 39; level++) at = onward(places, at, 1)
    }
    assert.equal(places.hasRunOut, false)
  })

  test('a number beyond all comes with the last one', () => {
    const places = new Places(3)
    assert.ok(places.under(0, 2 ** 40) >= places.under(0, 60_000_000))
    assert.ok(places.under(0, 2 ** 40) < 1)
  })
})
