/** Standstills among processes: one that takes another's identity, members of the group that come and go. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemTimers } from '../../src/base/timers.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { Membership } from '../../src/engine/group/membership.ts'
import { startEmbeddedBroker } from '../../src/runtime/index.ts'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'
import { found, meanwhile, patienceMs, quiet, why } from './support/why.ts'

test('a process that was fenced tells by whom, and ends a while later; the one that took over tells from whom', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const settings = { ...quiet, 'runtime.fenced-linger': '3s' }
  const older = await TestEngine.start(t, 'standing', settings, broker)
  await older.reaches('RUNNING')
  const newer = await TestEngine.start(t, 'standing', settings, broker)
  const { first, answer } = await found(older, 'FENCED', ({ sentence }) => sentence.includes('the client'))
  assert.equal(answer.status, 'FAILED')
  assert.match(
    first.sentence,
    /the client standing on \S+ \(member standing-main-\S+\) runs under the same identity standing-main/,
  )
  assert.match(first.sentence, /ends by itself in \d+ s/)
  assert.equal(await older.runtime.ended, 3)
  await newer.reaches('RUNNING')
  const { status, verdict } = await why(newer)
  assert.equal(status, 'FLOWING')
  assert.match(
    verdict,
    /it took the identity standing-main over from the client standing on \S+ \(member standing-main-/,
  )
})

test('members of the group that come and go are told by name, with how long they stayed', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 4 })
  t.after(() => broker.close())
  const settings = { ...quiet, 'topology.sub-topology-split': 'repartition-topics' }
  const engine = await TestEngine.start(t, 'standing', settings, broker)
  await engine.put('works', [{ key: 'k', value: {} }])
  await engine.reaches('RUNNING')
  const client = broker.client('restless')
  t.after(() => client.close())
  const seen = (): number => engine.runtime.view.consumer()?.changes?.length ?? 0
  const comesAndGoes = async (): Promise<void> => {
    const before = seen()
    const member = joining(client)
    member.start()
    try {
      await eventually('the engine has seen it come', () => seen() > before, patienceMs)
    } finally {
      // One that stays keeps its process from ending.
      await member.leave()
    }
    await eventually('the engine has seen it go', () => seen() > before + 1, patienceMs)
  }
  const { first } = await meanwhile(comesAndGoes, () => found(engine, 'GROUP_UNSTEADY'))
  assert.match(
    first.sentence,
    /\d+ changes within \d+ s\. \d+ members left again, on average \d+ s after they had joined: /,
  )
  assert.match(first.sentence, /restless-\S+ on its-host/)
  await eventually('it is over', async () => (await why(engine)).status === 'FLOWING', patienceMs)
})

test('a process that is paused holds up those behind it, which they tell', async (t) => {
  const broker = await startEmbeddedBroker({ partitions: 2 })
  t.after(() => broker.close())
  const member = (id: string): Promise<TestEngine> =>
    TestEngine.start(
      t,
      'behind',
      { ...quiet, 'topology.sub-topology-split': 'repartition-topics', 'engine.instance-id': id },
      broker,
    )
  const [one, other] = [await member('one'), await member('other')]
  const reads = (engine: TestEngine): boolean =>
    Object.keys(engine.runtime.view.consumer()?.assignment ?? {}).some((key) => key.startsWith('in:'))
  await eventually('both read', () => reads(one) && reads(other), patienceMs)
  let n = 0
  const feed = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await one.runtime.produce(
        'in',
        Array.from({ length: 20 }, () => ({ key: `k${n % 97}`, value: { group: `g${n++ % 50}` } })),
      )
      await sleep(100)
    }
  }
  const enough = new AbortController()
  const fed = feed(enough.signal)
  try {
    const told = async (): Promise<boolean> => (await one.readBytes('out')).length > 500
    await eventually('results flow', told, patienceMs)
    one.runtime.commands.pause()
    const { first } = await found(other, 'ORDER_HELD')
    assert.match(first.sentence, /not all processes that write to \S+-repartition have told/)
    assert.match(first.place.topic ?? '', /-repartition$/)
    one.runtime.commands.unpause()
    await eventually('it is over', async () => (await why(other)).status === 'FLOWING', patienceMs)
  } finally {
    enough.abort()
    await fed
  }
})

/** A process of the same group that does nothing else. */
function joining(broker: BrokerPort): Membership {
  const nothing = (): void => undefined
  return new Membership(
    {
      broker,
      timers: systemTimers,
      groupId: 'standing',
      groupInstanceId: null,
      identity: { instance: 'restless', exclusive: false, host: 'its-host' },
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      heartbeatIntervalMs: 200,
      metadataRefreshMs: 60_000,
      resolve: () => broker.topics(['works']),
      coPartitioned: [],
    },
    { assigned: nothing, revoke: () => Promise.resolve(), lost: nothing, failed: nothing },
  )
}
