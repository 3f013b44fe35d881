/** The commits of an engine over all its runs: when they begin, what they are called, what they tell. */
import type { CommitEpoch } from '../base/ids.ts'
import type { CommitReport } from '../commit/machine.ts'
import { encodeTag } from '../commit/tag.ts'
import type { GroupMember } from '../broker/port.ts'
import type { ToLane } from '../lanes/protocol.ts'
import type { BatchPack } from '../wire/batch-pack.ts'
import { CommitPace } from './commit-pace.ts'
import { Committer, type Frozen } from './committer.ts'
import type { EngineOptions } from './engine-options.ts'
import type { Flow } from './flow.ts'
import { type Producer, type ToProduce, unpack } from './producer.ts'
import type { Reports } from './reports.ts'
import type { ResolvedTopics } from './topics.ts'

export interface CommitsHost {
  run(): number
  flow(): Flow | undefined
  producer(): Producer
  member(): GroupMember
  /** Records are processed, and no restart is under way. */
  ready(): boolean
  ended(): boolean
  toLanes(message: ToLane): void
  /** What the engine's own sources add to the transaction. */
  extra(): readonly ToProduce[]
  restart(cause: unknown, barrierTimeout: boolean): void
  beforeResolving(): Promise<void>
}

/** High availability is told of commits, not of every one. */
const committedEveryMs = 250

export class Commits {
  /** Of the run: what its commits are counted under. */
  tokenEpoch = 0
  /** Next offset of every changelog partition, by store and partition. */
  readonly changelogNext = new Map<string, number>()
  readonly #o: EngineOptions
  readonly #host: CommitsHost
  readonly #reports: Reports
  readonly #pace: CommitPace
  #committer: Committer | undefined
  #dirty = false
  #forgets = false
  #held = false
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(options: EngineOptions, reports: Reports, host: CommitsHost) {
    this.#o = options
    this.#reports = reports
    this.#host = host
    const { settings, clock, timers } = options
    this.#pace = new CommitPace(settings.commitIntervalMs, settings.commitIdleIntervalMs, clock, timers, {
      tick: () => (host.ended() ? this.#pace.close() : this.#committer?.tick()),
      wanted: () => host.ready() && (this.#dirty || host.flow()?.moved() === true),
      caughtUp: () => host.flow()?.caughtUp === true,
      begin: () => this.#committer?.trigger('interval'),
    })
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

  /** Stores have rows past their time that the next commit removes. */
  get isForgetting(): boolean {
    return this.#forgets
  }

  /** Outputs of a lane. */
  written(epoch: CommitEpoch, packs: readonly BatchPack[]): void {
    const batches = unpack(packs)
    this.#reports.written(batches)
    this.#committer?.outputs(epoch, batches)
  }

  worked(): void {
    this.#pace.check()
  }

  /** The commits of a new run, behind the newest one that the group knows of. */
  open(
    newestTag: { readonly tokenEpoch: number; readonly seq: number } | undefined,
    topics: ResolvedTopics,
  ): Committer {
    const { settings, broker, clock, failpoint } = this.#o
    const host = this.#host
    const committer = new Committer(
      settings,
      broker,
      host.producer(),
      {
        run: () => host.run(),
        member: () => host.member(),
        freeze: (epoch) => this.#freeze(epoch),
        toLanes: (message) => host.toLanes(message),
        toLane: (lane, message) => this.#o.send(lane, message, []),
        changelogTopic: (store) => topics.changelogs.get(store) ?? { topic: store, topicId: '' },
        positionOf: (topic, partition) => host.flow()?.positionOf({ topic, partition }),
        committed: (frozen, next) => this.#committed(frozen, next),
        done: (report) => this.#done(report),
        passed: failpoint,
        restart: (cause, timeout) => host.restart(cause, timeout),
        beforeResolving: () => host.beforeResolving(),
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

  /** The open epoch is lost. */
  aborted(): void {
    if (this.#committer) this.#reports.aborted(this.#committer.machine, this.tokenEpoch)
  }

  /** The run is over. */
  close(): void {
    this.#committer?.close()
    this.#committer = undefined
  }

  end(): void {
    this.#committer?.close()
    this.#pace.close()
  }

  #freeze(epoch: number): Frozen {
    const flow = this.#host.flow() as Flow
    this.#pace.began()
    this.#dirty = false
    this.#forgets = false
    const positions = flow.freeze()
    const watermark = flow.watermark
    const tag = (maxTimestamp: number, idle: boolean): string =>
      encodeTag({ tokenEpoch: this.tokenEpoch, seq: epoch, maxTimestamp, watermark, idle })
    const offsets = positions.map(({ topic, partition, offset, maxTimestamp, idle }) => ({
      topic,
      partition,
      offset,
      metadata: tag(maxTimestamp, idle),
    }))
    return { offsets, watermark, extra: this.#host.extra() }
  }

  #committed(frozen: Frozen, next: ReadonlyMap<string, number>): void {
    this.#host.flow()?.committed(frozen.offsets)
    for (const [id, offset] of next) this.changelogNext.set(id, offset)
    this.#reports.tookEffect()
  }

  #done(report: CommitReport): void {
    this.#reports.committed(report, this.tokenEpoch)
    this.#host.flow()?.wake()
    const now = this.#o.clock.monotonic()
    if (!this.#o.settings.ha || now - this.#toldAt < committedEveryMs) return
    this.#toldAt = now
    this.#o.fact({ type: 'committed', commitId: `${this.tokenEpoch}.${report.epoch}` })
  }
}
