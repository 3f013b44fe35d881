/** All operators of one sub-topology at work for one partition. */
import { assert } from '../base/assert.ts'
import { ByteRange } from '../base/byte-range.ts'
import { EngineError } from '../errors.ts'
import type { Serde } from '../serde/serde.ts'
import type { AnyStore, StoreSpec } from '../state/contract.ts'
import type { CompiledNode, CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import type { Headers } from '../wire/headers.ts'
import { type DropReason, type Maybe, type Operator, type Origin, Rec, type TaskContext } from './contract.ts'
import { createOperator, type TaskParts } from './create.ts'
import { type OperatorEnv, type Probe, processingFailed } from './node-operator.ts'

/** What a task asks of the lane it runs in. */
export interface TaskHost {
  emit(
    topic: string,
    key: Uint8Array | null | undefined,
    value: Uint8Array | null,
    rec: Rec,
    partitionKey?: Uint8Array,
  ): void
  handOff(boundary: number, key: Uint8Array | null, value: Uint8Array | null, rec: Rec, partitionKey?: Uint8Array): void
  dropped(rec: Rec, reason: DropReason, node: string): void
  wallClock(): number
  requestCommit(): void
  fencingToken?(): number
  /** Counts timers that fired. */
  timerFired?(kind: 'event-time' | 'wall-clock'): void
  /** Where the node at work and the records of each node are noted, when given: memory that other threads read. */
  readonly probe?: Probe
}

export interface TaskOptions {
  readonly topology: CompiledTopology
  readonly subtopology: number
  /** The changelog partition, or the lane's index in a sub-topology without stores. */
  readonly partition: number
  readonly stores: ReadonlyMap<string, AnyStore>
  readonly globalStores: ReadonlyMap<string, AnyStore>
  readonly host: TaskHost
  readonly applicationId?: string
  /** See `TaskContext.operatorTime`. */
  readonly operatorTime?: boolean
}

const never = Number.POSITIVE_INFINITY

export class Task {
  readonly subtopology: number
  readonly partition: number
  readonly #topology: CompiledTopology
  readonly #host: TaskHost
  readonly #probe: Probe
  readonly #context: TaskContext
  /** In node order: parents before children. */
  readonly #operators: Operator[] = []
  /** By source index. */
  readonly #entries: Operator[] = []
  readonly #position = new Map<Operator, number>()
  /** Event time, and wall-clock time, at which each operator wants to be called. */
  readonly #wakes: Float64Array
  readonly #wallWakes: Float64Array
  #streamTime = Number.NEGATIVE_INFINITY
  #advancedTo = Number.NEGATIVE_INFINITY
  #settledTo = Number.NEGATIVE_INFINITY
  /** Watermark of the record at work. */
  #judgedBy = Number.NEGATIVE_INFINITY
  /** Largest timestamp of the records that came while no watermark was known. */
  #newest = Number.NEGATIVE_INFINITY
  /** Earliest event time, and wall-clock time, at which there is something to do. */
  nextWake = never
  nextWallClock = never

  constructor(options: TaskOptions) {
    const { topology, subtopology, host } = options
    this.#topology = topology
    this.#host = host
    this.subtopology = subtopology
    this.partition = options.partition
    this.#probe = host.probe ?? { currentNode: -1, counts: new Float64Array(topology.nodes.length) }
    this.#context = this.#makeContext(options)
    const nodes = topology.subtopologies[subtopology]?.nodes ?? []
    this.#wakes = new Float64Array(nodes.length).fill(never)
    this.#wallWakes = new Float64Array(nodes.length).fill(never)
    this.#make(
      nodes.map((index) => topology.nodes[index] as CompiledNode),
      options,
    )
  }

  /** Largest watermark seen; -Infinity before the first. */
  get streamTime(): number {
    return this.#streamTime
  }

  /**
   * Time for rows that a store forgets. While partitions are silent no watermark is known; then the records' own time
   * stands in for it, or rows would be as old as time itself.
   */
  get rowTime(): number {
    return this.#streamTime === Number.NEGATIVE_INFINITY ? this.#newest : this.#streamTime
  }

  /**
   * Time by which windows and sessions are forgotten. While a record is processed it is the record's own watermark, by
   * which its lateness is judged, so that its results do not depend on when the task was advanced. Otherwise it is the
   * watermark of which all timers have fired: what it makes old has been told.
   */
  get settledTo(): number {
    return Math.max(this.#settledTo, this.#judgedBy)
  }

  /** Node at work: a plain field, read by other threads' views through the lane's counters. */
  get currentNode(): number {
    return this.#probe.currentNode
  }

  #make(nodes: readonly CompiledNode[], options: TaskOptions): void {
    const { topology } = options
    const made = new Map<number, Operator>()
    const waiting: TaskParts['waiting'] = new Map()
    const known = this.#knownSerdes(nodes)
    const context = this.#context
    const clocks: OperatorEnv['clocks'] = new Map()
    for (let i = nodes.length - 1; i >= 0; i--) {
      const node = nodes[i] as CompiledNode
      const children = node.children.map((child) => made.get(child) as Operator)
      const env: OperatorEnv = { context, node, probe: this.#probe, clocks }
      const parts: TaskParts = {
        keySerdeOf: (store) => (topology.stores.get(store) as StoreSpec).keySerde,
        known: known.get(node.index) ?? { key: undefined, value: undefined },
        waiting,
      }
      made.set(node.index, createOperator(node.spec, env, children, parts))
    }
    nodes.forEach((node, i) => {
      const operator = made.get(node.index) as Operator
      this.#operators.push(operator)
      this.#position.set(operator, i)
    })
    for (const source of topology.sources) {
      if (source.subtopology === this.subtopology) this.#entries[source.index] = made.get(source.node) as Operator
    }
  }

  /** Which serdes wrote the bytes that records carry at each node; undefined where several might have. */
  #knownSerdes(nodes: readonly CompiledNode[]): Map<number, TaskParts['known']> {
    const known = new Map<number, TaskParts['known']>()
    for (const source of this.#topology.sources)
      known.set(source.node, { key: source.keySerde, value: source.valueSerde })
    for (const node of nodes) {
      const parents = node.parents.map((parent) => known.get(parent))
      const first = parents[0]
      if (!first) continue
      const key = parents.every((parent) => parent?.key === first.key) ? first.key : undefined
      const value = parents.every((parent) => parent?.value === first.value) ? first.value : undefined
      known.set(node.index, { key, value })
    }
    return known
  }

  #makeContext(options: TaskOptions): TaskContext {
    const { host, stores, globalStores } = options
    return {
      subtopology: options.subtopology,
      partition: options.partition,
      applicationId: options.applicationId ?? '',
      operatorTime: options.operatorTime ?? false,
      store: (name) => {
        const store = stores.get(name) ?? globalStores.get(name)
        assert(store !== undefined, `the store ${name} is not connected to sub-topology ${options.subtopology}`)
        return store
      },
      streamTime: () => this.#streamTime,
      advancedTo: () => this.#advancedTo,
      wallClock: () => host.wallClock(),
      wakeAt: (operator, time) => this.#wakeAt(operator, time),
      wakeAtWallClock: (operator, time) => this.#wakeAtWallClock(operator, time),
      dropped: (rec, reason, node) => host.dropped(rec, reason, node),
      emit: (topic, key, value, rec, partitionKey) => host.emit(topic, key, value, rec, partitionKey),
      handOff: (boundary, key, value, rec, partitionKey) => host.handOff(boundary, key, value, rec, partitionKey),
      requestCommit: () => host.requestCommit(),
      fencingToken: () => host.fencingToken?.() ?? 0,
    }
  }

  #wakeAt(operator: Operator, time: number): void {
    const at = this.#position.get(operator) as number
    if (time < (this.#wakes[at] as number)) this.#wakes[at] = time
    if (time < this.nextWake) this.nextWake = time
  }

  #wakeAtWallClock(operator: Operator, time: number): void {
    const at = this.#position.get(operator) as number
    if (time < (this.#wallWakes[at] as number)) this.#wallWakes[at] = time
    if (time < this.nextWallClock) this.nextWallClock = time
  }

  /** To be called once, when the task's stores hold what they are to hold. */
  init(): void {
    for (const operator of this.#operators) operator.init?.(this.#context)
  }

  /**
   * Makes a record of its bytes with the serdes of its source.
   *
   * @throws EngineError `DECODE_FAILED`
   */
  decode(
    source: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestamp: number,
    headers: Headers,
    origin: Origin,
  ): Rec {
    const compiled = this.#topology.sources[source] as CompiledSource
    return decodeBytes(compiled, key, value, timestamp, headers, origin)
  }

  /** Runs a record through everything below its source. */
  process(source: number, rec: Rec): Maybe {
    const { watermark } = rec.origin
    if (watermark > this.#streamTime) this.#streamTime = watermark
    else if (watermark === Number.NEGATIVE_INFINITY && rec.timestamp > this.#newest) this.#newest = rec.timestamp
    let pending: Maybe
    this.#judgedBy = watermark
    try {
      pending = (this.#entries[source] as Operator).process(rec)
    } catch (error) {
      this.#judgedBy = Number.NEGATIVE_INFINITY
      throw this.#failed(error, rec)
    }
    this.#judgedBy = Number.NEGATIVE_INFINITY
    if (pending === undefined) {
      this.#probe.currentNode = -1
      return
    }
    return pending.then(
      () => {
        this.#probe.currentNode = -1
      },
      (error) => {
        throw this.#failed(error, rec)
      },
    )
  }

  #failed(error: unknown, rec: Rec | undefined): unknown {
    const node = this.#topology.nodes[this.#probe.currentNode]
    this.#probe.currentNode = -1
    return processingFailed(error, node?.name ?? '', rec)
  }

  /** Event time has come this far: windows close, timers fire. Cheap when nothing is due. */
  advance(watermark: number): Maybe {
    if (watermark > this.#streamTime) this.#streamTime = watermark
    if (watermark > this.#advancedTo) this.#advancedTo = watermark
    const pending = watermark < this.nextWake ? undefined : this.#fire(this.#wakes, watermark, 0, false)
    if (pending !== undefined) return pending.then(() => this.#settle(watermark))
    this.#settle(watermark)
  }

  #settle(watermark: number): void {
    if (watermark > this.#settledTo) this.#settledTo = watermark
  }

  wallClock(now: number): Maybe {
    if (now < this.nextWallClock) return
    return this.#fire(this.#wallWakes, now, 0, true)
  }

  /** Calls the operators that are due, in node order, so that what one lets out meets the next before its turn. */
  #fire(wakes: Float64Array, time: number, from: number, wall: boolean): Maybe {
    for (let i = from; i < wakes.length; i++) {
      if ((wakes[i] as number) > time) continue
      wakes[i] = never
      const operator = this.#operators[i] as Operator
      this.#host.timerFired?.(wall ? 'wall-clock' : 'event-time')
      let pending: Maybe
      try {
        this.#probe.currentNode = (operator as { index?: number }).index ?? -1
        pending = wall ? operator.onWallClock?.(time) : operator.onWatermark?.(time)
      } catch (error) {
        this.#refresh()
        throw this.#failed(error, undefined)
      }
      if (pending !== undefined) return pending.then(() => this.#fire(wakes, time, i + 1, wall))
    }
    this.#probe.currentNode = -1
    this.#refresh()
  }

  #refresh(): void {
    this.nextWake = smallest(this.#wakes)
    this.nextWallClock = smallest(this.#wallWakes)
  }

  close(): void {
    for (const operator of this.#operators) operator.close?.()
  }
}

function smallest(times: Float64Array): number {
  let least = never
  for (const time of times) if (time < least) least = time
  return least
}

/**
 * Makes a record of its bytes with the serdes of its source; the value stays bytes where nobody looks at it.
 *
 * @throws EngineError `DECODE_FAILED`
 */
export function decodeRecord(
  source: CompiledSource,
  keyRange: ByteRange | null,
  valueRange: ByteRange | null,
  timestamp: number,
  headers: Headers,
  origin: Origin,
): Rec {
  let what = 'key'
  try {
    const key = keyRange === null ? null : read(source.keySerde, keyRange)
    what = 'value'
    const value = valueRange === null ? null : source.readsValue ? read(source.valueSerde, valueRange) : undefined
    return new Rec(key, value, timestamp, headers, origin, keyRange, valueRange)
  } catch (error) {
    const { topic, partition, offset } = origin
    const serde = what === 'key' ? source.keySerde : source.valueSerde
    const message = error instanceof Error ? error.message : String(error)
    throw new EngineError(
      'DECODE_FAILED',
      `The ${what} of the record ${topic}/${partition} at offset ${offset} could not be decoded with the serde ${serde.name}: ${message}`,
      { cause: error, node: source.name, topic, partition, offset },
    )
  }
}

/** As `decodeRecord`, of bytes that are the key's and the value's alone. */
export function decodeBytes(
  source: CompiledSource,
  key: Uint8Array | null,
  value: Uint8Array | null,
  timestamp: number,
  headers: Headers,
  origin: Origin,
): Rec {
  return decodeRecord(source, key && ByteRange.of(key), value && ByteRange.of(value), timestamp, headers, origin)
}

function read(serde: Serde<unknown>, range: ByteRange): unknown {
  return serde.deserializeFrom === undefined
    ? serde.deserialize(range.view())
    : serde.deserializeFrom(range.buffer, range.start, range.end)
}
