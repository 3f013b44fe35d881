/** What is remembered from one look at the engine to the next. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Look } from '../../../src/view/diagnosis/look.ts'
import type { EngineView } from '../../../src/view/view.ts'

interface Shown {
  readonly logEndOffset: number
  readonly committedOffset: number
  readonly withheld: number
}

/** Of one partition, as the engine shows it at the time. */
function looking(broker: () => object = () => ({ connected: true, sinceMs: 0 })) {
  let shown: Shown = { logEndOffset: 0, committedOffset: 0, withheld: 0 }
  const view: Partial<EngineView> = {
    applicationId: 'app',
    state: () => ({ current: 'RUNNING', sinceMs: 0, failure: null, restore: [] }) as never,
    counters: () => null,
    barriers: () => null,
    topology: () => null,
    watermarks: () => null,
    broker: () => ({ bootstrapServers: 'b:1', fault: null, ...broker() }) as never,
    engineSilenceMs: () => 0,
    consumer: () => ({ assignment: { 'in:0': { buffered: 0, bufferCapacity: 10, paused: false } } }) as never,
    offsets: () => ({ sources: [{ topic: 'in', partitions: [{ partition: 0, ...shown }] }], changelogs: [] }) as never,
    diskFull: () => null,
  }
  const look = new Look({
    view: view as EngineView,
    license: () => ({ status: 'NO_KEY', counts: true }),
    ha: () => null,
    commitIntervalMs: 100,
    earlier: () => [],
    mask: (text) => text,
  })
  const at = (now: number, next: Shown) => {
    shown = next
    return look.take(now, new Map()).partitions[0]
  }
  return Object.assign(at, { brokerSince: (now: number) => look.take(now, new Map()).broker.sinceMs })
}

test('a broker that stands still does so from the fetch that it owes, also once that is given up', () => {
  const fetching = (sinceMs: number) => ({ connected: true, calls: [{ kind: 'fetch', sinceMs }] })
  let broker: object = { connected: true, sinceMs: 0, nodes: [fetching(0)] }
  const { brokerSince } = looking(() => broker)
  for (let now = 0; now < 9000; now += 1000) {
    broker = { connected: true, sinceMs: 0, nodes: [fetching(now < 4000 ? now - 500 : 4000)] }
    assert.equal(brokerSince(now), 0)
  }
  broker = { connected: false, sinceMs: 9000, nodes: [{ connected: false, calls: [] }] }
  assert.deepEqual([9000, 9500, 14_000].map(brokerSince), [4000, 4000, 4000])
  broker = { connected: true, sinceMs: 15_000, nodes: [fetching(15_000)] }
  assert.equal(brokerSince(15_000), 15_000)
  // It had answered for long before it was gone again.
  broker = { connected: false, sinceMs: 40_000, nodes: [] }
  assert.equal(brokerSince(40_500), 40_000)
})

test('one transaction behind the other holds nothing back: each that ends lets more be read', () => {
  const at = looking()
  const seen = [0, 250, 500, 750].map((now, n) => {
    return at(now, { committedOffset: 0, logEndOffset: 20 + 10 * n, withheld: 10 })?.withheldSinceMs
  })
  assert.deepEqual(seen, [0, 250, 500, 750])
  assert.equal(at(1000, { committedOffset: 0, logEndOffset: 70, withheld: 30 })?.withheldSinceMs, 750, 'more behind it')
  assert.equal(at(1250, { committedOffset: 0, logEndOffset: 70, withheld: 0 })?.withheldSinceMs, null)
})

test('a transaction that begins where everything had been read holds back from then on', () => {
  const at = looking()
  assert.equal(at(0, { committedOffset: 20, logEndOffset: 20, withheld: 0 })?.withheldSinceMs, null)
  const held = [250, 500].map((now) => at(now, { committedOffset: 20, logEndOffset: 22, withheld: 2 })?.withheldSinceMs)
  assert.deepEqual(held, [250, 250])
})

test('a partition is done when all that it has is committed', () => {
  const at = looking()
  const done = (now: number, committedOffset: number, logEndOffset: number) =>
    at(now, { committedOffset, logEndOffset, withheld: 0 })?.doneSinceMs
  assert.deepEqual(
    [done(0, 0, 0), done(250, 0, 5), done(500, 3, 5), done(750, 5, 5), done(1000, 5, 5)],
    [0, 250, 500, 500, 500],
  )
})
