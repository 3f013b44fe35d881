/** A broker that cannot be reached for a while: the engine waits, without using up what it has for real faults. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrokerError } from '../../src/broker/port.ts'
import { application } from '../simulation/workload.ts'
import { lastByKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

/** How the calls to the broker end at the moment. */
type Mood = 'fine' | 'unreachable' | 'aborts'

class Rig extends VirtualEngine {
  mood: Mood = 'fine'

  constructor(maxRestarts: number) {
    super({
      compile: () => application({ next: () => undefined }).compile(),
      settings: { maxRestarts, restartWindowMs: 300_000 },
      tamper: (name, args, call) => {
        if (this.mood === 'unreachable') {
          return call(args).then(() => {
            throw new BrokerError('UNREACHABLE', `nobody answers ${name}`)
          })
        }
        if (this.mood === 'aborts' && name === 'produce')
          return Promise.reject(new BrokerError('TRANSACTION_ABORTABLE', 'try again'))
        return call(args)
      },
    })
  }

  feed(from: number, to: number): Promise<void> {
    const numbers = Array.from({ length: to - from }, (_, i) => from + i)
    return this.put(
      'in',
      numbers.map((value) => ({ key: 'k', value, timestamp: 1_000_000 + value })),
    )
  }

  seen(): Promise<unknown> {
    return this.read('seen-out').then((records) => lastByKey(records).k)
  }
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i)

describe('a broker that cannot be reached', () => {
  test('for a minute, again and again, costs no restart of the budget and no record', async () => {
    const rig = new Rig(0)
    await rig.start()
    await rig.runs()
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
    await rig.start()
    await rig.runs()
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
    await rig.start()
    await rig.runs()
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
