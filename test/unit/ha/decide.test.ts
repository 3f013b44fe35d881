import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import {
  type Candidate,
  compareCandidates,
  meetsCriteria,
  Readiness,
  type Self,
  turn,
  vacancy,
} from '../../../src/ha/decide.ts'
import { FreshClock } from '../../../src/ha/fresh-clock.ts'
import { LogView } from '../../../src/ha/log/log-view.ts'
import { decode, type Encoded, encode, type HaRecord } from '../../../src/ha/log/records.ts'
import { settings, statusRecord } from './support.ts'

const moment = { now: 0, fresh: 0, live: true }
const pods = ['a', 'b', 'c'] as const

function fold(log: ReadonlyArray<Encoded & { readonly offset: number }>): LogView {
  const view = new LogView()
  for (const { key, value, offset } of log) {
    const record = decode(key, value)
    if (record.kind !== 'bad') view.apply(record, offset, moment)
  }
  return view
}

const record: fc.Arbitrary<HaRecord> = fc.oneof(
  fc
    .record({ epoch: fc.integer({ min: 1, max: 5 }), podId: fc.constantFrom(...pods), nonce: fc.uuid() })
    .map(
      (fields) =>
        ({ kind: 'claim', incarnation: 'life', cause: 'BOOT', commandOffset: null, why: '', ...fields }) as const,
    ),
  fc
    .record({ podId: fc.constantFrom(...pods), tokenEpoch: fc.integer({ min: 0, max: 5 }), paused: fc.boolean() })
    .map((fields) => statusRecord(fields)),
  fc.record({ epoch: fc.integer({ min: 1, max: 5 }), podId: fc.constantFrom(...pods), paused: fc.boolean() }).map(
    (fields) =>
      ({
        kind: 'release',
        incarnation: 'life',
        target: null,
        commitId: null,
        commandOffset: null,
        exhausted: false,
        unused: false,
        faults: [],
        ...fields,
      }) as const,
  ),
)

const logs = fc
  .array(record, { maxLength: 40 })
  .map((records) => records.map((each, offset) => ({ ...encode(each), offset })))

describe('the fold of the log', () => {
  test('the first claim of the highest epoch holds the token', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const claims = log.flatMap(({ key, value }) => {
          const each = decode(key, value)
          return each.kind === 'claim' ? [each] : []
        })
        const epoch = Math.max(0, ...claims.map((claim) => claim.epoch))
        const view = fold(log)
        assert.equal(view.epoch, epoch)
        assert.equal(view.holder?.podId, claims.find((claim) => claim.epoch === epoch)?.podId)
      }),
    )
  })

  test('compaction, however far it went, leaves the same holder of the same epoch', () => {
    fc.assert(
      fc.property(logs, fc.nat(40), (log, upTo) => {
        const lastOf = new Map(log.filter(({ offset }) => offset < upTo).map(({ key, offset }) => [key, offset]))
        const compacted = log.filter(({ key, offset }) => offset >= upTo || lastOf.get(key) === offset)
        const [whole, less] = [fold(log), fold(compacted)]
        assert.equal(less.epoch, whole.epoch)
        assert.deepEqual(less.holder, whole.holder)
        for (let epoch = 1; epoch <= 5; epoch++) assert.deepEqual(less.claimOf(epoch), whole.claimOf(epoch))
      }),
    )
  })

  test('only the holder of an epoch can release it', () => {
    const view = new LogView()
    const claim = { kind: 'claim', epoch: 1, podId: 'a', nonce: 'n', incarnation: 'life' } as const
    view.apply({ ...claim, cause: 'BOOT', commandOffset: null, why: '' }, 0, moment)
    const release = { kind: 'release', epoch: 1, target: null, commitId: null, paused: true } as const
    const rest = { commandOffset: null, exhausted: false, unused: false, faults: [] }
    view.apply({ ...release, ...rest, podId: 'b', incarnation: 'life' }, 1, moment)
    view.apply({ ...release, ...rest, podId: 'a', incarnation: 'other' }, 2, moment)
    assert.equal(view.release, undefined)
    view.apply({ ...release, ...rest, podId: 'a', incarnation: 'life' }, 3, moment)
    assert.equal(view.releases.get(1)?.offset, 3)
    assert.equal(view.paused, true)
  })

  test('whether it is paused is what the holder says, also when a younger process of its pod has spoken', () => {
    const view = new LogView()
    const claim = { kind: 'claim', epoch: 1, podId: 'a', nonce: 'n', incarnation: 'life' } as const
    const holder = { podId: 'a', incarnation: 'life', tokenEpoch: 1 }
    view.apply({ ...claim, cause: 'BOOT', commandOffset: null, why: '' }, 0, moment)
    view.apply(statusRecord({ ...holder, generation: 0 }), 1, moment)
    view.apply(statusRecord({ podId: 'a', incarnation: 'younger', generation: 2 }), 2, moment)
    assert.equal(view.paused, false)
    view.apply(statusRecord({ ...holder, generation: 0, paused: true }), 3, moment)
    assert.equal(view.paused, true)
    assert.equal(view.peers.get('a')?.status.incarnation, 'younger')
  })
})

describe('whose turn it is', () => {
  const candidate = fc.record(
    {
      podId: fc.constantFrom('b', 'c', 'd', 'e'),
      ready: fc.boolean(),
      barred: fc.constant(false),
      diskFull: fc.boolean(),
      failoverPriority: fc.integer({ min: 0, max: 3 }),
      lagRecords: fc.nat(3),
    },
    { noNullPrototype: true },
  )
  const groups = fc.uniqueArray(candidate, { selector: (each) => each.podId, minLength: 1, maxLength: 4 })

  /** A view in which pod `gone` held the token and has left. */
  function viewOf(group: ReadonlyArray<Omit<Candidate, 'barred'>>) {
    const view = new LogView()
    const claim = { kind: 'claim', epoch: 1, podId: 'gone', nonce: 'n', incarnation: 'life' } as const
    view.apply({ ...claim, cause: 'BOOT', commandOffset: null, why: '' }, 0, { ...moment, live: false })
    group.forEach(({ ready, ...fields }, i) => {
      const state = ready ? 'READY_STANDBY' : 'CATCHING_UP'
      view.apply(statusRecord({ ...fields, state }), i + 1, moment)
    })
    return view
  }

  test('every willing candidate has a turn of its own, in the order of rank; the unready only where nobody is ready', () => {
    fc.assert(
      fc.property(groups, (group) => {
        const view = viewOf(group)
        const turns = group.map((each) => {
          const self: Self = {
            podId: each.podId,
            incarnation: 'life',
            candidate: each,
            joinedFresh: 0,
            logIsNew: false,
          }
          const vacant = vacancy(view, self, 0, settings())
          assert.ok(vacant)
          return { each, at: turn(view, self, vacant, 0, settings())?.at }
        })
        const willing = group.filter((each) => each.failoverPriority > 0)
        const someReady = willing.some((each) => each.ready)
        const expected = willing.filter((each) => each.ready || !someReady).toSorted(compareCandidates)
        const order = turns
          .filter(({ at }) => at !== undefined)
          .toSorted((a, b) => (a.at ?? 0) - (b.at ?? 0))
          .map(({ each }) => each.podId)
        assert.deepEqual(
          order,
          expected.map((each) => each.podId),
        )
        assert.equal(new Set(turns.map(({ at }) => at).filter((at) => at !== undefined)).size, expected.length)
      }),
    )
  })
})

describe('readiness', () => {
  const facts = (lagRecords: number, tailAgeMs = 0, ackAgeMs = 0) => ({
    progress: { open: true, lagRecords, lagMs: 0, freshnessMs: 0 },
    tailAgeMs,
    ackAgeMs,
    caughtUp: true,
    blocked: false,
  })

  test('is entered after two checks in a row and left at twice the measure', () => {
    const readiness = new Readiness()
    const seen = [50, 150, 50, 50, 150, 199, 201, 150, 50, 50].map((lag) => {
      readiness.check(facts(lag), settings({ readyMaxLagRecords: 100 }))
      return readiness.ready
    })
    assert.deepEqual(seen, [false, false, false, true, true, true, false, false, false, true])
  })

  test('a stale view is no view', () => {
    assert.equal(meetsCriteria(facts(0, 301), settings(), 1), false)
    assert.equal(meetsCriteria(facts(0, 299), settings(), 1), true)
    assert.equal(meetsCriteria(facts(0, 0, 301), settings(), 1), false)
    assert.equal(meetsCriteria({ ...facts(0), progress: undefined }, settings(), 1), false)
  })
})

test('fresh time never runs faster than the clock, and not at all without acknowledged heartbeats', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ gap: fc.nat(1000), ack: fc.boolean() }), { maxLength: 50 }), (steps) => {
      const clock = new FreshClock(200, 300)
      let now = 0
      for (const { gap, ack } of steps) {
        const before = clock.value
        now += gap
        if (ack) clock.acknowledged(now)
        clock.reachedEnd(now)
        const ran = clock.value - before
        assert.ok(ran >= 0 && ran <= Math.min(gap, 200))
        if (clock.ackAge(now) > 300) assert.equal(ran, 0)
      }
    }),
  )
})
