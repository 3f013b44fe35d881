/**
 * Executes what the commit machine decides: marks to the lanes, batches and offsets to the broker, the end of the
 * transaction, and the resolution of an outcome that nobody saw.
 */
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import type { Failpoint } from '../../base/failpoint.ts'
import { type CommitEpoch, partitionKey } from '../../base/ids.ts'
import type { BrokerPort, OffsetToCommit } from '../../broker/port.ts'
import { asMember, confirmMember, type OwnPlace } from '../group/own-place.ts'
import { CommitMachine, type CommitEffect, type CommitEvent, type CommitReport, type CommitTrigger } from './machine.ts'
import { outcomeOf } from './outcome.ts'
import { compareTags } from './tag.ts'
import { EngineError, type EngineErrorDetails, messageOf } from '../../base/errors.ts'
import type { FromLane, StorePartition, ToLane } from '../../lanes/protocol.ts'
import type { Checkpoint } from '../../state/contract.ts'
import { type BatchPack, eachBatch, PackUse } from '../../broker/wire/batch-pack.ts'
import { Outgoing } from './outgoing.ts'
import type { Producer, ToProduce } from './producer.ts'
import type { Run } from '../run.ts'
import type { EngineSettings } from '../settings.ts'

type Offsets = ReadonlyMap<string, number>

/** What one epoch commits, frozen when its mark is sent. */
export interface Frozen {
  readonly offsets: readonly OffsetToCommit[]
  readonly watermark: number
  /** Number of the record dispatched last, and how many were dispatched since the mark before. */
  readonly seq: number
  readonly dispatched: number
  /** Records that the engine itself adds to the transaction (state of scheduled sources). */
  readonly extra: readonly ToProduce[]
  /** The offsets, with what they tell of the changelogs that were written; `from`, `next`: where, by store and partition. */
  tell(written: readonly StorePartition[], next: Offsets, from: Offsets): readonly OffsetToCommit[]
}

export interface CommitterHost {
  /** The run whose commits these are. */
  readonly run: Run
  readonly place: OwnPlace
  /** Sends everything dispatched to the lanes and freezes offsets and watermark. */
  freeze(epoch: CommitEpoch): Frozen
  toLanes(message: ToLane): void
  toLane(lane: number, message: ToLane): void
  changelogTopic(store: string): { readonly topic: string; readonly topicId: string }
  /** Where the last commit left a partition of a source; undefined where it is none. */
  positionOf(topic: string, partition: number): number | undefined
  /** The commit took effect at the broker: offsets and positions of the changelogs move. */
  committed(frozen: Frozen, changelogNext: ReadonlyMap<string, number>): void
  done(report: CommitReport): void
  /** Told of every step that a commit has taken; given by tests alone. */
  readonly passed?: Failpoint | undefined
  /** For how long none of these lanes has come further, all of which were told something that long ago. */
  stillMs(lanes: readonly number[], toldMs: number): number
  /** How long the slowest function of the application takes. */
  slowestMs(): number
  /** What these lanes are at, for the end of a sentence. */
  laneWork(lanes: readonly number[]): { readonly sentence: string; readonly place: EngineErrorDetails } | undefined
  /** The open epoch is lost. */
  restart(cause: unknown, barrierTimeout: boolean): void
  /** Throws where another process may have the right to the identity by which an outcome is found out. */
  beforeResolving?(): Promise<void>
  /** Before a broker that did not answer is asked again. */
  pause(): Promise<void>
}

interface ChangelogBatches extends StorePartition {
  /** Which lane has the store, and is told when it is committed. */
  readonly lane: number
  readonly batches: Array<Pick<ToProduce, 'records' | 'count' | 'use'>>
}

type StoreCheckpoint = StorePartition & { readonly checkpoint: Checkpoint }

export interface CommitIdentity {
  /** Of the run; rises when partitions come whose commits were counted further. */
  readonly tokenEpoch: () => number
  /** Sequence number of the run's first commit is epoch 1's: the epoch itself. */
  readonly groupId: string
}

export class Committer {
  readonly #settings: EngineSettings
  readonly #broker: BrokerPort
  readonly #producer: Producer
  readonly #host: CommitterHost
  readonly #clock: Clock
  readonly #identity: CommitIdentity
  readonly #machine: CommitMachine
  #frozen: Frozen | undefined
  /** What is committed of this epoch, once its changelogs are written. */
  #offsets: readonly OffsetToCommit[] = []
  readonly #outgoing: Outgoing
  #changelogs: ChangelogBatches[] = []
  #acked = new Set<number>()
  readonly #changelogFrom = new Map<string, number>()
  readonly #changelogNext = new Map<string, number>()
  /** The last tag known to be committed. */
  #lastTag: { tokenEpoch: number; seq: number }
  #closed = false
  #holds = 0
  readonly #waiting: Array<() => void> = []

  constructor(
    settings: EngineSettings,
    broker: BrokerPort,
    producer: Producer,
    host: CommitterHost,
    clock: Clock,
    identity: CommitIdentity,
    lastTag: { tokenEpoch: number; seq: number },
  ) {
    this.#settings = settings
    this.#broker = broker
    this.#producer = producer
    this.#host = host
    this.#clock = clock
    this.#identity = identity
    this.#lastTag = lastTag
    this.#outgoing = new Outgoing(settings, producer, clock, () => host.slowestMs())
    this.#machine = new CommitMachine({
      lanes: settings.lanes,
      barrierTimeoutMs: settings.barrierTimeoutMs,
      // Commits of one token are counted on across restarts in place: tags only ever rise.
      firstEpoch: lastTag.tokenEpoch === identity.tokenEpoch() ? lastTag.seq + 1 : 1,
    })
  }

  get machine(): CommitMachine {
    return this.#machine
  }

  get acknowledged(): ReadonlySet<number> {
    return this.#acked
  }

  /** Bytes of output that wait in the engine, for the broker's answer or for the next transaction. */
  get heldBytes(): number {
    return this.#outgoing.bytes + this.#producer.queuedBytes
  }

  get commitId(): string {
    return `${this.#identity.tokenEpoch()}.${this.#machine.epoch}`
  }

  trigger(cause: CommitTrigger): void {
    this.#feed({ type: 'trigger', cause })
  }

  /** Commits and resolves when a commit that began after the call is done; rejects never: a restart settles it too. */
  commitNow(cause: CommitTrigger): Promise<void> {
    if (this.#closed) return Promise.resolve()
    const running = this.#machine.phase !== 'IDLE' && this.#machine.phase !== 'QUEUED'
    return new Promise((resolve) => {
      // A commit that is under way froze its offsets before the call: only the one after it counts.
      let left = running ? 2 : 1
      const wait = (): void => {
        if (this.#closed || --left === 0) resolve()
        else this.#waiting.push(wait)
      }
      this.#waiting.push(wait)
      this.trigger(cause)
    })
  }

  tick(): void {
    const { outstandingLanes, phase, phaseSinceMs } = this.#machine
    // To apply a commit may take its time; a function of the application may not.
    const toldMs = phase === 'APPLYING_STORES' ? 0 : this.#clock.monotonic() - phaseSinceMs
    this.#feed({ type: 'tick', stillMs: this.#host.stillMs(outstandingLanes, toldMs) })
  }

  /** While anybody holds, no commit begins; resolves when none is under way. Every hold is to be given back. */
  async hold(held: boolean): Promise<void> {
    this.#holds += held ? 1 : -1
    assert(this.#holds >= 0, 'who gives back a hold of commits has taken it here')
    this.#feed({ type: 'hold', held: this.#holds > 0 })
    while (held && !this.#closed && this.#machine.startedAtMs !== null) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  close(): void {
    this.#closed = true
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  outputs(epoch: CommitEpoch, batches: readonly ToProduce[]): void {
    const { epoch: current } = this.#machine
    assert(epoch === current || epoch === current + 1, `outputs of epoch ${epoch} come while ${current} is open`)
    if (epoch !== current) this.#outgoing.addNext(batches)
    else this.#outgoing.add(batches)
  }

  laneMessage(message: Extract<FromLane, { type: 'ack' | 'applied' }>): void {
    const { lane, epoch } = message
    if (message.type === 'ack') {
      assert(lane < this.#settings.lanes, `there is no lane ${lane}`)
      this.#acked.add(lane)
      for (const pack of message.changelogs) gather(lane, pack, this.#changelogs)
      this.#feed({
        type: 'lane-ack',
        lane,
        epoch,
        taken: message.taken,
        sent: message.sent,
        received: message.received,
      })
    } else {
      this.#feed({ type: 'lane-applied', lane, epoch })
    }
  }

  #feed(event: CommitEvent): void {
    if (this.#closed) return
    for (const effect of this.#machine.step(event, this.#clock.monotonic())) this.#execute(effect)
  }

  #execute(effect: CommitEffect): void {
    switch (effect.type) {
      case 'barrier':
        assert(this.#frozen === undefined, `epoch ${effect.epoch} is frozen while another one is being committed`)
        this.#acked = new Set()
        this.#changelogs = []
        this.#frozen = this.#host.freeze(effect.epoch)
        this.#host.toLanes({
          type: 'barrier',
          run: this.#host.run.number,
          epoch: effect.epoch,
          watermark: this.#frozen.watermark,
          seq: this.#frozen.seq,
        })
        this.#machine.step({ type: 'barrier-sent', dispatched: this.#frozen.dispatched }, this.#clock.monotonic())
        this.#host.passed?.('S0')
        return
      case 'flush':
        this.#host.passed?.('S1')
        this.#attempt(this.#flush(), { type: 'flushed' })
        return
      case 'send-offsets':
        this.#attempt(this.#sendOffsets(), { type: 'offsets-sent' })
        return
      case 'end-transaction':
        this.#end()
        return
      case 'resolve':
        this.#resolve().then(
          (outcome) => this.#feed({ type: 'resolved', outcome }),
          (error) => this.#lost(error),
        )
        return
      case 'apply':
        this.#apply(effect.epoch)
        return
      case 'done':
        this.#done(effect.report)
        return
      case 'restart':
        if (this.#error !== undefined || !this.#closed)
          this.#host.restart(this.#error ?? this.#aborted(effect.cause, effect.barrierTimeout), effect.barrierTimeout)
    }
  }

  /** What the commit under way commits. */
  get #part(): Frozen {
    assert(this.#frozen !== undefined, 'a commit goes on that froze nothing')
    return this.#frozen
  }

  #aborted(cause: string, barrierTimeout: boolean): EngineError {
    if (!barrierTimeout) return new EngineError('TRANSACTION_ABORTED', cause)
    const work = this.#host.laneWork(this.#machine.outstandingLanes)
    return new EngineError('BARRIER_TIMEOUT', work ? `${cause}; ${work.sentence}` : cause, work?.place)
  }

  #error: unknown

  #attempt(work: Promise<void>, then: CommitEvent): void {
    work.then(
      () => this.#feed(then),
      (error) => this.#lost(error),
    )
  }

  #lost(error: unknown): void {
    this.#error = error
    this.#feed({ type: 'failed', error: messageOf(error) })
  }

  async #flush(): Promise<void> {
    const now = this.#clock.monotonic()
    assert(this.#acked.size === this.#settings.lanes, 'an epoch is flushed that not all lanes have acknowledged')
    this.#outgoing.completed()
    // What a store says is done, such as a window that has closed, is not told again. No transaction ties it to its results.
    if (this.#settings.guarantee === 'at-least-once') await this.#producer.flush()
    // The run may be over by now: what it wrote is no concern of the next one's.
    if (this.#closed) return
    for (const [store, changelogs] of Map.groupBy(this.#changelogs, (each) => each.store)) {
      const { topic } = this.#host.changelogTopic(store)
      const batches = changelogs.flatMap(({ partition, batches: of }) =>
        of.map(({ records, count, use }): ToProduce => ({ topic, partition, records, count, use })),
      )
      this.#producer.queue(batches, now, ({ partition, count }, offset) => {
        const id = `${store}/${partition}`
        this.#changelogFrom.set(id, Math.min(offset, this.#changelogFrom.get(id) ?? offset))
        this.#changelogNext.set(id, Math.max(offset + count, this.#changelogNext.get(id) ?? 0))
      })
    }
    this.#producer.queue(this.#part.extra, now)
    await this.#producer.flush()
    if (this.#closed) return
    this.#outgoing.written()
    this.#offsets = this.#part.tell(this.#changelogs, this.#changelogNext, this.#changelogFrom)
    this.#changelogFrom.clear()
    this.#host.passed?.('S2')
  }

  async #sendOffsets(): Promise<void> {
    const offsets = this.#offsets
    const { place } = this.#host
    if (this.#settings.guarantee === 'exactly-once') {
      if (offsets.length > 0) await asMember(place, (member) => this.#producer.sendOffsets(member, offsets))
      else await confirmMember(this.#broker, place)
    }
    this.#host.passed?.('S3')
  }

  #end(): void {
    const offsets = this.#offsets
    const work =
      this.#settings.guarantee === 'exactly-once'
        ? this.#producer.end(true)
        : asMember(this.#host.place, (member) => this.#broker.commitOffsets(member, offsets)).then(() =>
            this.#producer.end(true),
          )
    this.#host.passed?.('S4')
    work.then(
      () => this.#feed({ type: 'committed' }),
      (error) => {
        this.#error = error
        // The request may have arrived although no answer did: only the offsets' tag can tell.
        this.#feed({ type: 'outcome-unknown', error: messageOf(error) })
      },
    )
  }

  /** Whether the transaction of this epoch took effect: the tag in the committed offsets says so. */
  async #resolve(): Promise<'committed' | 'aborted'> {
    if (this.#settings.guarantee === 'at-least-once') return 'aborted'
    await this.#host.beforeResolving?.()
    const parts = { broker: this.#broker, producer: this.#producer, clock: this.#clock, settings: this.#settings }
    return outcomeOf(
      { ...parts, groupId: this.#identity.groupId, place: this.#host.place, pause: () => this.#host.pause() },
      this.#part.offsets,
      () => ({ tokenEpoch: this.#identity.tokenEpoch(), seq: this.#machine.epoch }),
      () => this.#lastTag,
    )
  }

  #apply(epoch: CommitEpoch): void {
    this.#host.passed?.('S5')
    const tag = { tokenEpoch: this.#identity.tokenEpoch(), seq: epoch }
    assert(compareTags(tag, this.#lastTag) > 0, 'tags rise with every commit')
    this.#lastTag = tag
    const { commitId } = this
    const byLane = Array.from({ length: this.#settings.lanes }, (): StoreCheckpoint[] => [])
    // A source topic that serves as changelog is known as far as it was read.
    const read = new Map(this.#frozen?.offsets.map((o) => [partitionKey(o.topic, o.partition), o.offset]))
    for (const { lane, store, partition } of this.#changelogs) {
      const { topic, topicId } = this.#host.changelogTopic(store)
      const source = read.get(partitionKey(topic, partition)) ?? this.#host.positionOf(topic, partition)
      const changelogOffset = source ?? this.#changelogNext.get(`${store}/${partition}`) ?? 0
      byLane[lane]?.push({ store, partition, checkpoint: { changelogOffset, commitId, topicId } })
    }
    this.#host.committed(this.#part, this.#changelogNext)
    const { number: run } = this.#host.run
    for (const [lane, checkpoints] of byLane.entries()) {
      this.#host.toLane(lane, { type: 'result', run, epoch, commitId, checkpoints })
    }
  }

  #done(report: CommitReport): void {
    this.#host.passed?.('S7')
    this.#frozen = undefined
    this.#offsets = []
    this.#error = undefined
    this.#outgoing.committed()
    this.#host.done(report)
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** Batches of one store partition follow one another. */
function gather(lane: number, pack: BatchPack, into: ChangelogBatches[]): void {
  const use = new PackUse(pack)
  eachBatch(pack, (store, partition, count, records) => {
    let to = into.at(-1)
    if (to?.store !== store || to.partition !== partition) {
      to = { lane, store, partition, batches: [] }
      into.push(to)
    }
    if (records.length > 0) to.batches.push({ records, count, use: use.add() })
  })
}
