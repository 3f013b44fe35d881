/**
 * A broker that stands still for a while and then goes on, with all that was sent to it meanwhile: requests that nobody
 * waits for any more are carried out as well.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { BrokerError } from '../../src/broker/port.ts'
import { application } from '../simulation/workload.ts'
import { lastByKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const givenUpAfterMs = 5000
const nobody = -1
/** So long a call may be on its way, on one connection, while those on another overtake it. */
const longestWayMs = 3000

interface Overtaken {
  readonly member: string
  go(): void
}

class Rig extends VirtualEngine {
  readonly #random: Random
  #frozen = false
  readonly #waiting: Array<() => void> = []
  /** Calls of a member that the answer to its next join overtakes. */
  #overtaken: Overtaken[] = []
  fencedEarlierSelf = 0

  /** Calls that are overtaken by the next join: the commit's, or the first heartbeat behind an epoch that was lost. */
  readonly #slow: 'commitOffsetsInTransaction' | 'heartbeat' | undefined
  #isAwake = false
  #isEpochLost = false

  constructor(seed: number, slow?: 'commitOffsetsInTransaction' | 'heartbeat') {
    super({
      compile: () => application({ next: () => undefined }).compile(),
      settings: { maxRestarts: 5, restartWindowMs: 300_000 },
      tamper: async (name, args, call) => {
        if (this.#frozen) return this.#held(name, () => call(args))
        if (this.#isOvertaken(name)) return this.#late(args, () => call(args))
        if (name === 'initProducer') await this.#loseEpoch(args, call)
        const answer = await call(args)
        if (name === 'joinGroup') this.#arrive((answer as { memberId: string }).memberId)
        return answer
      },
    })
    this.#random = new Random(seed)
    this.#slow = slow
  }

  freeze(): void {
    this.#frozen = true
  }

  /** Connections are worked off beside one another: no order holds between them. */
  wake(): void {
    this.#frozen = false
    this.#isAwake = true
    for (const go of this.#waiting.splice(0)) this.scheduler.at(this.#random.next() * 200, nobody, go)
  }

  #held(name: string, call: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => void call().then(resolve, reject))
      const givenUp = (): void => reject(new BrokerError('UNREACHABLE', `no answer to ${name}`))
      this.scheduler.at(givenUpAfterMs, nobody, givenUp)
    })
  }

  #isOvertaken(name: string): boolean {
    if (!this.#isAwake || name !== this.#slow) return false
    if (name !== 'heartbeat') return true
    const isFirst = this.#isEpochLost
    this.#isEpochLost = false
    return isFirst
  }

  /** A call of this process that it gave up while the broker stood still is carried out before the present one. */
  async #loseEpoch(
    [id, timeoutMs, identity]: readonly unknown[],
    call: (args: unknown[]) => Promise<unknown>,
  ): Promise<void> {
    if (!this.#isAwake || this.#slow !== 'heartbeat' || identity === undefined || identity === null) return
    await call([id, timeoutMs])
    this.#isEpochLost = true
  }

  /** It arrives once this process has joined anew, or in the end. */
  #late(args: readonly unknown[], call: () => Promise<unknown>): Promise<unknown> {
    const { memberId } = args.find((arg) => isMember(arg)) as { readonly memberId: string }
    return new Promise((resolve, reject) => {
      let isGone = false
      const go = (): void => {
        if (isGone) return
        isGone = true
        call().then(resolve, (error) => {
          if (error instanceof BrokerError && error.code === 'FENCED_INSTANCE_ID') this.fencedEarlierSelf++
          reject(error)
        })
      }
      this.#overtaken.push({ member: memberId, go })
      this.scheduler.at(longestWayMs, nobody, go)
    })
  }

  #arrive(joined: string): void {
    const all = this.#overtaken
    this.#overtaken = all.filter(({ member }) => member === joined)
    // The process knows its new name before anybody answers to the old one.
    for (const { member, go } of all) if (member !== joined) this.scheduler.at(5, nobody, go)
  }

  feed(from: number, to: number): Promise<void> {
    const numbers = Array.from({ length: to - from }, (_, i) => from + i)
    return this.put(
      'in',
      numbers.map((value) => ({ key: 'k', value, timestamp: 1_000_000 + value })),
    )
  }
}

const isMember = (arg: unknown): boolean => typeof arg === 'object' && arg !== null && 'memberId' in arg

/** The broker stands still in the middle of its work, and wakes: the engine goes on. */
async function sleptThrough(rig: Rig, seed: number): Promise<void> {
  await rig.start()
  await rig.runs()
  await rig.feed(0, 20)
  await rig.passes(5 + (seed % 7))
  rig.freeze()
  await rig.passes(48_000)
  rig.wake()
  await rig.feed(20, 40)
  await rig.settled()
  const failed = rig.facts.find((fact) => fact.type === 'failed')
  assert.equal(failed, undefined, `seed ${seed}: ${JSON.stringify(failed)}`)
}

describe('a broker that stands still and wakes', () => {
  test('does not make a process that is alone fence itself', async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const rig = new Rig(seed)
      await sleptThrough(rig, seed)
      const seen = await rig.read('seen-out').then((records) => lastByKey(records).k)
      assert.deepEqual(
        seen,
        Array.from({ length: 40 }, (_, i) => i),
      )
      rig.kill()
    }
  })

  for (const [what, slow] of [
    ['that asks whether it still has its place', 'heartbeat'],
    ['that commits', 'commitOffsetsInTransaction'],
  ] as const) {
    test(`is not taken for another process by one ${what} while it joins anew`, async (t) => {
      let fenced = 0
      // A commit is under way then with few of the seeds.
      for (let seed = 1; seed <= 50; seed++) {
        const rig = new Rig(seed, slow)
        await sleptThrough(rig, seed)
        fenced += rig.fencedEarlierSelf
        rig.kill()
      }
      t.diagnostic(`${fenced} answers about an earlier self`)
      assert.ok(fenced > 0)
    })
  }

  test('and comes to a request for a place that was given up long ago: it is no other process', async (t) => {
    let told = { heartbeat: 0, commitOffsetsInTransaction: 0 }
    for (let seed = 1; seed <= 15; seed++) {
      const random = new Random(seed)
      const held: Array<() => void> = []
      let isFrozen = false
      const rig: VirtualEngine = new VirtualEngine({
        compile: () => application({ next: () => undefined }).compile(),
        settings: { maxRestarts: 5, restartWindowMs: 300_000 },
        tamper: (name, args, call) => {
          if (isFrozen && name === 'joinGroup') {
            return new Promise((_, reject) => {
              held.push(() => void call(args).catch(() => undefined))
              rig.scheduler.at(givenUpAfterMs, nobody, () => reject(new BrokerError('UNREACHABLE', 'no answer')))
            })
          }
          return call(args).catch((error) => {
            if (error instanceof BrokerError && error.code === 'FENCED_INSTANCE_ID' && name in told)
              told = { ...told, [name]: told[name as keyof typeof told] + 1 }
            throw error
          })
        },
      })
      await rig.start()
      await rig.runs()
      // A restart, in the place that the process before it had.
      isFrozen = true
      await rig.start()
      await rig.passes(7000 + 250 * seed)
      isFrozen = false
      for (const go of held) rig.scheduler.at(random.next() * 2000, nobody, go)
      for (let i = 0; i < 60; i++) {
        await rig.put('in', [{ key: 'k', value: i, timestamp: 1_000_000 + i }])
        await rig.passes(random.next() * 60)
      }
      await rig.settled()
      const failed = rig.facts.find((fact) => fact.type === 'failed')
      assert.equal(failed, undefined, `seed ${seed}: ${JSON.stringify(failed)}`)
      const seen = await rig.read('seen-out').then((records) => lastByKey(records).k)
      assert.deepEqual(
        seen,
        Array.from({ length: 60 }, (_, i) => i),
      )
      rig.kill()
    }
    t.diagnostic(JSON.stringify(told))
    assert.ok(told.heartbeat > 0 && told.commitOffsetsInTransaction > 0)
  })
})
