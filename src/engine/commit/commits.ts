/** The commits of an engine over all its runs: when they begin, what they are called, what they tell. */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { sleep } from '../../base/timers.ts'
import type { CommitReport } from './machine.ts'
import { encodeRead } from './read-topics.ts'
import { incarnationOf } from './state-marks.ts'
import { encodeTag } from './tag.ts'
import type { OffsetToCommit } from '../../broker/port.ts'
import type { StorePartition, ToLane } from '../../lanes/protocol.ts'
import type { BatchPack } from '../../broker/wire/batch-pack.ts'
import { CommitTimer } from './commit-timer.ts'
import { Committer, type Frozen } from './committer.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { Flow } from '../input/flow.ts'
import type { FrozenPosition } from '../input/positions.ts'
import type { TaskRef } from '../../topology/affinity.ts'
import { ChangelogEnds, endsOf, type KnownEnds } from './changelog-ends.ts'
import { type Producer, type ToProduce, unpack } from './producer.ts'
import { type LaneWatch, toldOf } from '../recovery/lane-watch.ts'
import type { Reports } from '../reports.ts'
import type { Run } from '../run.ts'
import { type CheckedState, changelogLost } from '../restore/state-check.ts'
import type { OwnPlace } from '../group/own-place.ts'
import type { ResolvedTopics } from '../group/topics.ts'

/** Until a broker is asked anew what became of a commit. */
const askAgainMs = 50

export interface CommitsHost {
  flow(): Flow | undefined
  producer(): Producer
  readonly place: OwnPlace
  /** Records are processed, and no restart is under way. */
  ready(): boolean
  ended(): boolean
  toLanes(message: ToLane): void
  /** What the engine's own sources add to the transaction. */
  extra(): readonly ToProduce[]
  restart(cause: unknown, barrierTimeout: boolean): void
  beforeResolving(): Promise<void>
  readonly watch: LaneWatch
  /** Topics by the number that records carry. */
  originTopics(): readonly string[]
}

/** From the broker into a lane. */
const wayMs = 5
/** What commits have waited for lanes is forgotten little by little. */
const keptShare = 0.8

/** High availability is told of commits, not of every one. */
const committedEveryMs = 250

/** Where what is noted of stores takes more of the metadata, something else has no room there. */
const roomyBytes = 2500

export class Commits {
  /** Of the run: what its commits are counted under. */
  tokenEpoch = 0
  /** What commits remember of the stores (`state-marks.ts`). */
  #stores = ''
  /** Stores whose changelog is not the topic that the last commit went to. */
  lost: ReadonlySet<string> = new Set()
  /** Topics between sub-topologies are gone, with the offsets of commits that stores may know of. */
  hasLostOffsets = false
  /** Next offset of every changelog partition, by store and partition. */
  readonly changelogNext = new Map<string, number>()
  readonly #ends: ChangelogEnds
  readonly #o: EngineOptions
  readonly #host: CommitsHost
  readonly #reports: Reports
  readonly #pace: CommitTimer
  #committer: Committer | undefined
  #dirty = false
  #forgets = false
  #held = false
  #toldAt = Number.NEGATIVE_INFINITY
  /** How long commits of late have waited for lanes. */
  #lanesMs = 0

  constructor(options: EngineOptions, reports: Reports, host: CommitsHost) {
    this.#o = options
    this.#reports = reports
    this.#host = host
    this.#ends = new ChangelogEnds(options.settings)
    const { settings, clock, timers } = options
    this.#pace = new CommitTimer(settings.commitIntervalMs, settings.commitIdleIntervalMs, clock, timers, {
      tick: () => {
        host.watch.look()
        if (host.ended()) this.#pace.close()
        else {
          this.#committer?.tick()
          this.#rests()
        }
      },
      wanted: () => host.ready() && (this.#dirty || host.flow()?.moved() === true),
      caughtUp: () => host.flow()?.caughtUp === true,
      begin: () => this.#committer?.trigger('interval'),
    })
  }

  /** What a start has found the stores to be. */
  take({ marks, lost, between = [] }: Pick<CheckedState, 'marks' | 'lost'> & Partial<CheckedState>): void {
    this.#stores = marks
    this.lost = lost
    this.hasLostOffsets = between.length > 0
  }

  /** Changelogs as a start has found them: the next offset of each, by store and partition. */
  found(topics: ResolvedTopics, known: KnownEnds, changelogNext: ReadonlyMap<string, number>): void {
    for (const [id, end] of changelogNext) {
      this.changelogNext.set(id, end)
      const at = id.lastIndexOf('/')
      this.#ends.found(topics, known, { store: id.slice(0, at), partition: Number(id.slice(at + 1)), end })
    }
  }

  /** Another process has the stores of these tasks from now on. */
  left(tasks: readonly TaskRef[]): void {
    const { stores } = this.#o.settings.plan
    for (const { subtopology, partition } of tasks) {
      const own = stores.filter((store) => store.subtopology === subtopology)
      this.#ends.drop(
        own.map(({ name }) => name),
        partition,
      )
    }
  }

  /** The run's; undefined between runs. */
  get committer(): Committer | undefined {
    return this.#committer
  }

  start(): void {
    this.#pace.start()
  }

  /** There is something to commit, though perhaps no position has moved; `forgets`: rows that are past their time. */
  touched(forgets = false): void {
    this.#dirty = true
    if (forgets) this.#forgets = true
  }

  /** As `touched`, by a lane that had acknowledged all epochs before this one. It asks again behind the commit under way. */
  wanted(epoch: CommitEpoch, forgets = false): void {
    if (!this.#isUnderWay(epoch)) this.touched(forgets)
  }

  /** What belongs to it goes with it, and wants no commit of its own. */
  #isUnderWay(epoch: CommitEpoch): boolean {
    const machine = this.#committer?.machine
    return machine !== undefined && machine.epoch === epoch && machine.startedAtMs !== null
  }

  /** Stores have rows past their time that the next commit removes. */
  get hasExpired(): boolean {
    return this.#forgets
  }

  /** Nothing is under way, and nothing to be committed. */
  #rests(): void {
    const flow = this.#host.flow()
    if (flow && this.#committer?.machine.startedAtMs === null && !this.#dirty && !flow.moved()) flow.known.rests()
  }

  /** Outputs of a lane. */
  written(epoch: CommitEpoch, packs: readonly BatchPack[]): void {
    this.wanted(epoch)
    const batches = unpack(packs)
    this.#reports.written(batches)
    this.#host.flow()?.lead?.wrote(batches)
    this.#committer?.outputs(epoch, batches)
  }

  worked(): void {
    this.#pace.check()
  }

  /** How long a record may lie at the broker yet and not keep the next commit waiting, as fast as lanes are. */
  get slackMs(): number {
    return this.#pace.dueInMs - wayMs - this.#lanesMs
  }

  /** The commits of a new run, behind the newest one that the group knows of. */
  open(
    run: Run,
    newestTag: { readonly tokenEpoch: number; readonly seq: number } | undefined,
    topics: ResolvedTopics,
  ): Committer {
    const { settings, broker, clock, failpoint } = this.#o
    assert(this.tokenEpoch > 0, 'commits are counted under a token epoch')
    const host = this.#host
    const committer = new Committer(
      settings,
      broker,
      host.producer(),
      {
        run,
        place: host.place,
        freeze: (epoch) => this.#freeze(epoch, topics),
        toLanes: (message) => host.toLanes(message),
        toLane: (lane, message) => this.#o.send(lane, message, []),
        changelogTopic: (store) => topics.changelogs.get(store) ?? { topic: store, topicId: '' },
        positionOf: (topic, partition) => host.flow()?.positionOf({ topic, partition }),
        committed: (frozen, next) => this.#committed(frozen, next),
        done: (report) => this.#done(report),
        passed: failpoint,
        stillMs: (lanes, toldMs) => host.watch.withoutProgressMs(lanes, toldMs),
        slowestMs: () => host.watch.slowestMs,
        laneWork: (lanes) => {
          const work = host.watch.work(lanes, host.originTopics())
          return work && toldOf(work, (node) => this.#o.nodeNames[node] ?? null)
        },
        restart: (cause, timeout) => host.restart(cause, timeout),
        beforeResolving: () => host.beforeResolving(),
        pause: () => sleep(this.#o.timers, askAgainMs),
      },
      clock,
      { tokenEpoch: () => this.tokenEpoch, groupId: settings.applicationId },
      newestTag ?? { tokenEpoch: 0, seq: 0 },
    )
    this.#committer = committer
    if (this.#held) void committer.hold(true)
    return committer
  }

  /** What tasks that start now are told. */
  beginning(watermark: number): { epoch: number; watermark: number; fencingToken: number } {
    return { epoch: this.#committer?.machine.epoch ?? 1, watermark, fencingToken: this.tokenEpoch }
  }

  /** While it is on no commit begins, of whatever run. */
  hold(held: boolean): void {
    if (held === this.#held) return
    this.#held = held
    void this.#committer?.hold(held)
  }

  /** No commit of this run begins until it is given back: to this run's committer, whatever run there is by then. */
  holdOfRun(): { readonly held: Promise<void> | undefined; giveBack(): void } {
    const committer = this.#committer
    return { held: committer?.hold(true), giveBack: () => void committer?.hold(false) }
  }

  /** The open epoch is lost. */
  aborted(): void {
    if (this.#committer) this.#reports.aborted(this.#committer.machine, this.tokenEpoch)
  }

  /** The run is over. */
  close(): void {
    this.#ends.clear()
    this.#committer?.close()
    this.#committer = undefined
  }

  end(): void {
    this.#committer?.close()
    this.#pace.close()
  }

  #freeze(epoch: number, topics: ResolvedTopics): Frozen {
    const flow = this.#host.flow()
    assert(flow !== undefined, `epoch ${epoch} is frozen while nothing is read`)
    this.#pace.began()
    this.#dirty = false
    this.#forgets = false
    const { sinceBarrier: dispatched } = flow.dispatcher
    assert(dispatched >= 0, `${dispatched} records were dispatched since the last barrier`)
    const positions = flow.freeze()
    flow.known.mark()
    const { seq } = flow.dispatcher
    const { tokenEpoch } = this
    const [first] = positions
    const read = encodeRead(positions, topics.boundaries)
    const encode = (position: FrozenPosition): OffsetToCommit => {
      const { topic, partition, topicId, offset, maxTimestamp, comesTo, watermark, idle, kept, held } = position
      // The first one is committed every time.
      const stores = topic === first?.topic && partition === first.partition ? this.#stores : ''
      const of = topicId && incarnationOf(topicId)
      const done = {
        ...(of && { of }),
        ...(comesTo !== undefined && { comesTo }),
        ...(kept && { kept }),
        ...(held && { held }),
        ...(stores.length < roomyBytes && { read }),
      }
      const metadata = encodeTag({ tokenEpoch, seq: epoch, maxTimestamp, watermark, idle, ...done, stores })
      return { topic, partition, offset, metadata }
    }
    return {
      offsets: positions.filter(({ isTold }) => isTold).map(encode),
      watermark: flow.watermark,
      seq,
      dispatched,
      extra: this.#host.extra(),
      tell: (written, next, from) => {
        this.#refuseCut(topics, written, from)
        // Only now have all lanes said what they hold back.
        return this.#ends.tell(topics, endsOf(written, next), flow.known.held.withHeld(positions), encode)
      },
    }
  }

  /** Rows that the changelog has lost are in the stores still, and would be missing from the next start on. */
  #refuseCut(topics: ResolvedTopics, written: readonly StorePartition[], from: ReadonlyMap<string, number>): void {
    const cut = this.#ends.cut(written, from)
    if (cut === undefined) return
    const { store, partition, offset, end } = cut
    const what = `(partition ${partition}) was committed up to ${end}, and the broker writes to it at offset ${offset} now`
    throw changelogLost(this.#o.settings, store, what, topics.changelogs.get(store)?.topic ?? '', true)
  }

  #committed(frozen: Frozen, next: ReadonlyMap<string, number>): void {
    const flow = this.#host.flow()
    flow?.committed(frozen.offsets)
    flow?.known.passed()
    for (const [id, offset] of next) this.changelogNext.set(id, offset)
    this.#ends.committed()
    this.#reports.tookEffect()
  }

  #done(report: CommitReport): void {
    this.#lanesMs = Math.max(report.durationsMs.align, this.#lanesMs * keptShare)
    this.#reports.committed(report, this.tokenEpoch)
    this.#o.committed?.(report)
    this.#host.flow()?.wake()
    const now = this.#o.clock.monotonic()
    if (!this.#o.settings.ha || now - this.#toldAt < committedEveryMs) return
    this.#toldAt = now
    this.#o.fact({ type: 'committed', commitId: `${this.tokenEpoch}.${report.epoch}` })
  }
}
