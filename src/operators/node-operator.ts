/** What all operators have in common: their place in the topology, their children, and waiting for promises. */
import { EngineError } from '../errors.ts'
import type { CompiledNode } from '../topology/compiled.ts'
import {
  type Downstream,
  isPromise,
  type Maybe,
  type Operator,
  type Origin,
  type Rec,
  type TaskContext,
} from './contract.ts'

/** Where a task is: read by other threads' views at any moment, written by plain stores. */
export interface Probe {
  /** Index of the node at work. */
  currentNode: number
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
}

export abstract class NodeOperator implements Operator {
  protected readonly context: TaskContext
  protected readonly children: Downstream
  protected readonly name: string
  readonly index: number
  readonly #probe: Probe
  protected readonly clock: OperatorClock | undefined

  constructor(env: OperatorEnv, children: Downstream) {
    this.context = env.context
    this.children = children
    this.name = env.node.name
    this.index = env.node.index
    this.#probe = env.probe
    this.clock = env.context.operatorTime ? this.ownClock(env) : undefined
  }

  abstract process(rec: Rec): Maybe

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
    return this.clock === undefined ? this.context.advancedTo() : this.timeAt(rec)
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

  protected drop(rec: Rec, reason: 'late' | 'null_key' | 'null_value' | 'expired'): void {
    this.context.dropped(rec, reason, this.name)
  }

  /** Goes on with what a user function promised; a rejection names this node and the record. */
  protected async later<T>(promise: PromiseLike<T>, rec: Rec | undefined, goOn: (value: T) => Maybe): Promise<void> {
    let value: T
    try {
      value = await promise
    } catch (error) {
      throw processingFailed(error, this.name, rec)
    }
    this.atWork()
    await goOn(value)
  }

  /** Goes on at once with a value, later with a promise. */
  protected then<T>(value: T | PromiseLike<T>, rec: Rec | undefined, goOn: (value: T) => Maybe): Maybe {
    if (isPromise(value)) return this.later(value, rec, goOn)
    return goOn(value)
  }
}

/** Wraps what a user function threw, once. */
export function processingFailed(error: unknown, node: string, rec: Rec | undefined): EngineError {
  if (EngineError.is(error)) return error as EngineError
  const message = error instanceof Error ? error.message : String(error)
  const { topic, partition, offset } = rec?.origin ?? { topic: '', partition: -1, offset: -1 }
  const where = topic === '' ? 'a timer' : `the record ${topic}/${partition} at offset ${offset}`
  return new EngineError('PROCESSING_FAILED', `A function of ${node} failed on ${where}: ${message}`, {
    cause: error,
    node,
    ...(topic === '' ? {} : { topic, partition, offset }),
  })
}

/** One after the other, each waiting for the one before. */
export function inTurn<T>(items: readonly T[], run: (item: T) => Maybe, from = 0): Maybe {
  for (let i = from; i < items.length; i++) {
    const pending = run(items[i] as T)
    if (pending !== undefined) return pending.then(() => inTurn(items, run, i + 1))
  }
}

/** Where a record comes from that a timer made. It is as early as the time before the timer: nothing below finds it late. */
export function timerOrigin(watermark: number): Origin {
  return { topic: '', partition: -1, offset: -1, watermark, epoch: 0 }
}

/** Where a record comes from that was let out while another one was processed. */
export function heldBackOrigin(cause: Origin, watermark: number): Origin {
  const { topic, partition, offset, epoch } = cause
  return { topic, partition, offset, watermark, epoch }
}
