/** What all operators have in common: their place in the topology, their children, and waiting for promises. */
import { thrownAt } from '../base/thrown-at.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { type Logger, loggerOf, silentLog } from '../base/logger.ts'
import { SerdeWaits } from '../serde/serde.ts'
import type { Emission, Teller } from './emission.ts'
import type { CompiledNode } from '../topology/compiled.ts'
import type { FunctionContext } from '../topology/operator-spec.ts'
import {
  type CallGate,
  type Downstream,
  type DropReason,
  isPromise,
  type Maybe,
  type Operator,
  type Origin,
  originAt,
  type Rec,
  type TaskContext,
} from './contract.ts'

/** Where a task is: read by other threads' views at any moment, written by plain stores. */
export interface Probe {
  /** Index of the node at work. */
  currentNode: number
  /** Counts what has come to an end within one call of the task: one of several timers, windows, or records that one made. */
  steps: number
  /** What a function promised has come, and the task goes on behind this node, outside of any turn of its lane. */
  resumes?(): void
  /** Records by node index. */
  readonly counts: Float64Array
}

/** The largest timestamp seen, and for joins that of each side's records alone. */
export class OperatorClock {
  time = Number.NEGATIVE_INFINITY
  left = Number.NEGATIVE_INFINITY
  right = Number.NEGATIVE_INFINITY

  observe(timestamp: number): number {
    if (timestamp > this.time) this.time = timestamp
    return this.time
  }
}

export interface OperatorEnv {
  readonly context: TaskContext
  readonly node: CompiledNode
  readonly probe: Probe
  /** Clocks that operators of one task share. */
  readonly clocks: Map<string, OperatorClock>
  /** By store: what is told once per commit. */
  readonly emissions: ReadonlyMap<string, Emission>
}

interface TellingSpec {
  readonly store: { readonly name: string } | undefined
  readonly sendOldValues: boolean
}

const keyOfRow: Teller['keyOf'] = ({ key }) => key

export abstract class NodeOperator implements Operator {
  protected readonly context: TaskContext
  protected readonly children: Downstream
  /**
   * The next operator, where there is but one. Operators that most records pass call it in a line of their own instead of
   * by `forward`, which calls those of all: V8 inlines what a line calls where that is always the same.
   */
  protected readonly only: Operator | undefined
  protected readonly name: string
  readonly index: number
  readonly #probe: Probe
  protected readonly clock: OperatorClock | undefined
  /** Of its function; undefined where nothing bounds its calls. */
  protected readonly gate: CallGate | undefined
  /** Of the last timer, and the epoch in which it fired. */
  #fired: Origin | undefined
  #firedIn = 0

  constructor(env: OperatorEnv, children: Downstream) {
    this.context = env.context
    this.children = children
    this.only = children.length === 1 ? children[0] : undefined
    this.name = env.node.name
    this.index = env.node.index
    this.#probe = env.probe
    const { spec } = env.node
    if ('calls' in spec && spec.calls !== undefined) this.gate = env.context.gate?.(env.node)
    this.clock = env.context.operatorTime ? this.ownClock(env) : undefined
  }

  abstract process(rec: Rec): Maybe

  /** Undefined: every update of this store's rows is told. */
  protected emissionOf(
    env: OperatorEnv,
    { store, sendOldValues: sendsOldValues }: TellingSpec,
    keyOf: Teller['keyOf'] = keyOfRow,
  ): Emission | undefined {
    const emission = store && env.emissions.get(store.name)
    const { name, index, children } = this
    if (emission !== undefined) emission.teller = { name, index, children, sendsOldValues, keyOf }
    return emission
  }

  /** The clock of an operator that has one of its own; two sides of a join share theirs. */
  protected ownClock(_env: OperatorEnv): OperatorClock {
    return new OperatorClock()
  }

  /** The time by which this operator judges what is late and what is over, this record included. */
  protected timeAt(rec: Rec): number {
    return this.clock === undefined ? rec.origin.watermark : this.clock.observe(rec.timestamp)
  }

  /**
   * The time by which this operator lets go what it holds back. A record's own watermark may be ahead of records that are
   * still on their way to this task, through another channel or behind a promise: they have to find their windows open.
   */
  protected settledAt(rec: Rec): number {
    return this.clock === undefined ? this.context.settledTo() : this.timeAt(rec)
  }

  /**
   * Where a record comes from that a timer made. It is as early as `watermark`: nothing below finds it late. What timers of
   * one instant hand over within an epoch is numbered on, so that it stays in their order.
   */
  protected timerOrigin(watermark: number): Origin {
    const at = this.context.timerTime()
    const epoch = this.context.timerEpoch()
    const seq = timerSeq(this.context.subtopology, this.context.partition, this.index)
    const origin = ofNoRecord(watermark, at, seq)
    if (this.#fired?.at === at && this.#firedIn === epoch) origin.handed = this.#fired.handed
    this.#fired = origin
    this.#firedIn = epoch
    return origin
  }

  /** Asks to be called at a time, unless time moves by records alone. */
  protected wakeAt(time: number): void {
    if (this.clock === undefined) this.context.wakeAt(this, time)
  }

  /** A record has come: this node is at work. */
  protected enter(): void {
    const probe = this.#probe
    probe.currentNode = this.index
    const { counts } = probe
    counts[this.index] = (counts[this.index] as number) + 1
  }

  /** Back from the children, and about to call a user function again. */
  protected atWork(): void {
    this.#probe.currentNode = this.index
  }

  protected drop(rec: Rec, reason: Exclude<DropReason, 'deserialize' | 'handler' | 'negative_timestamp'>): void {
    this.context.dropped(rec, reason, this.name)
  }

  /** Calls the function for the record: at once, or where its calls are bounded when it is its turn. */
  protected inItsTurn(rec: Rec, call: () => unknown): unknown {
    return this.gate === undefined ? call() : this.gate.run(rec.origin, call)
  }

  /**
   * Goes on with what a user function promised; a rejection names this node and the record. `gate`: the one that the call
   * has entered, or whoever else is to hear of its end.
   */
  protected async later<T>(
    promise: PromiseLike<T>,
    rec: Rec | undefined,
    resume: (value: T) => Maybe,
    gate?: Pick<CallGate, 'left'>,
  ): Promise<void> {
    // The function may have let records out first.
    this.atWork()
    this.context.called?.(rec?.origin, this.index)
    let value: T
    try {
      value = await promise
    } catch (error) {
      gate?.left(false)
      throw processingFailed(error, this.name, rec)
    }
    gate?.left(true)
    this.atWork()
    this.#probe.resumes?.()
    const pending = resume(value)
    this.context.returned?.(rec?.origin)
    // A promise that is none would be waited for as well.
    if (pending !== undefined) await pending
  }

  /**
   * A function failed for a row of a table, and the policy lets that go: below there is no such row. So groups stay what the
   * rows make of them: what this one had put into them before is taken out, and when it changes again it is not. `isOld`: it
   * is the row as it was, which failed, and was told of, when it came. `asks`: somebody below asks what a row was before;
   * otherwise what was told last stands.
   */
  protected noRow(error: unknown, rec: Rec, isOld: boolean, asks = true): null {
    if (!asks) throw error
    const failure = processingFailed(error, this.name, rec)
    if (this.context.isPassedOver?.(rec, failure, isOld) !== true) throw failure
    return null
  }

  /** A record that was held back is at work: where it fails the policy judges it, and not the one that let it out, or time. */
  protected judged(rec: Rec, work: () => Maybe): Maybe {
    const judge = (error: unknown): void => {
      const failure = processingFailed(error, this.name, rec)
      if (this.context.isPassedOver?.(rec, failure) !== true) throw failure
    }
    let pending: Maybe
    try {
      pending = work()
    } catch (error) {
      judge(error)
      return
    }
    return pending?.then(undefined, judge)
  }

  /** One after the other, each waiting for the one before. Their number is known: whoever looks sees that they end. */
  protected inTurn<T>(items: readonly T[], run: (item: T) => Maybe, from = 0): Maybe {
    for (let i = from; i < items.length; i++) {
      if (i > 0) this.#probe.steps++
      const pending = run(items[i] as T)
      if (pending !== undefined) return pending.then(() => this.inTurn(items, run, i + 1))
    }
  }

  /** Goes on at once with a value, later with a promise. */
  protected whenDone<T>(value: T | PromiseLike<T>, rec: Rec | undefined, resume: (value: T) => Maybe): Maybe {
    if (isPromise(value)) return this.later(value, rec, resume)
    return resume(value)
  }
}

/** So many rows that a task tells have places of their own. */
const toldPlaces = 2 ** 24

/**
 * Where a record comes from that tells a folded row: behind the records of its time, in the order of tasks, and of the rows
 * that each of them tells (`row` counts these). It does not depend on which of their functions answers first.
 */
export function toldOrigin(subtopology: number, partition: number, at: number, row: number): Origin {
  const task = (subtopology % 4096) * 65_536 + (partition % 65_536)
  return ofNoRecord(at, at, 2 ** 52 + task * toldPlaces + Math.min(row, toldPlaces - 1))
}

function ofNoRecord(watermark: number, at: number, seq: number): Origin {
  return { ...originAt('', -1, -1, watermark, 0), at, seq }
}

/** Timers of one time are in the order of sub-topologies, partitions and nodes, and all of them before records. */
function timerSeq(subtopology: number, partition: number, node: number): number {
  return -(2 ** 52) + ((subtopology % 4096) * 65_536 + (partition % 65_536)) * 16_384 + (node % 16_384)
}

/** Wraps what a user function threw, once. */
export function processingFailed(error: unknown, node: string, rec: Rec | undefined): EngineError {
  if (EngineError.is(error)) return error as EngineError
  const message = messageOf(error)
  // In the middle of a function nobody can wait: all is done again when what was missing has come.
  if (error instanceof SerdeWaits)
    return new EngineError('SCHEMA_UNAVAILABLE', `${node}: ${message}`, { cause: error, node })
  const { topic, partition, offset } = rec?.origin ?? { topic: '', partition: -1, offset: -1 }
  const where = topic === '' ? 'a timer' : `the record ${topic}/${partition} at offset ${offset}`
  const place = thrownAt(error)
  const at = place === undefined ? '' : `, thrown at ${place}`
  return new EngineError('PROCESSING_FAILED', `A function of ${node} failed on ${where}: ${message}${at}`, {
    cause: error,
    node,
    ...(topic === '' ? {} : { topic, partition, offset }),
  })
}

/** Where a record comes from that no timer and no record made, as on an empty input. */
export function unplacedOrigin(watermark: number): Origin {
  return originAt('', -1, -1, watermark, 0)
}

/**
 * How far event time has come for a record, itself included. Before a watermark is known the record's own time stands in
 * for it, or rows would be as old as time itself; the newest one of all would depend on which of them wait for a
 * function. What a timer makes goes by the timer's own time: event time may have gone past it at once, and it looks back
 * from where it is. Undefined: as far as in its task.
 */
export function timeOf({ origin, timestamp }: Rec): number | undefined {
  if (origin.topic === '') return firedAt(origin)
  return origin.watermark === Number.NEGATIVE_INFINITY ? timestamp : origin.watermark
}

/** The time of a timer, as far as event time is known. */
export function firedAt({ at }: Origin): number | undefined {
  return at === Number.NEGATIVE_INFINITY ? undefined : at
}

/**
 * The first instant at which a timer may fire that was asked for when its time had passed: the one behind the records that found event
 * time where this one did. What a timer made comes before the others of its instant.
 */
export function nextInstant({ at, seq }: Origin): number {
  return seq < 0 ? at : at + 1
}

/** As `timeOf`, for the history of a key. */
export function historyTimeOf(rec: Rec): number {
  return timeOf(rec) ?? rec.origin.at
}

/**
 * Where a record comes from that was let out while another one was processed. What either hands over is counted together, so
 * that no two of them have one place.
 */
export function heldBackOrigin(cause: Origin, watermark: number): Origin {
  return {
    ...cause,
    watermark,
    came: undefined,
    call: undefined,
    get handed() {
      return cause.handed
    },
    set handed(count) {
      cause.handed = count
    },
  }
}

/** The fields of the log that say where a line comes from. */
export function whereOf(
  node: string,
  origin: Pick<Origin, 'topic' | 'partition' | 'offset'> | undefined,
): Record<string, unknown> {
  if (origin === undefined || origin.topic === '') return { node }
  return { node, topic: origin.topic, partition: origin.partition, offset: origin.offset }
}

/**
 * One serves all records of a node as long as its function answers at once. One from which a promise was given stays
 * with its record, and the node goes on with another.
 */
export class CallContext implements FunctionContext {
  readonly #task: TaskContext
  readonly #node: string
  /** Of the record that the function is called for. The record itself is new: an old object that points to it costs the collector. */
  #topic = ''
  #partition = -1
  #offset = -1
  #logger: Logger | undefined

  constructor(task: TaskContext, node: string) {
    this.#task = task
    this.#node = node
  }

  isFor({ topic, partition, offset }: Origin): this {
    this.#topic = topic
    this.#partition = partition
    this.#offset = offset
    return this
  }

  get applicationId(): string {
    return this.#task.applicationId
  }

  get partition(): number {
    return this.#task.partition
  }

  get logger(): Logger {
    this.#logger ??= loggerOf(this.#task.log ?? silentLog, () => this.#where())
    return this.#logger
  }

  #where(): Record<string, unknown> {
    return whereOf(this.#node, { topic: this.#topic, partition: this.#partition, offset: this.#offset })
  }
}
