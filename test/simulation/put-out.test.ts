/**
 * A member that its group went on without, as after a pause of the process that was longer than its session: before the
 * group has answered nobody knows where its input was left, nor whether another process has it by now.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { BrokerError, type BrokerPort, type GroupMember, type JoinRequest } from '../../src/broker/port.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import { defineApp, serdes, type Topology } from '../../src/index.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { committed } from './checkers.ts'
import { SimulatedCluster } from './cluster.ts'
import { settingsFor } from './derived.ts'
import { DiskBackend, DurableBackends } from './durable-backends.ts'
import { SimulatedProcess } from './process.ts'
import { Scheduler, settleAll } from './scheduler.ts'

const numbers = { key: serdes.string, value: serdes.json<number>() }

class Stage {
  readonly scheduler = new Scheduler(new Random(1), settleAll)
  readonly cluster = new SimulatedCluster(this.scheduler, 2, 1)
  readonly client = this.cluster.client()
  readonly #topology: CompiledTopology

  constructor(build: (topology: Topology) => void, optimize = false) {
    this.#topology = defineApp({ applicationId: 'sim', build }).compile({ emit: 'on-update', optimize })
  }

  make(
    owner: number,
    instance: string,
    broker: BrokerPort,
    fact: (fact: EngineFact) => void = () => undefined,
  ): SimulatedProcess {
    const settings = {
      ...settingsFor({ lanes: 1, partitions: 1 }, this.#topology),
      ...{ instanceId: instance, groupInstanceId: `sim-${instance}`, heartbeatIntervalMs: 3000 },
    }
    const stores = new DurableBackends(() => new DiskBackend())
    return new SimulatedProcess({
      ...{ scheduler: this.scheduler, owner, broker, settings, compile: () => this.#topology },
      ...{ backends: () => stores.factory(), layout: counterLayout(this.#topology) },
      ...{ messageMs: 0.1, slowLane: -1, tamper: {}, fact },
    })
  }

  put(topic: string, key: string, value: number): void {
    const builder = new RecordBatchBuilder()
    builder.append(1_000_000 + this.scheduler.now, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    const batches = [{ topic, partition: 0, records: builder.finish() }]
    void this.client.produce({ transactionalId: null, batches })
    this.cluster.wake()
  }

  async until(ms: number): Promise<void> {
    while (this.scheduler.now < ms && (await this.scheduler.step()));
  }

  async committed(topic: string): Promise<string[]> {
    return (await committed(this.cluster.cluster, topic)).map(({ key, value }) => `${key}=${value}`)
  }
}

/** A broker of which some calls are made in another way. */
function instead(broker: BrokerPort, calls: Partial<BrokerPort>): BrokerPort {
  return new Proxy(broker, {
    get(target, name) {
      const own: unknown = Reflect.get(calls, name) ?? Reflect.get(target, name, target)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })
}

for (const joinDelayMs of [0, 3000])
  for (const optimize of [false, true])
    test(`goes on where it was left: the group answers after ${joinDelayMs} ms${optimize ? ', the table is its topic' : ''}`, async () => {
      const stage = new Stage((topology) => {
        topology
          .table('prices', { ...numbers, store: 'prices' })
          .groupBy((price) => ['all', price] as const, numbers)
          .reduce(
            (sum, price) => sum + price,
            (sum, price) => sum - price,
          )
          .toStream()
          .to('out', numbers)
      }, optimize)
      const { client, scheduler } = stage
      await client.createTopics([
        { topic: 'prices', partitions: 1, config: { 'cleanup.policy': 'compact' } },
        { topic: 'out', partitions: 1 },
      ])
      let isPutOut = false
      let isWanted = false
      const broker = instead(client, {
        heartbeat: async (member: GroupMember) => {
          if (!isWanted || isPutOut) return client.heartbeat(member)
          isPutOut = true
          // What the end of a session does. What comes meanwhile lies in the topic when the run begins anew.
          await client.leaveGroup(member)
          stage.put('prices', 'a', 5)
          throw new BrokerError('UNKNOWN_MEMBER_ID', 'the session is over', 'abortable')
        },
        joinGroup: async (request: JoinRequest) => {
          if (isPutOut) await new Promise<void>((resolve) => scheduler.at(joinDelayMs, 0, resolve))
          return client.joinGroup(request)
        },
      })
      stage.make(1, 'one', broker).start()
      scheduler.at(500, 0, () => {
        stage.put('prices', 'a', 1)
        stage.put('prices', 'b', 10)
      })
      scheduler.at(1500, 0, () => {
        isWanted = true
      })
      await stage.until(20_000)
      assert.ok(isPutOut)
      assert.deepEqual((await stage.committed('out')).at(-1), 'all=15')
    })

for (const hasInput of [true, false]) {
  test(`commits nothing beside the process that has its place, of a schedule ${hasInput ? 'neither' : 'alone'}`, async () => {
    const stage = new Stage((topology) => {
      if (hasInput) topology.stream('in', numbers).to('out')
      topology
        .scheduled('clock', {
          every: '100ms',
          ...numbers,
          emit: ({ scheduledAt }) => [{ key: 'tick', value: scheduledAt }],
        })
        .to('ticks')
    })
    const { client, cluster, scheduler } = stage
    await client.createTopics(['in', 'ticks', 'out'].map((topic) => ({ topic, partitions: 1 })))
    stage.make(1, 'one', cluster.client()).start()
    scheduler.at(5000, 0, () => scheduler.stop(1))
    scheduler.at(17_000, 0, () => stage.make(2, 'other', cluster.client()).start())
    scheduler.at(30_550, 0, () => scheduler.cont(1))
    await stage.until(60_000)
    const ticks = await stage.committed('ticks')
    assert.ok(ticks.length > 200)
    assert.deepEqual(ticks, [...new Set(ticks)])
  })
}

test('goes on where the coordinator has ended a transaction that took too long, and knows nobody by its epoch any more', async () => {
  const stage = new Stage((topology) => {
    topology
      .stream('in', numbers)
      .groupBy(() => 'all', numbers)
      .reduce((sum, each) => sum + each)
      .toStream()
      .to('out', numbers)
  })
  const { client, scheduler } = stage
  await client.createTopics(['in', 'out'].map((topic) => ({ topic, partitions: 1 })))
  let ends = 0
  let isCleanedUp = false
  const states: string[] = []
  const broker = instead(client, {
    endTransaction: async (...call) => {
      if (++ends === 2) {
        // It does not arrive for longer than the transaction may take.
        await new Promise<void>((resolve) => scheduler.at(11_000, 0, resolve))
        isCleanedUp = true
      }
      return client.endTransaction(...call)
    },
    // Brokers without the second version of transactions raise the epoch as they clean up, and forget the one before.
    initProducer: async (id, timeoutMs, current) => {
      if (isCleanedUp && current !== undefined)
        throw new BrokerError('PRODUCER_FENCED', 'the expected epoch is another one', 'epoch-lost')
      return client.initProducer(id, timeoutMs, current)
    },
  })
  stage.make(1, 'one', broker, ({ type }) => states.push(type)).start()
  scheduler.at(500, 0, () => stage.put('in', 'a', 1))
  scheduler.at(900, 0, () => stage.put('in', 'b', 10))
  await stage.until(20_000)
  assert.ok(isCleanedUp)
  assert.ok(!states.includes('failed'))
  assert.deepEqual(await stage.committed('out'), ['all=1', 'all=11'])
})
