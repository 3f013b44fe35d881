/** What happens to the coordinator topic itself: it loses records, refuses one pod's, and carries an operator's word. */
import type { TopicPartition } from '../../src/base/ids.ts'
import type { ProduceRequest } from '../../src/broker/port.ts'
import { coordinatorTopic } from '../../src/ha/contract.ts'
import type { Watch } from './link.ts'
import { keysOf } from './logs.ts'
import type { SimPod } from './sim-pod.ts'
import type { World } from './world.ts'

/** A claim as the broker has taken it. */
export interface ClaimWritten {
  readonly key: string
  /** For how long an operator's word that failover is paused had been in the log by then; undefined: it was not. */
  readonly pausedForMs: number | undefined
}

/** A pod whose writes are refused for so long shows it. */
const muteShowsMs = 2000

export class LogFaults {
  readonly claims: ClaimWritten[] = []
  /** The topic has lost records, which whoever starts later does not know. */
  emptied = false
  /** How often the topic lost what was in it. */
  losses = 0
  readonly #world: World
  readonly #linkOf: (pod: SimPod) => { mute: boolean } | undefined
  #emptiedAt = 0
  #pausedAt: number | undefined
  #sayings = 0
  #quiet = false

  constructor(world: World, linkOf: (pod: SimPod) => { mute: boolean } | undefined) {
    this.#world = world
    this.#linkOf = linkOf
  }

  recreated(): void {
    this.losses++
    this.#emptiedAt = 0
    this.#pausedAt = undefined
  }

  beQuiet(): void {
    this.#quiet = true
    this.#pausedAt = undefined
  }

  /** Claims as the broker takes them; and a topic that is empty up to where it was emptied. */
  watch(): Watch {
    return {
      done: (name, args) => {
        if (name !== 'produce') return
        const paused = this.#pausedAt
        const pausedForMs = paused === undefined ? undefined : this.#world.scheduler.now - paused
        for (const key of keysOf(args[0] as ProduceRequest)) {
          if (key.startsWith('t/')) this.claims.push({ key, pausedForMs })
        }
      },
      answer: (name, args, answer) => {
        if (name !== 'listOffsets' || args[1] !== 'earliest') return answer
        const offsets = answer as Array<TopicPartition & { readonly offset: number }>
        return offsets.map((each) => ({ ...each, offset: Math.max(each.offset, this.#emptiedAt) }))
      },
    }
  }

  /** All records are gone, the topic is the same, and its offsets count on. */
  empty(): void {
    if (!this.#world.alive().some((pod) => pod.ha.state === 'ACTIVE')) return
    const topic = coordinatorTopic(this.#world.stage.applicationId)
    const [end] =
      this.#world.cluster.topics([topic]).length > 0
        ? this.#world.cluster.listOffsets([{ topic, partition: 0 }], 'latest')
        : []
    if (end === undefined) return
    this.#world.tell('the coordinator topic is emptied')
    this.emptied = true
    this.#emptiedAt = end.offset
    this.losses++
    this.#pausedAt = undefined
    // Whoever starts from now on knows nothing of them.
    this.#world.commands.clear()
  }

  /** The broker takes nothing that this pod writes to the coordinator topic: it must not pass for one that could follow. */
  mute(): void {
    const alive = this.#world.alive()
    if (alive.length === 0) return
    const pod = this.#world.scheduler.random.pick(alive)
    const bad = this.#linkOf(pod)
    if (bad === undefined) return
    const ms = 500 + this.#world.scheduler.random.next() * 4000
    this.#world.tell(
      `${pod.podId}#${pod.owner} cannot write to the coordinator topic for ${Math.round(ms)} ms as ${pod.ha.state}`,
    )
    bad.mute = true
    const over = this.#world.scheduler.now + ms
    this.#world.scheduler.at(ms, 0, () => {
      bad.mute = false
    })
    if (ms < muteShowsMs || this.#world.derived.freezes > 0) return
    this.#world.scheduler.at(muteShowsMs, 0, () => {
      const muted = bad.mute && this.#world.scheduler.now < over && !pod.dead && !this.#quiet
      if (muted && pod.ha.state === 'READY_STANDBY')
        this.#world.violate(`${pod.podId} is ready although nothing it writes has arrived for ${muteShowsMs} ms`)
    })
  }

  maintain(): void {
    const { random } = this.#world.scheduler
    const ms = 2500 + random.next() * 3000
    this.say('PAUSE')
    this.#world.scheduler.at(ms, 0, () => {
      if (this.#quiet) return
      this.#pausedAt = undefined
      this.say('RESUME')
    })
  }

  /** To any pod; whether it has come through is known of a PAUSE that was acknowledged, before anything else was said. */
  say(command: 'PAUSE' | 'RESUME'): void {
    const alive = this.#world.awake().filter((pod) => pod.ha.status() !== null)
    if (alive.length === 0) return
    this.#world.tell(`${command} failover`)
    const said = ++this.#sayings
    const losses = this.losses
    this.#world.scheduler.random
      .pick(alive)
      .ha.publish({ command, target: null, force: false })
      .then(
        () => {
          if (said === this.#sayings && losses === this.losses)
            this.#pausedAt = command === 'PAUSE' ? this.#world.scheduler.now : undefined
        },
        () => this.#world.tell(`${command} may have been lost`),
      )
  }
}
