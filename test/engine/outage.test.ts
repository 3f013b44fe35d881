/** A broker that cannot be reached for a while: the engine waits, without using up what it has for real faults. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { MemoryStorage } from '../../src/broker/embedded/core/memory-storage.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { BrokerError } from '../../src/broker/port.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import { counterLayout } from '../../src/runtime/settings.ts'
import { DurableBackends } from '../simulation/durable-backends.ts'
import { faultyBroker } from '../simulation/faulty-broker.ts'
import { SimulatedProcess } from '../simulation/process.ts'
import { Scheduler } from '../simulation/scheduler.ts'
import { application } from '../simulation/workload.ts'
import { settingsFor } from '../simulation/world.ts'
import { consume, lastByKey, produce } from './support/engine.ts'

/** How the calls to the broker end at the moment. */
type Mood = 'fine' | 'unreachable' | 'aborts'

class Rig {
  readonly scheduler = new Scheduler(new Random(11))
  readonly cluster: EmbeddedCluster
  readonly facts: EngineFact[] = []
  readonly process: SimulatedProcess
  mood: Mood = 'fine'

  constructor(maxRestarts: number) {
    const { scheduler } = this
    const storage = new MemoryStorage()
    this.cluster = new EmbeddedCluster({ clock: scheduler.clock, random: new Random(12), storage, partitions: 2 })
    const compile = () => application({ next: () => undefined }).compile()
    const stores = new DurableBackends()
    const faults = { slowestMs: 1, lostAnswer: 0, lostRequest: 0 }
    const broker = faultyBroker(
      this.cluster,
      scheduler,
      1,
      () => faults,
      () => this.#wake(),
      (name, args, call) => {
        if (this.mood === 'unreachable') {
          return call(args).then(() => {
            throw new BrokerError('UNREACHABLE', `nobody answers ${name}`)
          })
        }
        if (this.mood === 'aborts' && name === 'produce')
          return Promise.reject(new BrokerError('TRANSACTION_ABORTABLE', 'try again'))
        return call(args)
      },
    )
    this.process = new SimulatedProcess({
      scheduler,
      owner: 1,
      broker,
      settings: { ...settingsFor({ lanes: 2, partitions: 2 }, compile()), maxRestarts, restartWindowMs: 300_000 },
      compile,
      backends: () => stores.factory(),
      layout: counterLayout(compile()),
      messageMs: 0.1,
      slowLane: -1,
      tamper: {},
      fact: (fact) => {
        if (fact.type !== 'snapshot') this.facts.push(fact)
      },
    })
    this.process.start()
  }

  #tick: (() => void) | undefined

  #wake(): void {
    if (this.#tick) return
    const deadline = this.cluster.nextDeadline()
    if (deadline === Number.POSITIVE_INFINITY) return
    const event = this.scheduler.at(Math.max(0, deadline - this.scheduler.now) + 0.01, 0, () => {
      this.#tick = undefined
      this.cluster.tick()
      this.#wake()
    })
    this.#tick = () => this.scheduler.cancel(event)
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    for (let step = 0; !holds(); step++) {
      assert.ok(step < 200_000, `in vain: ${what}; ${this.facts.map((fact) => fact.type).join()}`)
      assert.ok(await this.scheduler.step(), `nothing is planned any more: ${what}`)
    }
  }

  async passes(ms: number): Promise<void> {
    const end = this.scheduler.now + ms
    await this.until(`${ms} ms pass`, () => this.scheduler.now >= end)
  }

  async feed(from: number, to: number): Promise<void> {
    const records = Array.from({ length: to - from }, (_, i) => ({
      key: 'k',
      value: from + i,
      timestamp: 1_000_000 + from + i,
    }))
    await produce(directClient(this.cluster, { afterCall: () => this.#wake() }), 'in', records, 2)
  }

  async settled(): Promise<void> {
    let idle = false
    void this.process.engine.untilIdle().then(() => {
      idle = true
    })
    await this.until('all is processed', () => idle)
  }

  seen(): Promise<unknown> {
    return consume(directClient(this.cluster, { afterCall: () => this.#wake() }), 'seen-out').then(
      (records) => lastByKey(records).k,
    )
  }

  count(type: EngineFact['type']): number {
    return this.facts.filter((fact) => fact.type === type).length
  }
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

describe('a broker that cannot be reached', () => {
  test('for a minute, again and again, costs no restart of the budget and no record', async () => {
    const rig = new Rig(0)
    await rig.until('it runs', () => rig.count('running') > 0)
    let n = 0
    for (let outage = 0; outage < 5; outage++) {
      await rig.feed(n, n + 20)
      n += 20
      await rig.passes(5)
      rig.mood = 'unreachable'
      await rig.passes(60_000)
      assert.equal(rig.count('failed'), 0)
      rig.mood = 'fine'
      await rig.settled()
      assert.deepEqual(await rig.seen(), upTo(n))
    }
  })

  test('is not mistaken for a broker that aborts: there the budget ends', async () => {
    const rig = new Rig(2)
    await rig.until('it runs', () => rig.count('running') > 0)
    rig.mood = 'aborts'
    await rig.feed(0, 10)
    await rig.until('it gives up', () => rig.count('failed') > 0)
    assert.equal(rig.count('restarting'), 2)
    const failed = rig.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'RESTARTS_EXHAUSTED')
    assert.match(failed?.error.message ?? '', /last because try again/)
  })

  test('a few aborted transactions within the budget are made good', async () => {
    const rig = new Rig(3)
    await rig.until('it runs', () => rig.count('running') > 0)
    let n = 0
    for (let i = 0; i < 3; i++) {
      rig.mood = 'aborts'
      await rig.feed(n, n + 10)
      n += 10
      const restarts = rig.count('restarting')
      await rig.until('it restarts', () => rig.count('restarting') > restarts)
      rig.mood = 'fine'
      await rig.settled()
      assert.deepEqual(await rig.seen(), upTo(n))
    }
    assert.equal(rig.count('failed'), 0)
  })
})
