/**
 * Several pods over one broker under a seed: connections are cut, processes crash, freeze and come back, clocks drift,
 * operators give commands; then a quiet time in which one pod must be active and all others ready.
 */
import { Random } from '../../src/base/random.ts'
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { BrokerError, type OffsetToCommit } from '../../src/broker/port.ts'
import { compareTags, decodeTag } from '../../src/engine/commit/tag.ts'
import { coordinatorTopic, type HaSettings } from '../../src/ha/contract.ts'
import type { RawRecord } from '../../src/ha/events.ts'
import type { HaCommand } from '../../src/ha/shown/view.ts'
import { type Derived, derive } from './derived.ts'
import { link, type Watch, type Weather } from './link.ts'
import { LogFaults } from './log-faults.ts'
import { readLog } from './logs.ts'
import { SimulatedCluster } from '../simulation/cluster.ts'
import { Scheduler, settleSome } from '../simulation/scheduler.ts'
import { type Mutant, SimPod } from './sim-pod.ts'
import type { Stage } from './stage.ts'

export const timing = {
  heartbeatIntervalMs: 200,
  selfFenceTimeoutMs: 1000,
  failoverTimeoutMs: 1300,
  handoffTimeoutMs: 1300,
  commandTtlMs: 5000,
  claimStaggerMs: 150,
} as const

export interface Commit {
  readonly podId: string
  readonly owner: number
  readonly tokenEpoch: number
  readonly seq: number
}

export interface Promotion {
  readonly podId: string
  readonly incarnation: string
  readonly epoch: number
  readonly paused: boolean
}

const faultsEndMs = 6500
const feedMs = 5500
/** Faults begin once somebody is likely to be active. */
const faultsBeginMs = 800
const quietMs = 40_000
/** A commit that was under way when a pod was isolated may still come through. */
const underWayMs = 250
/** Time after which a pause that was published has been read back. */
const pausePublishedMs = 700
/** Pods that start from here on are of the next build. */
const updateMs = 1300

interface Bad {
  cut: boolean
  deaf: boolean
  /** The next transaction is aborted. */
  aborts: boolean
  mute: boolean
}

const fine = (): Bad => ({ cut: false, deaf: false, aborts: false, mute: false })

export class World {
  readonly scheduler: Scheduler
  readonly #broker: SimulatedCluster
  readonly derived: Derived
  readonly stage: Stage
  #fed = 0
  readonly violations: string[] = []
  readonly story: string[] = []
  readonly commits: Commit[] = []
  readonly promotions: Promotion[] = []
  /** Commands whose publication was acknowledged, by offset. */
  readonly commands = new Map<number, HaCommand>()
  /** What was in coordinator topics that were deleted. */
  readonly deletedLogs: RawRecord[][] = []
  /** Lives of pods of the next build. */
  readonly updated = new Set<string>()
  readonly logFaults: LogFaults
  readonly pods: Array<SimPod | undefined> = []
  readonly #twins: SimPod[] = []
  readonly #mutant: Mutant | undefined
  readonly #seed: number
  readonly #coordinatorLinks = new Map<number, Bad>()
  readonly #engineLinks = new Map<number, Bad>()
  #owners = 0
  #outage: 'none' | 'all' | 'read-only' = 'none'
  #quiet = false
  /** What the operator said last, once it must have come through. */
  #pauseKnown: boolean | undefined
  #pauseOperations = 0

  constructor(seed: number, stage: Stage, mutant?: Mutant) {
    const random = new Random(seed)
    this.stage = stage
    this.#seed = seed
    this.#mutant = mutant
    this.derived = { ...derive(random), ...mutant?.world }
    this.scheduler = new Scheduler(random, settleSome)
    this.#broker = new SimulatedCluster(this.scheduler, seed + 1, 1)
    this.logFaults = new LogFaults(this, (pod) => this.#coordinatorLinks.get(pod.owner))
  }

  get cluster(): EmbeddedCluster {
    return this.#broker.cluster
  }

  async run(): Promise<string[]> {
    await this.stage.prepare(this.cluster)
    this.#planInput()
    for (let i = 0; i < this.derived.pods; i++) {
      this.pods.push(undefined)
      this.#after(this.scheduler.random.next() * 300, () => this.#start(i))
    }
    this.#planFaults()
    await this.#until(() => this.scheduler.now > faultsEndMs, 'the faults end')
    this.#beQuiet()
    let since: number | undefined
    await this.#until(() => {
      if (!this.#converged()) since = undefined
      else since ??= this.scheduler.now
      return since !== undefined && this.scheduler.now - since > 600
    }, 'one pod is active, the others are ready, all input is processed, and every command has its result')
    return this.violations
  }

  violate(what: string): void {
    if (this.violations.length < 5) this.violations.push(what)
  }

  tell(what: string): void {
    this.story.push(`${Math.round(this.scheduler.now)} ${what}`)
  }

  async log(): Promise<RawRecord[]> {
    return readLog(this.cluster, coordinatorTopic(this.stage.applicationId))
  }

  async drive(work: Promise<void>): Promise<void> {
    if (!(await this.scheduler.drive(work))) this.violate('a transaction of the end stays open')
  }

  async #until(done: () => boolean, what: string): Promise<void> {
    const deadline = this.scheduler.now + (this.#quiet ? quietMs : Number.POSITIVE_INFINITY)
    while (this.violations.length === 0 && !done()) {
      if (this.scheduler.now > deadline) {
        const shown = this.pods.map((pod) => `${pod?.podId} ${pod?.ha.role}/${pod?.ha.state}`).join(', ')
        this.violate(
          `not reached within ${quietMs} quiet ms: ${what} (${shown}; settled: ${this.stage.settled(this.cluster)})`,
        )
        return
      }
      if (!(await this.scheduler.step())) this.violate('nothing is planned any more')
    }
  }

  #after(ms: number, run: () => void): void {
    this.scheduler.at(ms, 0, run)
  }

  #planInput(): void {
    const { random } = this.scheduler
    for (let i = 0; i < this.derived.records; i++) {
      this.#after(random.next() * feedMs, () => {
        this.#fed++
        const { partition, records } = this.stage.feed(random, this.derived)
        void this.#broker.client().produce({
          transactionalId: null,
          batches: [{ topic: this.stage.inputTopic, partition, records }],
        })
      })
    }
  }

  #planFaults(): void {
    const { random } = this.scheduler
    const d = this.derived
    const times = (count: number, what: () => void): void => {
      for (let i = 0; i < count; i++)
        this.#after(faultsBeginMs + random.next() * (faultsEndMs - faultsBeginMs - 500), what)
    }
    times(d.crashes, () => this.#crash())
    times(d.freezes, () => this.#freeze())
    times(d.cuts, () => this.#cut())
    times(d.outages, () => this.#breakBroker())
    times(d.restarts, () => this.#disturb())
    times(d.exhaustions, () => this.#exhaust())
    times(d.commands, () => this.#command())
    times(d.pauses, () => this.#pause())
    times(d.terminations, () => this.#terminate())
    times(d.twins, () => this.#twin())
    times(d.recreations, () => this.#recreate())
    times(d.emptyings, () => this.logFaults.empty())
    times(d.mutes, () => this.logFaults.mute())
    times(d.maintenances, () => this.logFaults.maintain())
    times(d.wallJumps, () => this.scheduler.clock.jump(random.int(7_200_000) - 3_600_000))
  }

  #settings(i: number): HaSettings {
    const next = this.derived.update && this.scheduler.now > updateMs
    const store = ['store rows', 'form'] as const
    return {
      applicationId: this.stage.applicationId,
      groupId: this.stage.applicationId,
      podId: `p${i}`,
      desiredStandbys: 1,
      failoverPriority: this.derived.priorities[i] ?? 100,
      ...timing,
      minPromotionIntervalMs: this.derived.minPromotionIntervalMs,
      readyMaxLagRecords: 20,
      readyMaxLagMs: 2000,
      allowUnreadyFailover: true,
      requireSafeTopic: false,
      commandSecret: null,
      topologyHash: next ? 'next' : 'same',
      topologyShape: new Map(next ? [store, ['store new', 'form']] : [store]),
      configHashes: {},
      build: 'sim',
    }
  }

  #start(i: number): void {
    if (this.pods[i] && !this.pods[i].dead) return
    const owner = ++this.#owners
    const { random } = this.scheduler
    const rate = 1 + (random.next() * 2 - 1) * this.derived.clockDrift
    this.#coordinatorLinks.set(owner, fine())
    this.#engineLinks.set(owner, fine())
    const broker = (links: Map<number, Bad>, watch?: Watch) =>
      link(
        this.cluster,
        this.scheduler,
        owner,
        () => this.#weather(links.get(owner)),
        () => this.#broker.wake(),
        watch,
      )
    const settings = this.#settings(i)
    const pod: SimPod = new SimPod({
      scheduler: this.scheduler,
      owner,
      settings,
      coordinatorBroker: broker(this.#coordinatorLinks, this.logFaults.watch()),
      makeEngine: (fact) =>
        this.stage.engine({
          pod: i,
          podId: `p${i}`,
          scheduler: this.scheduler,
          owner,
          clockRate: rate,
          messageMs: this.derived.messageMs,
          broker: broker(
            this.#engineLinks,
            this.#watchCommits(owner, () => pod),
          ),
          fact,
          flaws: this.#mutant?.engine ?? {},
          trouble: (ms) => this.#troubleEngine(owner, ms),
        }),
      seed: this.#seed * 1000 + owner,
      clockRate: rate,
      messageMs: this.derived.messageMs,
      mutant: this.#mutant,
      log: (line) => this.tell(`p${i}#${owner}: ${line}`),
      failed: () => {
        this.tell(`p${i}#${owner} ends`)
        this.#kill(pod)
      },
      broken: (what) => this.violate(`p${i}#${owner}: ${what}`),
      engineFailed: () => {
        this.tell(`p${i}#${owner} has failed`)
        this.#after(this.scheduler.random.next() * 1500, () => {
          if (pod.dead) return
          this.#kill(pod)
          this.#start(i)
        })
      },
      told: (command) => {
        if (command.type !== 'ha-promote') return
        if (this.scheduler.random.chance(this.derived.cutsAtPromotion)) this.#cutAtPromotion(pod)
        const { podId, incarnation } = pod
        if (this.#pauseKnown !== undefined && command.paused !== this.#pauseKnown)
          this.violate(`${podId} is promoted with paused ${command.paused} after an operator said otherwise`)
        this.promotions.push({ podId, incarnation, epoch: command.tokenEpoch, paused: command.paused })
      },
    })
    this.pods[i] = pod
    if (settings.topologyHash === 'next') this.updated.add(pod.incarnation)
    this.tell(`p${i}#${owner} starts${settings.topologyHash === 'next' ? ' (next build)' : ''}`)
    pod.start()
  }

  /** Commits as the broker takes them, whether or not the answer arrives. */
  #watchCommits(owner: number, pod: () => SimPod): Watch {
    let tag = { tokenEpoch: 0, seq: 0 }
    let open = false
    return {
      refuse: (name) => {
        const bad = this.#engineLinks.get(owner)
        if (name !== 'commitOffsetsInTransaction' || !bad?.aborts) return undefined
        bad.aborts = false
        return new BrokerError('TRANSACTION_ABORTABLE', 'the world wants it so')
      },
      done: (name, args) => {
        if (name === 'commitOffsetsInTransaction') {
          open = true
          for (const { metadata } of args[3] as OffsetToCommit[]) {
            const found = decodeTag(metadata)
            if (found && compareTags(found, tag) > 0) tag = found
          }
        }
        if (name !== 'endTransaction' || !open) return
        open = false
        if (args[2] === true) this.#committed(pod(), tag.tokenEpoch, tag.seq)
      },
    }
  }

  #troubleEngine(owner: number, ms: number): void {
    const bad = this.#engineLinks.get(owner)
    if (bad === undefined) return
    bad.aborts = true
    bad.cut = true
    this.#after(ms, () => {
      bad.cut = false
    })
  }

  #committed(pod: SimPod, tokenEpoch: number, seq: number): void {
    this.commits.push({ podId: pod.podId, owner: pod.owner, tokenEpoch, seq })
    const frozen = this.scheduler.now - pod.stateSince
    if (pod.ha.state === 'ISOLATED' && frozen > underWayMs && this.derived.hiccup === 0)
      this.violate(`${pod.podId} commits although it has been isolated for ${Math.round(frozen)} ms`)
  }

  #weather(bad: Bad | undefined): Weather {
    const { slowestMs, hiccup, lostRequest, lostAnswer } = this.derived
    if (this.#quiet) {
      return { slowestMs: 1, hiccup: 0, lostRequest: 0, lostAnswer: 0, cut: false, deaf: false, readOnly: false }
    }
    return {
      slowestMs,
      hiccup,
      lostRequest,
      lostAnswer,
      cut: bad?.cut === true || this.#outage === 'all',
      deaf: bad?.deaf === true,
      readOnly: this.#outage === 'read-only',
      mute: bad?.mute === true,
    }
  }

  alive(): SimPod[] {
    return this.pods.filter((pod): pod is SimPod => pod !== undefined && !pod.dead)
  }

  /** A process that is stopped hears nobody. */
  awake(): SimPod[] {
    return this.alive().filter((pod) => !this.scheduler.isStopped(pod.owner))
  }

  #kill(pod: SimPod): void {
    pod.dead = true
    this.scheduler.kill(pod.owner)
  }

  #crash(): void {
    const spares = this.derived.profile === 'joins' || this.derived.profile === 'emptied'
    const alive = this.alive().filter((pod) => !spares || pod.ha.role !== 'ACTIVE')
    const pod = alive.length > 0 ? this.scheduler.random.pick(alive) : undefined
    if (pod === undefined || (spares && pod.ha.state === 'PROMOTING')) return
    this.tell(`${pod.podId}#${pod.owner} crashes as ${pod.ha.state}`)
    this.#kill(pod)
    const i = this.pods.indexOf(pod)
    if (this.derived.losesStores) this.stage.loseStore(i)
    this.#after(this.scheduler.random.next() * 3000, () => this.#start(i))
  }

  #freeze(): void {
    const { random } = this.scheduler
    const alive = this.alive()
    if (alive.length === 0) return
    const pod = random.pick(alive)
    const ms = random.next() * 4000
    this.tell(`${pod.podId}#${pod.owner} is stopped for ${Math.round(ms)} ms as ${pod.ha.state}`)
    this.scheduler.stop(pod.owner)
    this.#after(ms, () => this.scheduler.cont(pod.owner))
  }

  #cut(): void {
    const { random } = this.scheduler
    const alive = this.alive()
    if (alive.length === 0) return
    const pod = random.pick(alive)
    const ms = random.next() * 3500
    const which = random.pick(['coordinator', 'engine', 'both'] as const)
    const kind = random.pick(['cut', 'deaf'] as const)
    this.tell(`${pod.podId}#${pod.owner} ${kind} (${which}) for ${Math.round(ms)} ms as ${pod.ha.state}`)
    const links = [
      ...(which === 'engine' ? [] : [this.#coordinatorLinks]),
      ...(which === 'coordinator' ? [] : [this.#engineLinks]),
    ]
    for (const map of links) {
      const bad = map.get(pod.owner)
      if (bad) bad[kind] = true
      this.#after(ms, () => {
        if (bad) bad[kind] = false
      })
    }
  }

  /** The engine gets through to the broker before the coordinator knows that another pod has taken over. */
  #cutAtPromotion(pod: SimPod): void {
    const ms = 1000 + this.scheduler.random.next() * 2500
    this.tell(`${pod.podId}#${pod.owner} is cut off for ${Math.round(ms)} ms while it is promoted`)
    const cuts: ReadonlyArray<readonly [Bad | undefined, number]> = [
      [this.#coordinatorLinks.get(pod.owner), ms],
      [this.#engineLinks.get(pod.owner), ms * (0.5 + this.scheduler.random.next() / 2)],
    ]
    for (const [bad, duration] of cuts) {
      if (bad) bad.cut = true
      this.#after(duration, () => {
        if (bad) bad.cut = false
      })
    }
  }

  #breakBroker(): void {
    const { random } = this.scheduler
    if (this.#outage !== 'none') return
    this.#outage = random.chance(1 - this.derived.readOnlyOutages) ? 'all' : 'read-only'
    const ms = random.next() * 4000
    this.tell(`the broker is out (${this.#outage}) for ${Math.round(ms)} ms`)
    this.#after(ms, () => {
      this.#outage = 'none'
    })
  }

  #disturb(): void {
    const active = this.awake().find((pod) => pod.ha.state === 'ACTIVE')
    if (active === undefined) return
    const ms = this.scheduler.random.next() * 2500
    this.tell(`the engine of ${active.podId}#${active.owner} restarts for ${Math.round(ms)} ms`)
    active.engine.disturb(ms)
  }

  #exhaust(): void {
    const active = this.awake().find((pod) => pod.ha.state === 'ACTIVE')
    if (active?.engine.exhaust === undefined) return
    const offset = this.scheduler.random.int(2)
    this.tell(`the restarts of ${active.podId}#${active.owner} are used up at offset ${offset}`)
    active.engine.exhaust(offset)
  }

  #command(): void {
    const { random } = this.scheduler
    const alive = this.awake().filter((pod) => pod.ha.status() !== null)
    if (alive.length === 0) return
    const target = `p${random.int(this.derived.pods + 1)}`
    const name = random.pick(['SWITCH', 'PROMOTE', 'DEMOTE'] as const)
    const command = { command: name, target: name === 'SWITCH' ? null : target, force: random.chance(0.3) }
    this.tell(`${command.command} ${command.target ?? ''}${command.force ? ' by force' : ''}`)
    const lossesBefore = this.logFaults.losses
    random
      .pick(alive)
      .ha.publish(command)
      .then(
        // What is heard of only after the topic was deleted may have gone with it.
        (offset) => this.logFaults.losses === lossesBefore && this.commands.set(offset, command),
        () => this.tell('the command may have been lost'),
      )
  }

  #pause(): void {
    const { random } = this.scheduler
    const active = this.awake().find((pod) => pod.ha.state === 'ACTIVE')
    if (active === undefined) return
    const paused = random.chance(0.7)
    this.tell(`${active.podId}#${active.owner} is ${paused ? 'paused' : 'resumed'}`)
    active.pause(paused)
    this.#pauseKnown = undefined
    const operation = ++this.#pauseOperations
    this.#after(pausePublishedMs, () => {
      const heard = !active.dead && active.ha.state === 'ACTIVE' && active.ha.metrics().heartbeatAckAgeMs < 400
      const lasting = this.derived.recreations + this.derived.emptyings === 0
      if (heard && operation === this.#pauseOperations && lasting) this.#pauseKnown = paused
    })
  }

  #terminate(): void {
    const alive = this.awake()
    if (alive.length === 0) return
    const pod = this.scheduler.random.pick(alive)
    if (pod.stopping) return
    pod.stopping = true
    this.tell(`${pod.podId}#${pod.owner} is asked to stop as ${pod.ha.state}`)
    const i = this.pods.indexOf(pod)
    void pod.ha.stop(2500).then(() => {
      if (pod.dead) return
      this.tell(`${pod.podId}#${pod.owner} has stopped`)
      this.#kill(pod)
      this.#after(this.scheduler.random.next() * 1000, () => this.#start(i))
    })
  }

  /** A second process under the same pod id, while the first goes on. */
  #twin(): void {
    const alive = this.alive()
    if (alive.length === 0) return
    const pod = this.scheduler.random.pick(alive)
    const i = this.pods.indexOf(pod)
    this.#twins.push(pod)
    this.pods[i] = undefined
    this.stage.loseStore(i)
    this.#start(i)
  }

  #recreate(): void {
    const topic = coordinatorTopic(this.stage.applicationId)
    void this.log().then(async (records) => {
      this.tell('the coordinator topic is deleted')
      this.logFaults.recreated()
      this.deletedLogs.push(records)
      // Commands in it are gone; nobody can answer them.
      this.commands.clear()
      await this.#broker.client().deleteTopics([topic])
    })
  }

  #beQuiet(): void {
    this.tell('quiet')
    this.#quiet = true
    this.#outage = 'none'
    for (const pod of [...this.pods, ...this.#twins]) if (pod && !pod.dead) this.scheduler.cont(pod.owner)
    this.logFaults.beQuiet()
    const keepUp = (): void => {
      if (this.alive().some((pod) => pod.ha.status()?.failoverPaused === true)) this.logFaults.say('RESUME')
      this.pods.forEach((pod, i) => {
        if (pod === undefined || pod.dead) this.#start(i)
        else if (this.derived.update && !this.updated.has(pod.incarnation)) {
          // The update goes on to its end.
          this.#kill(pod)
          this.#start(i)
        } else if (pod.ha.state === 'ACTIVE' && pod.engine.paused) {
          this.#pauseKnown = undefined
          this.#pauseOperations++
          pod.pause(false)
        }
      })
      this.#after(500, keepUp)
    }
    this.#after(2600, keepUp)
  }

  #converged(): boolean {
    const states = this.pods.map((pod) => (pod === undefined || pod.dead ? 'DEAD' : pod.ha.state))
    const active = states.filter((state) => state === 'ACTIVE').length
    const ready = states.filter((state) => state === 'READY_STANDBY').length
    if (active !== 1 || ready !== this.derived.pods - 1) return false
    if (this.#fed < this.derived.records || !this.stage.settled(this.cluster)) return false
    const views = this.alive().map((pod) => pod.ha.status())
    // One that is ready may be some records behind, and what it has is judged.
    if (views.some((view) => view?.selfRole === 'STANDBY' && view.replicationLagRecords > 0)) return false
    const holder = this.alive().find((pod) => pod.ha.state === 'ACTIVE')?.podId
    return views.every((view) => view?.tokenHolder === holder)
  }
}
