/** Records without a partner: in which order they are told, and that those which are not due cost nothing. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { Rec } from '../../../src/operators/contract.ts'
import { WaitingRecords } from '../../../src/operators/joins/waiting-records.ts'

import { serdes } from '../../../src/serde/index.ts'
import { MemoryBackend } from '../../../src/state/backends/memory-backend.ts'
import type { KeyValueStore, StoreSpec } from '../../../src/state/contract.ts'
import { type Waiting, waitingSerde } from '../../../src/topology/serdes/internal-serdes.ts'
import { open, specOf } from '../state/store-suite.ts'

const spec = specOf({
  keySerde: serdes.bytes as StoreSpec['keySerde'],
  valueSerde: waitingSerde(serdes.string, serdes.json(), serdes.json()) as StoreSpec['valueSerde'],
  timestamped: false,
})

type Store = KeyValueStore<unknown, Waiting>

function waitingIn(store: Store, deadlineOf: (timestamp: number, left: boolean) => number): WaitingRecords {
  const waiting = new WaitingRecords(store, serdes.string, deadlineOf)
  waiting.init()
  return waiting
}

const recordOf = (key: string, value: number, timestamp: number): Rec =>
  new Rec(key, value, timestamp, [], undefined as never, undefined, undefined)

interface Place {
  readonly key: string
  readonly timestamp: number
  readonly left: boolean
}

type Step =
  | ({ readonly do: 'add' | 'matched' } & Place)
  | { readonly do: 'due'; readonly ms: number }
  | { readonly do: 'forget'; readonly ms: number }
  | { readonly do: 'restart' }

const someStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('add' as const, 'add' as const, 'matched' as const),
      key: fc.constantFrom('', 'a', 'ab', 'b', 'ä'),
      timestamp: fc.nat(60),
      left: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('due' as const, 'forget' as const), ms: fc.nat(9) }) },
  { weight: 1, arbitrary: fc.constant({ do: 'restart' as const }) },
)

const nameOf = ({ key, timestamp, left }: Place): string => `${timestamp} ${left} ${key}`

/** By time, then by side, then by the key's bytes. */
const oldestFirst = (a: Place, b: Place): number =>
  a.timestamp - b.timestamp || Number(a.left) - Number(b.left) || Buffer.compare(Buffer.from(a.key), Buffer.from(b.key))

describe('records that wait for a partner', () => {
  test('are told oldest first, however much longer one side waits than the other', () => {
    const waits = fc.tuple(fc.nat(30), fc.nat(30))
    const property = fc.property(fc.array(someStep, { maxLength: 120 }), waits, (steps, [ofLeft, ofRight]) => {
      const deadlineOf = (timestamp: number, left: boolean): number => timestamp + (left ? ofLeft : ofRight)
      const store = open<Store>(spec, new MemoryBackend())
      let records = waitingIn(store, deadlineOf)
      const waiting = new Map<string, Place & { readonly values: number[] }>()
      let told: Place[] = []
      let now = 0
      let count = 0
      for (const step of steps) {
        if (step.do === 'add') {
          records.add(recordOf(step.key, ++count, step.timestamp), step.left)
          const values = waiting.get(nameOf(step))?.values ?? []
          waiting.set(nameOf(step), { ...step, values: [...values, count] })
          told = told.filter((place) => nameOf(place) !== nameOf(step))
        } else if (step.do === 'matched') {
          // Of those that were told, nothing is taken back.
          records.matched(step.key, step.timestamp, step.left)
          waiting.delete(nameOf(step))
        } else if (step.do === 'due') {
          now += step.ms
          const due = [...waiting.values()].filter(({ timestamp, left }) => deadlineOf(timestamp, left) <= now)
          due.sort(oldestFirst)
          const shown = records.takeDue(now).map(({ timestamp, waiting: { key, left, records } }) => ({
            ...{ timestamp, key, left, values: records.map(({ value }) => value) },
          }))
          assert.deepEqual(
            shown,
            due.map(({ timestamp, key, left, values }) => ({ timestamp, key, left, values })),
          )
          for (const place of due) waiting.delete(nameOf(place))
          told.push(...due)
        } else if (step.do === 'forget') {
          records.forget(now - step.ms)
          told = told.filter(({ timestamp }) => timestamp >= now - step.ms)
        } else records = waitingIn(store, deadlineOf)
        const all = [...waiting.values()]
        assert.equal(records.size, all.length)
        assert.equal(records.oldest, Math.min(Number.POSITIVE_INFINITY, ...all.map(({ timestamp }) => timestamp)))
        const deadlines = all.map(({ timestamp, left }) => deadlineOf(timestamp, left))
        assert.equal(records.nextDeadline, Math.min(Number.POSITIVE_INFINITY, ...deadlines))
        for (const place of told) assert.notDeepEqual(records.toldOf(place.key, place.timestamp, place.left), [])
      }
    })
    fc.assert(property, { numRuns: 300 })
  })

  for (const [name, ofLeft, ofRight] of [
    ['as long on both sides', 5000, 5000],
    ['for longer on the left', 9000, 10],
    ['for longer on the right', 10, 9000],
  ] as const) {
    test(`are not looked at before they are due, where they wait ${name}`, () => {
      let looks = 0
      const records = waitingIn(open<Store>(spec, new MemoryBackend()), (timestamp, left) => {
        looks++
        return timestamp + (left ? ofLeft : ofRight)
      })
      const count = 10_000
      let told = 0
      for (let at = 0; at < count; at++) {
        for (const left of [true, false]) records.add(recordOf('k', at, at), left)
        told += records.takeDue(at).length
        assert.ok(records.nextDeadline > at)
      }
      assert.equal(told + records.size, 2 * count)
      // Each that is told, the first of each side that is not, and the first of each side for the next deadline.
      assert.ok(looks <= told + 4 * count, `${looks} looks at ${told} that are told`)
    })
  }
})
