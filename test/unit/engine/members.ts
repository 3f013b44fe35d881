/** Members of a group over the embedded broker, and who owns what among them. */
import assert from 'node:assert/strict'
import { partitionKey, type TopicPartition } from '../../../src/base/ids.ts'
import type { BrokerError, BrokerPort } from '../../../src/broker/port.ts'
import { Membership, type MembershipOptions, type RosterEntry } from '../../../src/engine/group/membership.ts'
import type { EngineError } from '../../../src/base/errors.ts'
import { World } from './world.ts'

export const keys = (partitions: readonly TopicPartition[]): string[] =>
  partitions.map(({ topic, partition }) => partitionKey(topic, partition)).sort()
export const t = (...partitions: number[]): string[] => partitions.map((partition) => `t:${partition}`)

/** Who owns what over all members; complains when two own the same. */
export class Ownership {
  readonly owners = new Map<string, string>()

  take(who: string, partitions: readonly TopicPartition[]): void {
    for (const key of keys(partitions)) {
      assert.equal(this.owners.get(key), undefined, `${key} has the owner ${this.owners.get(key)} and goes to ${who}`)
      this.owners.set(key, who)
    }
  }

  give(who: string, partitions: readonly TopicPartition[]): void {
    for (const key of keys(partitions)) {
      assert.equal(this.owners.get(key), who, `${key} is taken from ${who}`)
      this.owners.delete(key)
    }
  }
}

export class Member {
  readonly world: World
  readonly name: string
  readonly membership: Membership
  readonly log: string[] = []
  readonly failures: EngineError[] = []
  /** Whether the coordinator is in reach, each time that changed. */
  readonly reached: boolean[] = []
  owned: string[] = []
  roster: readonly RosterEntry[] = []
  /** How long it takes to commit before partitions go. */
  revokeMs = 0
  alive = true
  /** What the next calls to the broker answer. */
  cut: BrokerError | undefined
  /** How long it has been cut off. */
  outageMs = 0

  constructor(world: World, ownership: Ownership, name: string, options: Partial<MembershipOptions> = {}) {
    this.world = world
    this.name = name
    const client = world.client()
    const broker: BrokerPort = new Proxy(client, {
      get: (target, property) => {
        const value = Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (!this.alive) return new Promise(() => undefined)
          return this.cut ? Promise.reject(this.cut) : Reflect.apply(value, target, args)
        }
      },
    })
    this.membership = new Membership(
      {
        broker,
        timers: { after: (ms, call) => world.after(ms, () => this.alive && call()), soon: (call) => world.soon(call) },
        groupId: 'app',
        groupInstanceId: null,
        identity: { instance: name, exclusive: false },
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 60_000,
        heartbeatIntervalMs: 1000,
        metadataRefreshMs: 5000,
        resolve: () => broker.topics(['t']),
        coPartitioned: [],
        ...options,
      },
      {
        assigned: (added, all) => {
          ownership.take(name, added)
          this.owned = keys(all)
          this.log.push(`+${keys(added)}`)
        },
        revoke: async (partitions) => {
          if (this.revokeMs > 0) await new Promise<void>((resolve) => world.after(this.revokeMs, resolve))
          if (!this.alive) return
          const existing = new Set((await client.topics(null)).map(({ topic }) => topic))
          // Still a member in good standing: what was done can be committed.
          await client.commitOffsets(
            this.membership.member,
            partitions
              .filter(({ topic }) => existing.has(topic))
              .map(({ topic, partition }) => ({ topic, partition, offset: 1, metadata: name })),
          )
          ownership.give(name, partitions)
          const gone = keys(partitions)
          this.owned = this.owned.filter((key) => !gone.includes(key))
          this.log.push(`-${gone}`)
        },
        lost: (partitions) => {
          ownership.give(name, partitions)
          this.owned = []
          this.log.push(`!${keys(partitions)}`)
        },
        roster: (members) => {
          this.roster = members
        },
        failed: (error) => {
          this.failures.push(error)
        },
        connected: (connected) => {
          this.reached.push(connected)
        },
      },
    )
  }

  start(): this {
    this.membership.start()
    return this
  }

  /** As by SIGKILL: nothing more comes from it. Its partitions count as free: nobody processes them. */
  /** Lets time pass for as long as it takes: a place that is asked for is waited for. */
  async leave(forGood?: boolean): Promise<void> {
    let isOver = false
    const left = this.membership.leave(forGood).finally(() => {
      isOver = true
    })
    await this.world.settle()
    while (!isOver) await this.world.pass(100)
    await left
  }

  kill(ownership: Ownership): void {
    this.alive = false
    for (const [key, owner] of ownership.owners) if (owner === this.name) ownership.owners.delete(key)
  }
}

export async function group(partitions: number): Promise<{ world: World; ownership: Ownership }> {
  const world = new World()
  await world.createTopic('t', partitions)
  return { world, ownership: new Ownership() }
}
