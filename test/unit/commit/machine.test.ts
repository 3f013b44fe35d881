/** Every event in every phase of the commit, and any order of them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import {
  type CommitEffect,
  type CommitEvent,
  CommitMachine,
  type CommitPhase,
} from '../../../src/engine/commit/machine.ts'

const lanes = 2
const barrierTimeoutMs = 1000

const ack = (lane: number, epoch = 1, sent = 0, received = 0, taken = 0): CommitEvent => ({
  type: 'lane-ack',
  lane,
  epoch,
  taken,
  sent,
  received,
})
const applied = (lane: number, epoch = 1): CommitEvent => ({ type: 'lane-applied', lane, epoch })
const trigger: CommitEvent = { type: 'trigger', cause: 'interval' }

/** The shortest way to each phase. */
const ways: Readonly<Record<CommitPhase, readonly CommitEvent[]>> = {
  IDLE: [],
  QUEUED: [{ type: 'hold', held: true }, trigger],
  AWAITING_LANE_ACKS: [trigger],
  FLUSHING: [trigger, ack(0), ack(1)],
  SENDING_OFFSETS: [trigger, ack(0), ack(1), { type: 'flushed' }],
  IN_TX_COMMIT: [trigger, ack(0), ack(1), { type: 'flushed' }, { type: 'offsets-sent' }],
  APPLYING_STORES: [trigger, ack(0), ack(1), { type: 'flushed' }, { type: 'offsets-sent' }, { type: 'committed' }],
  RESOLVING_OUTCOME: [
    trigger,
    ack(0),
    ack(1),
    { type: 'flushed' },
    { type: 'offsets-sent' },
    { type: 'outcome-unknown', error: 'no answer' },
  ],
  ABORTING: [trigger, { type: 'failed', error: 'lost' }],
}

const events: Readonly<Record<string, CommitEvent>> = {
  trigger,
  ack: ack(0),
  'ack of another epoch': ack(0, 7),
  flushed: { type: 'flushed' },
  'offsets-sent': { type: 'offsets-sent' },
  committed: { type: 'committed' },
  'outcome-unknown': { type: 'outcome-unknown', error: 'no answer' },
  'resolved committed': { type: 'resolved', outcome: 'committed' },
  'resolved aborted': { type: 'resolved', outcome: 'aborted' },
  applied: applied(0),
  'applied another epoch': applied(0, 7),
  failed: { type: 'failed', error: 'lost' },
  tick: { type: 'tick' },
}

/** What each event does where it means something; everywhere else nothing happens. */
const table: Readonly<Record<string, Partial<Record<CommitPhase, readonly [CommitPhase, ...string[]]>>>> = {
  trigger: { IDLE: ['AWAITING_LANE_ACKS', 'barrier'] },
  flushed: { FLUSHING: ['SENDING_OFFSETS', 'send-offsets'] },
  'offsets-sent': { SENDING_OFFSETS: ['IN_TX_COMMIT', 'end-transaction'] },
  committed: { IN_TX_COMMIT: ['APPLYING_STORES', 'apply'] },
  'outcome-unknown': { IN_TX_COMMIT: ['RESOLVING_OUTCOME', 'resolve'] },
  'resolved committed': { RESOLVING_OUTCOME: ['APPLYING_STORES', 'apply'] },
  'resolved aborted': { RESOLVING_OUTCOME: ['ABORTING', 'restart'] },
  failed: Object.fromEntries(
    Object.keys(ways)
      .filter((phase) => phase !== 'ABORTING')
      .map((phase) => [phase, ['ABORTING', 'restart']]),
  ),
}

function machineIn(phase: CommitPhase): CommitMachine {
  const machine = new CommitMachine({ lanes, barrierTimeoutMs, firstEpoch: 1 })
  for (const event of ways[phase]) machine.step(event, 0)
  assert.equal(machine.phase, phase)
  return machine
}

describe('the commit machine', () => {
  for (const phase of Object.keys(ways) as CommitPhase[]) {
    for (const [name, event] of Object.entries(events)) {
      test(`${name} in ${phase}`, () => {
        const machine = machineIn(phase)
        const effects = machine.step(event, 1).map((effect) => effect.type)
        const [next, ...expected] = table[name]?.[phase] ?? [phase]
        assert.deepEqual(effects, expected)
        assert.equal(machine.phase, next)
      })
    }
  }

  test('goes on only when the last lane has acknowledged, and applied', () => {
    const machine = machineIn('AWAITING_LANE_ACKS')
    assert.deepEqual(machine.step(ack(1), 1), [])
    assert.deepEqual(machine.outstandingLanes, [0])
    assert.deepEqual(machine.step(ack(1), 1), [], 'twice the same lane is one lane')
    assert.deepEqual(machine.step(ack(0), 5), [{ type: 'flush', epoch: 1 }])
    for (const event of [{ type: 'flushed' }, { type: 'offsets-sent' }, { type: 'committed' }] as const)
      machine.step(event, 6)
    assert.deepEqual(machine.step(applied(1), 7), [])
    const [done] = machine.step(applied(0), 9)
    assert.equal(done?.type, 'done')
    assert.equal(machine.phase, 'IDLE')
    assert.equal(machine.epoch, 2)
  })

  test('aborts when records were handed over and did not arrive', () => {
    const machine = machineIn('AWAITING_LANE_ACKS')
    machine.step(ack(0, 1, 5, 2), 1)
    const [effect] = machine.step(ack(1, 1, 0, 2), 1)
    assert.equal(effect?.type, 'restart')
    assert.match(JSON.stringify(effect), /5 records were handed over and 4 arrived/)
  })

  test('starts over when records were dispatched that no lane has done', () => {
    const machine = machineIn('AWAITING_LANE_ACKS')
    machine.step({ type: 'barrier-sent', dispatched: 7 }, 0)
    machine.step(ack(0, 1, 0, 0, 4), 1)
    const [effect] = machine.step(ack(1, 1, 0, 0, 2), 1)
    assert.equal(effect?.type, 'restart')
    assert.match(JSON.stringify(effect), /7 records were dispatched and 6 were done/)
  })

  test('gives lanes the barrier timeout, and not a moment less', () => {
    const machine = machineIn('AWAITING_LANE_ACKS')
    machine.step(ack(1), 10)
    assert.deepEqual(machine.step({ type: 'tick' }, barrierTimeoutMs - 1), [])
    const [effect] = machine.step({ type: 'tick' }, barrierTimeoutMs)
    assert.deepEqual(effect && 'barrierTimeout' in effect && effect.barrierTimeout, true)
    assert.match(JSON.stringify(effect), /lanes 0 did not reach the barrier/)
  })

  test('a commit asked for during another one follows it, once', () => {
    const machine = machineIn('APPLYING_STORES')
    machine.step({ type: 'trigger', cause: 'bytes' }, 1)
    machine.step({ type: 'trigger', cause: 'interval' }, 1)
    machine.step(applied(0), 2)
    const effects = machine.step(applied(1), 2)
    assert.deepEqual(
      effects.map((e) => e.type),
      ['done', 'barrier'],
    )
    assert.equal(machine.trigger, 'bytes')
    assert.equal(machine.queued, false)
  })

  test('nothing begins while it is held, and what was asked for begins with the release', () => {
    const machine = machineIn('QUEUED')
    assert.deepEqual(machine.step(trigger, 1), [])
    assert.deepEqual(
      machine.step({ type: 'hold', held: false }, 1).map((e) => e.type),
      ['barrier'],
    )
  })

  const anyEvent: fc.Arbitrary<CommitEvent> = fc.oneof(
    fc.constantFrom(...Object.values(events)),
    fc.record({
      type: fc.constant('lane-ack' as const),
      lane: fc.nat(lanes - 1),
      epoch: fc.integer({ min: 1, max: 4 }),
      taken: fc.constant(0),
      sent: fc.constant(0),
      received: fc.constant(0),
    }),
    fc.record({
      type: fc.constant('lane-applied' as const),
      lane: fc.nat(lanes - 1),
      epoch: fc.integer({ min: 1, max: 4 }),
    }),
    fc.record({ type: fc.constant('hold' as const), held: fc.boolean() }),
  )

  test('in whatever order events come: each step once and in order, the epoch rises by one with each commit', () => {
    const order = ['barrier', 'flush', 'send-offsets', 'end-transaction', 'apply', 'done']
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (sequence) => {
        const machine = new CommitMachine({ lanes, barrierTimeoutMs, firstEpoch: 1 })
        const seen: CommitEffect[] = []
        let at = -1
        let epoch = 1
        sequence.forEach((event, now) => {
          for (const effect of machine.step(event, now)) {
            seen.push(effect)
            if (effect.type === 'restart') {
              at = order.length
              continue
            }
            assert.ok(at < order.length, 'nothing follows a restart')
            if (effect.type === 'resolve') {
              assert.equal(order[at], 'end-transaction')
              continue
            }
            const step = order.indexOf(effect.type)
            assert.equal(step, at === order.length - 1 ? 0 : at + 1)
            at = step
            const effectEpoch = effect.type === 'done' ? effect.report.epoch : effect.epoch
            assert.equal(effectEpoch, epoch)
            if (effect.type === 'done') epoch++
          }
        })
        assert.equal(machine.epoch, epoch)
        assert.ok(machine.outstandingLanes.length <= lanes)
      }),
      { numRuns: 500 },
    )
  })
})
