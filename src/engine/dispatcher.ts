/**
 * The path of every record through the engine thread: of the partitions with something buffered the oldest head goes
 * next; its key bytes choose the lane; header, key and value bytes are copied into that lane's buffer together with
 * the watermark in force. Nothing is decoded here.
 */
import { engineIndex, sourceTopicSlot, type CounterLayout } from '../base/counters.ts'
import { keySlot } from '../base/hash.ts'
import type { Affinity } from '../lanes/affinity.ts'
import type { ToLane } from '../lanes/protocol.ts'
import { TransferWriter } from '../lanes/transfer.ts'
import type { Watermarks } from '../time/watermarks.ts'
import type { PartitionBuffer } from './partition-buffer.ts'

const bufferBytes = 64 * 1024

/** What dispatch needs to know of an assigned partition; `handle` is its number in `Watermarks`. */
export interface Route {
  readonly handle: number
  readonly topic: string
  readonly partition: number
  readonly source: number
  readonly subtopology: number
  /** Index into the list of origin topics that the lanes were given. */
  readonly originTopic: number
  /** Index into the counter layout's source topics. */
  readonly counter: number
  readonly buffer: PartitionBuffer
}

export interface DispatcherHost {
  run(): number
  send(lane: number, message: ToLane, transfer: ArrayBuffer[]): void
}

export class Dispatcher {
  readonly #watermarks: Watermarks
  readonly #affinity: Affinity
  readonly #host: DispatcherHost
  readonly #queueBytes: number
  readonly #layout: CounterLayout
  readonly #counters: Float64Array
  readonly #writers: TransferWriter[]
  /** Bytes sent to each lane and not yet worked off. */
  readonly #outstanding: Float64Array
  readonly #sentWatermark: Float64Array
  /** By handle of the watermarks. */
  readonly routes: Array<Route | undefined> = []
  paused = false
  /** Records dispatched since the last mark. */
  sinceMark = 0
  total = 0
  /** Gives records without a key and a partition to the tasks in turn. */
  #unkeyed = 0

  constructor(
    watermarks: Watermarks,
    affinity: Affinity,
    host: DispatcherHost,
    queueBytes: number,
    layout: CounterLayout,
    counters: Float64Array,
  ) {
    this.#watermarks = watermarks
    this.#affinity = affinity
    this.#host = host
    this.#queueBytes = queueBytes
    this.#layout = layout
    this.#counters = counters
    this.#writers = Array.from({ length: affinity.lanes }, () => new TransferWriter(bufferBytes))
    this.#outstanding = new Float64Array(affinity.lanes)
    this.#sentWatermark = new Float64Array(affinity.lanes).fill(Number.NEGATIVE_INFINITY)
  }

  consumed(lane: number, bytes: number): void {
    this.#outstanding[lane] = (this.#outstanding[lane] as number) - bytes
  }

  /** False while a lane has as much queued as it may: nothing is dispatched then, for the order is over all lanes. */
  get hasCredits(): boolean {
    for (let lane = 0; lane < this.#outstanding.length; lane++) {
      if ((this.#outstanding[lane] as number) >= this.#queueBytes) return false
    }
    return true
  }

  /** Whether no lane has more waiting than it does in a moment. */
  get settled(): boolean {
    for (let lane = 0; lane < this.#outstanding.length; lane++) {
      if ((this.#outstanding[lane] as number) > 2 * bufferBytes) return false
    }
    return true
  }

  outstandingBytes(lane: number): number {
    return this.#outstanding[lane] as number
  }

  /** Dispatches up to `budget` records; true when there may be more to do at once. */
  dispatch(budget: number, now: number): boolean {
    const watermarks = this.#watermarks
    let left = budget
    while (left > 0 && !this.paused && this.hasCredits) {
      const handle = watermarks.pick(now)
      if (handle < 0) break
      this.#one(handle, now)
      left--
    }
    this.flush()
    return left === 0
  }

  #one(handle: number, now: number): void {
    const route = this.routes[handle] as Route
    const { buffer } = route
    const { cursor } = buffer
    const { bytes, keyStart, keyEnd } = cursor
    const slot = keyStart < 0 ? route.partition : keySlot(bytes, keyStart, keyEnd)
    const task = this.#affinity.task(route.subtopology, slot, route.partition)
    const lane = this.#affinity.lane(route.subtopology, task)
    const writer = this.#writers[lane] as TransferWriter
    const before = writer.length
    // An extractor of the application may have given the record another time than it carries.
    writer.appendFrom(cursor, route.source, task, route.originTopic, route.partition, buffer.headTimestamp)
    const size = writer.length - before
    buffer.shift()
    const watermark = this.#watermarks.dispatched(handle, buffer.headTimestamp, buffer.headOffset, now)
    writer.setLastWatermark(watermark)
    this.#count(route, size)
    if (writer.length >= bufferBytes - 4096) this.#send(lane, writer, watermark)
  }

  #count(route: Route, bytes: number): void {
    this.total++
    this.sinceMark++
    const counters = this.#counters
    counters[engineIndex.recordsDispatched] = this.total
    if (route.counter >= 0) {
      const at = sourceTopicSlot(this.#layout, route.counter)
      counters[at] = (counters[at] as number) + 1
      counters[at + 1] = (counters[at + 1] as number) + bytes
    }
  }

  /** Sends what is packed, and the watermark to lanes that have not heard of it. */
  flush(): void {
    const watermark = this.#watermarks.global()
    for (let lane = 0; lane < this.#writers.length; lane++) {
      const writer = this.#writers[lane] as TransferWriter
      if (writer.records > 0) {
        this.#send(lane, writer, watermark)
      } else if (watermark > (this.#sentWatermark[lane] as number)) {
        this.#sentWatermark[lane] = watermark
        this.#host.send(lane, { type: 'watermark', run: this.#host.run(), watermark }, [])
      }
    }
  }

  /** Dispatches a record that no partition brought (scheduled sources): it goes to the lane of its key. */
  inject(
    source: number,
    subtopology: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    timestamp: number,
  ): void {
    const slot = key === null ? this.#unkeyed++ : keySlot(key)
    const task = this.#affinity.task(subtopology, slot, -1)
    const writer = this.#writers[this.#affinity.lane(subtopology, task)] as TransferWriter
    const watermark = this.#watermarks.global()
    const keyEnd = key?.length ?? -1
    const valueEnd = value?.length ?? -1
    writer.append(source, task, -1, -1, -1, timestamp, watermark, key, 0, keyEnd, value, 0, valueEnd, null, 0, 0)
    this.sinceMark++
  }

  #send(lane: number, writer: TransferWriter, watermark: number): void {
    const { length, records } = writer
    const buffer = writer.take()
    this.#outstanding[lane] = (this.#outstanding[lane] as number) + length
    this.#sentWatermark[lane] = watermark
    this.#host.send(lane, { type: 'data', run: this.#host.run(), buffer, length, records, watermark }, [buffer])
  }
}
