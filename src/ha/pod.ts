/** All that one pod's coordinator remembers. The files beside this one change it, each for its own concern. */
import type { Random } from '../base/random.ts'
import type { StandbyProgress } from '../engine/ha-contract.ts'
import type { HaRole, HaSettings, HaState } from './contract.ts'
import { freshHeartbeats, Readiness, type Self } from './decide.ts'
import { FreshClock } from './fresh-clock.ts'
import { LogView } from './log/log-view.ts'
import type { Cause, Encoded, Fault, Outcome } from './log/records.ts'
import { fitOf } from './topology-shape.ts'

/** What the engine was last told, and has answered. */
export type EngineStage =
  | 'opening'
  | 'standby'
  /** Takes the producer's identity. */
  | 'promoting'
  /** Has it, and waits for the token's verification. */
  | 'taken'
  | 'proceeding'
  | 'running'
  | 'handing-over'
  | 'stepping-down'
  | 'failed'

/** The engine's life under one token epoch. */
export interface Run {
  readonly epoch: number
  readonly cause: Cause
  readonly startedAt: number
  commitId: string | null
  isolated: boolean
}

export interface HandOver {
  readonly id: number
  readonly target: string | null
  readonly commandOffset: number | null
  /** The restarts are used up: the engine cannot drain, and steps down instead. */
  readonly exhausted: boolean
  /** The pod never became ACTIVE under its token epoch. */
  readonly unused: boolean
  stage: 'draining' | 'stepping-down' | 'releasing'
  readonly startedAt: number
  appendedAt: number
  commitId: string | null
}

/** A question to the log: once its record is read back, everything before it has been read. */
export interface Verification {
  readonly purpose:
    | { readonly type: 'promotion'; readonly epoch: number }
    | { readonly type: 'token'; readonly id: number }
    | { readonly type: 'isolation' }
  readonly nonces: Set<string>
  askedAt: number
  answered: boolean
}

export interface PendingClaim {
  readonly epoch: number
  readonly nonce: string
  readonly at: number
}

/** The broker's answer to something this pod wrote. */
export interface Refusal {
  readonly code: string
  readonly message: string
}

export interface PendingResult {
  readonly commandId: string
  readonly outcome: Outcome
  readonly reason: string
  appendedAt: number
}

export class Pod {
  readonly settings: HaSettings
  readonly incarnation: string
  readonly fresh: FreshClock
  readonly readiness = new Readiness()
  view = new LogView()

  joined = false
  joinedFresh = 0
  logIsNew = false
  /** No epoch up to this one may be claimed: commits exist under it, or it was seen before the topic was made anew. */
  baseEpoch = 0
  /** Told to the others: offset of this life's first record. */
  generation: number | null = null

  engine: EngineStage = 'opening'
  progress: StandbyProgress | undefined
  /** Its stores wait for room on the disk, and since when. */
  diskFull: { readonly sentence: string; readonly since: number } | undefined
  /** The engine restarts in place, that of a standby too. */
  restarting = false
  run: Run | undefined
  /** The topic was made anew under a run: its claim has to be written again. */
  reclaiming = false
  reclaimedAt = Number.NEGATIVE_INFINITY
  claim: PendingClaim | undefined
  handOver: HandOver | undefined
  readonly verifications: Verification[] = []
  readonly pendingResults = new Map<number, PendingResult>()
  paused = false
  engineIsolated = false
  faults: Fault[] = []
  inhibited = false
  restartRequired: string | null = null
  /** Commands that were refused here for their signature, by the pod through which they came, in its present life. */
  readonly refusals = new Map<string, { readonly incarnation: string; readonly commands: number }>()
  /** Why nothing of what this pod writes arrives, as far as the broker said so since the last that did. */
  refused: Refusal | undefined

  stopping = false
  goodbyeAt = Number.NEGATIVE_INFINITY
  ended = false

  heartbeat = 0
  statusAt = Number.NEGATIVE_INFINITY
  shown = ''
  readonly heartbeatsSent = new Map<number, number>()
  tidiedAt = 0
  releasedAt = Number.NEGATIVE_INFINITY
  /** When what the log has lost was told once more. */
  retoldAt = Number.NEGATIVE_INFINITY

  readonly promotions: Record<Cause, number> = { FAILOVER: 0, SWITCH: 0, PROMOTE: 0, BOOT: 0 }
  readonly commandResults: Record<Outcome, number> = { DONE: 0, REJECTED: 0, EXPIRED: 0 }
  lastPromotionMs: number | null = null
  handOvers = 0
  stepDowns = 0
  rollbacks = 0
  isolations = 0
  badRecords = 0
  #names = 0
  #handOvers = 0

  constructor(settings: HaSettings, random: Random) {
    this.settings = settings
    this.incarnation = randomName(random)
    const { heartbeatIntervalMs: beat, selfFenceTimeoutMs } = settings
    this.fresh = new FreshClock(2 * beat, Math.max(freshHeartbeats * beat, selfFenceTimeoutMs / 2))
  }

  get podId(): string {
    return this.settings.podId
  }

  /** A name that no other life of any pod uses. */
  nextName(): string {
    this.#names++
    return `${this.incarnation}-${this.#names}`
  }

  nextHandOver(): number {
    this.#handOvers++
    return this.#handOvers
  }

  /** Whether this life of this pod made the claim that counts for the newest epoch. */
  holdsToken(): boolean {
    const { holder } = this.view
    return holder?.podId === this.podId && holder.incarnation === this.incarnation
  }

  holds(epoch: number): boolean {
    return this.view.epoch === epoch && this.holdsToken()
  }

  /** What an operator said last, else as configured. */
  get failoverPriority(): number {
    return this.view.priorityOf(this.podId) ?? this.settings.failoverPriority
  }

  self(): Self {
    return {
      podId: this.podId,
      incarnation: this.incarnation,
      joinedFresh: this.joinedFresh,
      logIsNew: this.logIsNew,
      candidate: {
        podId: this.podId,
        ready: this.readiness.ready,
        barred: fitOf(this.view, this.settings).fit !== 'fits',
        diskFull: this.diskFull !== undefined,
        failoverPriority: this.failoverPriority,
        lagRecords: this.progress?.lagRecords ?? 0,
      },
    }
  }

  get role(): HaRole {
    const active = this.engine === 'running' || this.handOver !== undefined
    return this.run !== undefined && active ? 'ACTIVE' : 'STANDBY'
  }

  get state(): HaState {
    if (this.engine === 'failed') return 'FAILED'
    if (this.stopping) return 'STOPPING'
    if (!this.joined) return 'JOINING'
    if (this.handOver) return 'DEMOTING'
    if (this.run) {
      if (this.engine !== 'running') return 'PROMOTING'
      return this.run.isolated ? 'ISOLATED' : 'ACTIVE'
    }
    if (this.claim) return 'PROMOTING'
    if (this.engine === 'opening' || this.progress?.open === false) return 'BOOTSTRAPPING'
    return this.readiness.ready ? 'READY_STANDBY' : 'CATCHING_UP'
  }
}

export function randomName(random: Random): string {
  return Array.from({ length: 4 }, () => random.int(0x1_0000_0000).toString(16).padStart(8, '0')).join('')
}

/** A record without a value: its key is deleted. */
export function deletion(key: string): Encoded {
  return { key, value: null }
}
