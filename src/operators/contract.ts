/**
 * The contract of an operator: one vertex of the physical topology at work in one task. Operators are single-threaded
 * and push: `process` runs a record through everything below before it returns, unless a user function returned a
 * promise; then `process` returns a promise too, and the lane keeps the key's next record waiting until it settles.
 * Watermarks never overtake a record that waits.
 */
import type { LogPort } from '../base/logger.ts'
import type { ByteRange } from '../base/byte-range.ts'
import type { AnyStore } from '../state/contract.ts'
import type { CompiledNode } from '../topology/compiled.ts'
import type { Headers } from '../broker/wire/headers.ts'

/** What a processing step gives back: nothing when all is done, a promise when a user function is still at it. */
export type Maybe = void | Promise<void>

/**
 * A record on its way through a task. Always made by the constructor, so that all have one shape; immutable by
 * convention: an operator that changes something makes a new one.
 */
export class Rec {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp: number
  readonly headers: Headers
  /** Where the source record came from; a scheduled or punctuated record has topic '' and partition, offset -1. */
  readonly origin: Origin
  /** Where the key's and the value's encoded bytes lie while they still are what `key` and `value` say, else undefined. */
  readonly keyRange: ByteRange | null | undefined
  readonly valueRange: ByteRange | null | undefined

  constructor(
    key: unknown,
    value: unknown,
    timestamp: number,
    headers: Headers,
    origin: Origin,
    keyRange: ByteRange | null | undefined,
    valueRange: ByteRange | null | undefined,
  ) {
    this.key = key
    this.value = value
    this.timestamp = timestamp
    this.headers = headers
    this.origin = origin
    this.keyRange = keyRange
    this.valueRange = valueRange
  }

  /** A view of the key's bytes, made anew at each call. */
  get keyBytes(): Uint8Array | null | undefined {
    return this.keyRange?.view() ?? (this.keyRange as null | undefined)
  }

  /** A view of the value's bytes, made anew at each call. */
  get valueBytes(): Uint8Array | null | undefined {
    return this.valueRange?.view() ?? (this.valueRange as null | undefined)
  }

  /** User functions see a record with `topic`, `partition`, `offset` (`RecordView`). */
  get topic(): string {
    return this.origin.topic
  }

  get partition(): number {
    return this.origin.partition
  }

  get offset(): number {
    return this.origin.offset
  }
}

export interface Origin {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Watermark in force when the source record was dispatched (it included): lateness is judged by this alone. -Infinity while unknown. */
  readonly watermark: number
  /** Commit epoch of the source record: what follows from it belongs to this epoch, however late it is done. */
  readonly epoch: number
  /** Watermark before the source record was dispatched, or the time of the timer: timers up to it fire first. */
  readonly at: number
  /** The source record's place in the engine's order of dispatch. Timers have negative ones: they come before records. */
  readonly seq: number
  /** Place among all that follows from one source record: how many hand-offs it is away from it, and behind the point which ones. */
  readonly sub: number
  /** How many records were handed on from here. */
  handed: number
  /** The record as it came to this sub-topology, where it may become a dead letter after it was changed on its way. */
  came: CameAs | undefined
  /** While a function of the application has the record, or it waits for one: what its lane knows of that. */
  call: OpenCall | undefined
}

/**
 * The origin of a record whose place nobody asks for: what it would hardly ever have of its own stands in the prototype, for
 * one is made of every record.
 */
export class PlainOrigin implements Origin {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly watermark: number
  readonly epoch: number
  declare readonly at: number
  declare readonly seq: number
  declare readonly sub: number
  declare handed: number
  declare came: CameAs | undefined
  declare call: OpenCall | undefined

  constructor(topic: string, partition: number, offset: number, watermark: number, epoch: number) {
    this.topic = topic
    this.partition = partition
    this.offset = offset
    this.watermark = watermark
    this.epoch = epoch
  }
}
Object.assign(PlainOrigin.prototype, { at: 0, seq: 0, sub: 0, handed: 0, came: undefined, call: undefined })

/** An asynchronous function that was called and has not answered, or is to be called when it is the record's turn. */
export interface OpenCall {
  /** Of the record; undefined for a timer. */
  readonly origin: Origin | undefined
  /** Of the lane in which it was made. */
  readonly run: number
  /** Counts up: another number is another call. */
  number: number
  node: number
  beganMs: number
  /** When the first of the calls began that are made one after the other for the same record, or for timers. */
  firstMs: number
  /** Its record has left the task's turn in which it came, and is waited for. */
  isAwaited: boolean
  /** The record waits for its turn: no function of the application has it. */
  isHeld: boolean
  /** Those that were called before and after it and have not answered; undefined as well where it is not among them. */
  older: OpenCall | undefined
  newer: OpenCall | undefined
}

export interface CameAs {
  readonly key: ByteRange | null
  readonly value: ByteRange | null
  readonly timestamp: number
  readonly headers: Headers
}

/** The origin of a record that is processed at once, alone: it needs no place among others. */
export function originAt(topic: string, partition: number, offset: number, watermark: number, epoch: number): Origin {
  return {
    topic,
    partition,
    offset,
    watermark,
    epoch,
    at: watermark,
    seq: 0,
    sub: 0,
    handed: 0,
    came: undefined,
    call: undefined,
  }
}

/** Value on an edge below a table: the update of one row. */
export class Change {
  readonly newValue: unknown
  readonly oldValue: unknown
  /** False for an out-of-order update of a versioned table. */
  readonly isLatest: boolean
  /** Event time at which the old value was told, where it may be later than that of this update. */
  readonly oldTimestamp: number | undefined

  constructor(newValue: unknown, oldValue: unknown, isLatest = true, oldTimestamp?: number) {
    this.newValue = newValue
    this.oldValue = oldValue
    this.isLatest = isLatest
    this.oldTimestamp = oldTimestamp
  }
}

export type DropReason =
  | 'late'
  /** For some of its windows; it is in the others. */
  | 'late_window'
  | 'null_key'
  | 'null_value'
  | 'deserialize'
  | 'handler'
  | 'negative_timestamp'
  | 'expired'
  /** Older than the newest version of its row. A versioned table keeps it, and what follows the newest rows passes it over. */
  | 'out_of_order'

/** The way into one function of the application, for all tasks that run beside one another. */
export interface CallGate {
  /** The function may be called at once, and nothing but the number of calls is bounded. */
  readonly isFree: boolean
  /** It was called, and gave a promise. */
  entered(): void
  /** The promise was kept, or not. */
  left(isKept: boolean): void
  /** Calls it when it is this record's turn. */
  run(origin: Origin, call: () => unknown): Promise<unknown>
}

/** What is known of the records that come to a task. */
export interface InputKnowledge {
  /** All that had come by this instant of the wall clock was processed. */
  knownTo(): number
  /** For how long, all in all up to this instant, nobody could have seen a record. */
  blindMs(upTo: number): number
  /** When the last record came to the task; 0 before the first. */
  cameAt(): number
  /** Earliest event time of what is held back above this operator, as far as is known to have come; Infinity: nothing. */
  heldFrom(operator: Operator): number
  /** How far event time stays behind the clock, so that what windows above tell when they close is there in time. */
  readonly behindMs: number
  /** By how much records may be older than others that came before them, as the sources say. */
  readonly disorderMs: number
}

/** What a task offers its operators. */
export interface TaskContext {
  readonly subtopology: number
  /** The task's partition: the changelog partition, or the lane's index in a sub-topology without stores. */
  readonly partition: number
  readonly applicationId: string
  /** The store by name: one of those connected to the operator's node. Global stores too. */
  store(name: string): AnyStore
  /** Largest watermark that this task was advanced to or saw on a record; -Infinity before the first. */
  streamTime(): number
  /**
   * The watermark of which everything was told, timers of all operators included: nothing older is under way to the task.
   * Behind `streamTime` while a record is ahead, and while timers fire.
   */
  settledTo(): number
  /** Event time of the timers that are firing; between timers the watermark that the task was advanced to. */
  timerTime(): number
  /** The commit epoch of what timers put out. */
  timerEpoch(): number
  wallClock(): number
  readonly input: InputKnowledge
  /**
   * True: each operator takes the largest timestamp that reached it for the time, as Kafka Streams does, and lets go of
   * what it holds back only when a record comes by. For comparisons; the engine itself goes by the watermark.
   */
  readonly operatorTime?: boolean
  /** Asks for `onWatermark` once the watermark reaches this time. Cheap; the earliest one asked for counts. */
  wakeAt(operator: Operator, eventTimeMs: number): void
  /** Asks for `onAdvanced` behind the timers, once the watermark has come to this time or past it. */
  wakeAfter(operator: Operator, eventTimeMs: number): void
  /** Asks for `onWallClock` at or after this instant. */
  wakeAtWallClock(operator: Operator, wallClockMs: number): void
  /**
   * Whether a record that failed goes no further by the policy for its failure; false: the lane is to fail. `isTold`: this
   * failure has been told before.
   */
  isPassedOver?(rec: Rec, error: unknown, isTold?: boolean): boolean
  /** Counts a record that goes no further, and writes it to the dead-letter topic where the application says so. */
  dropped(rec: Rec, reason: DropReason, node: string): void
  /**
   * Sends to a topic inside the record's transaction. Key and value bytes are encoded by the sink operator; without a key it
   * is the record's own, as it came (`keyRange`). They are valid until this returns, and so in `handOff`. `rec` is the
   * record being sent (its timestamp and headers are used; its origin says which commit epoch it belongs to).
   * `partitionKey`: bytes whose hash chooses the partition where they are not the key's (windowed keys go by their inner key).
   */
  emit(
    topic: string,
    key: Uint8Array | null | undefined,
    value: Uint8Array | null,
    rec: Rec,
    partitionKey?: Uint8Array,
  ): void
  /**
   * Hands a record over a sub-topology boundary (index into `CompiledTopology.boundaries`). `value` undefined: the bytes
   * with which it came. `to`: what chooses the partition in place of the key; a number, through a topic, is the partition itself.
   */
  handOff(
    boundary: number,
    key: Uint8Array | null,
    value: Uint8Array | null | undefined,
    rec: Rec,
    to?: Uint8Array | number,
  ): void
  /** Asks for a commit soon. */
  requestCommit(): void
  /** Bounds the calls of the node's function; undefined: nothing does. */
  gate?(node: CompiledNode): CallGate | undefined
  /** Where functions write to; undefined: nowhere. */
  readonly log?: LogPort | undefined
  /**
   * A promise of a function was kept, and what it was for goes on: a record (its origin), or one timer after the other.
   * What it waits for next is another call.
   */
  returned?(origin: Origin | undefined): void
  /** The function of this node has given a promise: what it was called for waits for that one now. */
  called?(origin: Origin | undefined, node: number): void
  /** Number of the engine's run, never lower than that of one before; 0 where there is no engine. */
  fencingToken?(): number
}

export interface Operator {
  /** Called once when the task's stores are restored; the place to rebuild timers from a store. */
  init?(context: TaskContext): void
  /** Handles one record and all that follows from it. */
  process(rec: Rec): Maybe
  /** The watermark has reached a time asked for by `wakeAt`. Runs between records, in the order of times, then of nodes. */
  onWatermark?(watermarkMs: number): Maybe
  /** The watermark was advanced to this time, all at once; asked for by `wakeAfter`. */
  onAdvanced?(watermarkMs: number): Maybe
  onWallClock?(nowMs: number): Maybe
  /** Earliest event time of what it holds back; Infinity: nothing. Left out: it passes on what comes at once. */
  heldFrom?(): number
  /** Earliest event time at which rows of its store have still to be told, which until then must not be over; Infinity: none. */
  untoldFrom?(): number
  close?(): void
}

/** Puts spans around operators, where somebody wants them. */
export interface Tracing {
  /** What the operators above call instead; `isBoundary`: its records come from another sub-topology. */
  around(operator: Operator, node: CompiledNode, isBoundary: boolean): Operator
}

/** Next operators, in the order in which they were added. */
export type Downstream = readonly Operator[]

/** Passes a record to every child, each finishing before the next begins. */
export function forward(children: Downstream, rec: Rec): Maybe {
  for (let i = 0; i < children.length; i++) {
    const pending = (children[i] as Operator).process(rec)
    if (pending !== undefined) return forwardRest(children, rec, i + 1, pending)
  }
}

async function forwardRest(children: Downstream, rec: Rec, from: number, pending: Promise<void>): Promise<void> {
  await pending
  for (let i = from; i < children.length; i++) await (children[i] as Operator).process(rec)
}

/** True for what `await` would wait for. */
export function isPromise<T>(x: T | PromiseLike<T>): x is PromiseLike<T> {
  return x !== null && typeof x === 'object' && typeof (x as { then?: unknown }).then === 'function'
}
