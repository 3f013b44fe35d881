/**
 * The commit pipeline as a pure state machine: events in, effects out. Whoever runs it executes the effects and feeds
 * their outcome back. One commit is under way at a time; lanes work on the next epoch meanwhile.
 *
 *   IDLE → AWAITING_LANE_ACKS → FLUSHING → SENDING_OFFSETS → IN_TX_COMMIT → APPLYING_STORES → IDLE
 *                  └─────────────────┴──── failure ───┴→ ABORTING            │
 *                                                     unknown outcome → RESOLVING_OUTCOME → APPLYING_STORES | ABORTING
 *
 * QUEUED is IDLE with a commit asked for that may not begin yet.
 */
import { assert } from '../../base/assert.ts'
import type { CommitEpoch } from '../../base/ids.ts'

export type CommitPhase =
  | 'IDLE'
  | 'QUEUED'
  | 'AWAITING_LANE_ACKS'
  | 'FLUSHING'
  | 'SENDING_OFFSETS'
  | 'IN_TX_COMMIT'
  | 'APPLYING_STORES'
  | 'RESOLVING_OUTCOME'
  | 'ABORTING'

export type CommitTrigger = 'interval' | 'bytes' | 'requested' | 'pause' | 'revoke' | 'shutdown' | 'idle' | 'handoff'

export type CommitEvent =
  | { readonly type: 'trigger'; readonly cause: CommitTrigger }
  | {
      readonly type: 'lane-ack'
      readonly lane: number
      readonly epoch: CommitEpoch
      /** Records of this epoch that the lane has done: from the engine, handed to other lanes, handed over by them. */
      readonly taken: number
      readonly sent: number
      readonly received: number
    }
  /** How many records were dispatched in the epoch whose mark was sent. */
  | { readonly type: 'barrier-sent'; readonly dispatched: number }
  | { readonly type: 'flushed' }
  | { readonly type: 'offsets-sent' }
  | { readonly type: 'committed' }
  | { readonly type: 'outcome-unknown'; readonly error: string }
  | { readonly type: 'resolved'; readonly outcome: 'committed' | 'aborted' }
  | { readonly type: 'lane-applied'; readonly lane: number; readonly epoch: CommitEpoch }
  | { readonly type: 'failed'; readonly error: string }
  | { readonly type: 'hold'; readonly held: boolean }
  /** `stillMs`: for how long no outstanding lane has come further; where it is not known, since the phase began. */
  | { readonly type: 'tick'; readonly stillMs?: number }

type LaneAck = Extract<CommitEvent, { type: 'lane-ack' }>

export type CommitEffect =
  /** Freeze the offsets and send the mark of this epoch to all lanes. */
  | { readonly type: 'barrier'; readonly epoch: CommitEpoch }
  /** Produce what lanes gave for this epoch and wait for the acknowledgements. */
  | { readonly type: 'flush'; readonly epoch: CommitEpoch }
  | { readonly type: 'send-offsets'; readonly epoch: CommitEpoch }
  | { readonly type: 'end-transaction'; readonly epoch: CommitEpoch }
  /** Find out from the commit tag whether the transaction took effect. */
  | { readonly type: 'resolve'; readonly epoch: CommitEpoch }
  /** Tell the lanes to write the epoch's state. */
  | { readonly type: 'apply'; readonly epoch: CommitEpoch }
  | { readonly type: 'done'; readonly report: CommitReport }
  /** The epoch is lost: restart in place from the last commit. */
  | { readonly type: 'restart'; readonly cause: string; readonly barrierTimeout: boolean }

export interface CommitReport {
  readonly epoch: CommitEpoch
  readonly trigger: CommitTrigger
  readonly startedAtMs: number
  readonly durationsMs: {
    readonly align: number
    readonly flush: number
    readonly offsets: number
    readonly endTransaction: number
    readonly apply: number
  }
}

export interface CommitMachineOptions {
  readonly lanes: number
  readonly barrierTimeoutMs: number
  readonly firstEpoch: CommitEpoch
}

/** From each phase, those that may follow it. */
const follows: Readonly<Record<CommitPhase, readonly CommitPhase[]>> = {
  IDLE: ['AWAITING_LANE_ACKS', 'ABORTING'],
  QUEUED: [],
  AWAITING_LANE_ACKS: ['FLUSHING', 'ABORTING'],
  FLUSHING: ['SENDING_OFFSETS', 'ABORTING'],
  SENDING_OFFSETS: ['IN_TX_COMMIT', 'ABORTING'],
  IN_TX_COMMIT: ['APPLYING_STORES', 'RESOLVING_OUTCOME', 'ABORTING'],
  RESOLVING_OUTCOME: ['APPLYING_STORES', 'ABORTING'],
  APPLYING_STORES: ['IDLE', 'ABORTING'],
  ABORTING: [],
}

export class CommitMachine {
  readonly #options: CommitMachineOptions
  #phase: CommitPhase = 'IDLE'
  #epoch: CommitEpoch
  #queued: CommitTrigger | null = null
  #held = false
  #trigger: CommitTrigger | null = null
  #startedAt = 0
  #phaseSince = 0
  #outstanding = new Set<number>()
  #dispatched = 0
  #taken = 0
  #sent = 0
  #received = 0
  readonly #durations = { align: 0, flush: 0, offsets: 0, endTransaction: 0, apply: 0 }

  constructor(options: CommitMachineOptions) {
    assert(options.lanes > 0, 'a commit is acknowledged by one lane at least')
    assert(options.firstEpoch > 0, `epochs are counted from 1, not from ${options.firstEpoch}`)
    this.#options = options
    this.#epoch = options.firstEpoch
  }

  get phase(): CommitPhase {
    return this.#phase === 'IDLE' && this.#queued !== null ? 'QUEUED' : this.#phase
  }

  /** Epoch being committed; while idle, the one that is open. */
  get epoch(): CommitEpoch {
    return this.#epoch
  }

  get queued(): boolean {
    return this.#queued !== null
  }

  get trigger(): CommitTrigger | null {
    return this.#trigger
  }

  get startedAtMs(): number | null {
    return this.#phase === 'IDLE' ? null : this.#startedAt
  }

  get phaseSinceMs(): number {
    return this.#phaseSince
  }

  /** Lanes that have not acknowledged the barrier, or not applied the commit. */
  get outstandingLanes(): readonly number[] {
    return [...this.#outstanding]
  }

  step(event: CommitEvent, now: number): CommitEffect[] {
    switch (event.type) {
      case 'trigger':
        if (this.#phase === 'IDLE' && !this.#held) return this.#begin(event.cause, now)
        this.#queued ??= event.cause
        return []
      case 'hold':
        this.#held = event.held
        return this.#next(now)
      case 'lane-ack':
        return this.#laneAck(event, now)
      case 'barrier-sent':
        this.#dispatched = event.dispatched
        return []
      case 'flushed':
        if (this.#phase !== 'FLUSHING') return []
        this.#durations.flush = this.#enter('SENDING_OFFSETS', now)
        return [{ type: 'send-offsets', epoch: this.#epoch }]
      case 'offsets-sent':
        if (this.#phase !== 'SENDING_OFFSETS') return []
        this.#durations.offsets = this.#enter('IN_TX_COMMIT', now)
        return [{ type: 'end-transaction', epoch: this.#epoch }]
      case 'committed':
        return this.#phase === 'IN_TX_COMMIT' ? this.#committed(now) : []
      case 'outcome-unknown':
        if (this.#phase !== 'IN_TX_COMMIT') return []
        this.#enter('RESOLVING_OUTCOME', now)
        return [{ type: 'resolve', epoch: this.#epoch }]
      case 'resolved':
        if (this.#phase !== 'RESOLVING_OUTCOME') return []
        return event.outcome === 'committed'
          ? this.#committed(now)
          : this.#abort('the transaction was aborted', false, now)
      case 'lane-applied':
        return this.#laneApplied(event.lane, event.epoch, now)
      case 'failed':
        return this.#phase === 'ABORTING' ? [] : this.#abort(event.error, false, now)
      case 'tick':
        return this.#tick(event.stillMs ?? now - this.#phaseSince, now)
    }
  }

  /** A lane that comes further, however slowly, is waited for. */
  #tick(stillMs: number, now: number): CommitEffect[] {
    const waits = this.#phase === 'AWAITING_LANE_ACKS' || this.#phase === 'APPLYING_STORES'
    if (!waits || stillMs < this.#options.barrierTimeoutMs) return []
    const what = this.#phase === 'APPLYING_STORES' ? 'apply the commit' : 'reach the barrier'
    return this.#abort(`lanes ${[...this.#outstanding].join(', ')} did not ${what} in time`, true, now)
  }

  #begin(cause: CommitTrigger, now: number): CommitEffect[] {
    assert(this.#outstanding.size === 0, `epoch ${this.#epoch} begins before all lanes are done with the one before it`)
    this.#queued = null
    this.#trigger = cause
    this.#startedAt = now
    this.#taken = 0
    this.#sent = 0
    this.#received = 0
    this.#enter('AWAITING_LANE_ACKS', now)
    this.#awaitLanes()
    return [{ type: 'barrier', epoch: this.#epoch }]
  }

  #awaitLanes(): void {
    this.#outstanding = new Set(Array.from({ length: this.#options.lanes }, (_, lane) => lane))
  }

  #laneAck({ lane, epoch, taken, sent, received }: LaneAck, now: number): CommitEffect[] {
    if (this.#phase !== 'AWAITING_LANE_ACKS' || epoch !== this.#epoch || !this.#outstanding.delete(lane)) return []
    assert(taken >= 0 && sent >= 0 && received >= 0, `lane ${lane} counted fewer records than none`)
    this.#taken += taken
    this.#sent += sent
    this.#received += received
    if (this.#outstanding.size > 0) return []
    // Every channel's mark was checked against what came; the totals over all lanes prove it once more.
    if (this.#sent !== this.#received) {
      return this.#abort(`${this.#sent} records were handed over and ${this.#received} arrived`, false, now)
    }
    if (this.#taken !== this.#dispatched) {
      return this.#abort(`${this.#dispatched} records were dispatched and ${this.#taken} were done`, false, now)
    }
    this.#durations.align = this.#enter('FLUSHING', now)
    return [{ type: 'flush', epoch: this.#epoch }]
  }

  #committed(now: number): CommitEffect[] {
    assert(this.#outstanding.size === 0, 'a transaction was committed before all lanes had acknowledged its epoch')
    this.#durations.endTransaction = this.#enter('APPLYING_STORES', now)
    this.#awaitLanes()
    return [{ type: 'apply', epoch: this.#epoch }]
  }

  #laneApplied(lane: number, epoch: CommitEpoch, now: number): CommitEffect[] {
    if (this.#phase !== 'APPLYING_STORES' || epoch !== this.#epoch || !this.#outstanding.delete(lane)) return []
    if (this.#outstanding.size > 0) return []
    const trigger = this.#trigger
    assert(trigger !== null, `epoch ${epoch} was committed, and nobody had asked for it`)
    this.#durations.apply = this.#enter('IDLE', now)
    const report: CommitReport = {
      epoch: this.#epoch,
      trigger,
      startedAtMs: this.#startedAt,
      durationsMs: { ...this.#durations },
    }
    this.#epoch++
    return [{ type: 'done', report }, ...this.#next(now)]
  }

  #next(now: number): CommitEffect[] {
    if (this.#phase !== 'IDLE' || this.#held || this.#queued === null) return []
    return this.#begin(this.#queued, now)
  }

  #abort(cause: string, barrierTimeout: boolean, now: number): CommitEffect[] {
    this.#enter('ABORTING', now)
    this.#queued = null
    return [{ type: 'restart', cause, barrierTimeout }]
  }

  #enter(phase: CommitPhase, now: number): number {
    assert(follows[this.#phase].includes(phase), `a commit goes from ${this.#phase} to ${phase}`)
    const spent = now - this.#phaseSince
    this.#phase = phase
    this.#phaseSince = now
    return spent
  }
}
