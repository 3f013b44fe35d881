/**
 * The path of every record through the engine thread: of the partitions with something buffered the oldest head goes
 * next; its key bytes choose the lane; header, key and value bytes are copied into that lane's buffer together with
 * the watermark in force. Nothing is decoded here.
 */
import { assert } from '../../base/assert.ts'
import { engineIndex } from '../../base/counters.ts'
import { keySlot } from '../../base/hash.ts'
import type { Affinity } from '../../topology/affinity.ts'
import { misplacedKey } from '../../topology/keys/misplaced-key.ts'
import type { TaskWatermark, ToLane } from '../../lanes/protocol.ts'
import { heads, TransferWriter } from '../../lanes/transfer.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { Admission } from './admission/admission.ts'
import type { Run } from '../run.ts'
import type { PartitionBuffer } from './partition-buffer.ts'
import type { SortedBuffer } from './repartition/sorted-buffer.ts'

/** Room behind the size at which records leave, for the one that reaches it. */
const spareBytes = 4 * 1024
/** A lane with more than this waiting has enough to do for a moment. */
const momentBytes = 128 * 1024
/** Stands for the application's watermark where each task has its own. */
const untold = Number.NEGATIVE_INFINITY

/** What dispatch needs to know of an assigned partition; `handle` is its number in `Watermarks`. */
export interface Route {
  readonly handle: number
  readonly topic: string
  readonly partition: number
  readonly source: number
  readonly subtopology: number
  /** Names the task that it feeds together with others. */
  readonly task: string
  /** Records are sent with their values; otherwise with empty ones. */
  readonly carriesValue: boolean
  /** The topic serves as the changelog of a table: keys have to lie where their tasks are. */
  readonly isChangelog: boolean
  /** Index into the list of origin topics that the lanes were given. */
  readonly originTopic: number
  /** Where the engine counts records of its topic, see `topicSlot`; -1: nowhere. */
  readonly counter: number
  readonly buffer: PartitionBuffer
  /** Where the partition's records are taken in the order of event time. */
  readonly sorted: SortedBuffer | undefined
}

/** Event time up to which records may go, as of `Lead`. */
export interface Limits {
  limits(now: number): Float64Array
  went(subtopology: number, records: number, bytes: number, upToMs: number): void
}

export interface DispatcherHost {
  /** The run that is dispatched in. */
  readonly run: Run
  /** Size at which records leave for their lane. */
  readonly dispatchBytes: number
  /** How far records may go ahead of other processes; left out: as far as they come. */
  readonly lead?: Limits | undefined
  /** Whether no more is known to lie at the broker; left out: lanes need not know. */
  readonly caughtUp?: (() => boolean) | undefined
  send(lane: number, message: ToLane, transfer: ArrayBuffer[]): void
  failed(error: unknown): void
}

export class Dispatcher {
  readonly #watermarks: Watermarks
  readonly #affinity: Affinity
  readonly #admission: Admission
  readonly #host: DispatcherHost
  readonly #queueBytes: number
  readonly #counters: Float64Array
  readonly #writers: TransferWriter[]
  /** Bytes sent to each lane and not yet worked off. */
  readonly #outstanding: Float64Array
  readonly #sentWatermark: Float64Array
  /** Number of the record dispatched last: deeper levels put in order by it what comes from several lanes. */
  #seq = 0
  readonly #sentSeq: Float64Array
  /** Lanes hand records to one another, and have to know how far each of them has come. */
  readonly #hasLevels: boolean
  /** Each task has a watermark of its own; by lane those that it is about to be told. */
  readonly #byTask: boolean
  readonly #told: Array<TaskWatermark[] | undefined> = []
  /** By handle of the watermarks. */
  readonly #routes: Array<Route | undefined> = []
  paused = false
  /** Nothing goes before a commit has shown that nobody else has taken over. */
  withheld = false
  /** What lanes were told last. */
  #toldPaused: boolean | undefined
  /** Records dispatched since the last mark. */
  sinceBarrier = 0
  total = 0
  /** By handle: records dispatched, and their bytes, that the counters have not been told of. */
  readonly #records: number[] = []
  readonly #bytes: number[] = []
  /** By sub-topology, where others may be waited for: event time up to which records go. */
  #limits: Float64Array | undefined
  /** By sub-topology: highest event time dispatched. */
  readonly #latest: number[] = []
  /** What `hasCredits` says: between two calls of `dispatch` lanes give back, within one only sending takes. */
  #credited = true
  /** Gives records without a key and a partition to the tasks in turn. */
  #unkeyed = 0
  /** What lanes are told with the messages that are sent just now. */
  #caughtUp: boolean | undefined
  /** Lane and key of the record that was not let in; no lane: none. */
  #refusedLane = -1
  #refusedSubtopology = -1
  #refusedSlot = -1

  constructor(
    watermarks: Watermarks,
    affinity: Affinity,
    admission: Admission,
    host: DispatcherHost,
    queueBytes: number,
    counters: Float64Array,
    hasLevels: boolean,
  ) {
    this.#hasLevels = hasLevels
    this.#sentSeq = new Float64Array(affinity.lanes)
    this.#watermarks = watermarks
    this.#byTask = watermarks.areByTask
    this.#affinity = affinity
    this.#admission = admission
    this.#host = host
    this.#queueBytes = queueBytes
    this.#counters = counters
    const head = hasLevels ? heads.dispatched : heads.unnumbered
    this.#writers = Array.from(
      { length: affinity.lanes },
      () => new TransferWriter(host.dispatchBytes + spareBytes, head),
    )
    this.#outstanding = new Float64Array(affinity.lanes)
    this.#sentWatermark = new Float64Array(affinity.lanes).fill(Number.NEGATIVE_INFINITY)
  }

  /** Lets nothing in, or goes on; lanes have timers of their own to hold. False: so it was before. */
  pause(paused: boolean): boolean {
    if (paused !== this.#toldPaused) {
      const message = { type: 'pause', run: this.#host.run.number, paused } as const
      for (let lane = 0; lane < this.#affinity.lanes; lane++) this.#host.send(lane, message, [])
    }
    this.#toldPaused = paused
    const was = this.paused
    this.paused = paused
    return paused !== was
  }

  assign(route: Route): void {
    const { handle, topic, partition } = route
    assert(this.#routes[handle] === undefined, `${topic}:${partition} takes the place of a partition that is read`)
    this.#routes[handle] = route
    this.#records[handle] = 0
    this.#bytes[handle] = 0
  }

  revoke(handle: number): void {
    this.#routes[handle] = undefined
  }

  consumed(lane: number, bytes: number): void {
    const left = (this.#outstanding[lane] as number) - bytes
    assert(left >= 0, `lane ${lane} gave back ${-left} bytes more than it was sent`)
    this.#outstanding[lane] = left
  }

  /** False while a lane has as much queued as it may: nothing is dispatched then, for the order is over all lanes. */
  get hasCredits(): boolean {
    for (let lane = 0; lane < this.#outstanding.length; lane++) {
      if ((this.#outstanding[lane] as number) >= this.#queueBytes) return false
    }
    return true
  }

  /** The record whose turn it is waits until its lane has come further. */
  get refuses(): boolean {
    return (
      this.#refusedLane >= 0 && !this.#admission.admits(this.#refusedLane, this.#refusedSubtopology, this.#refusedSlot)
    )
  }

  /** Whether no lane has more waiting than it does in a moment. */
  get settled(): boolean {
    for (let lane = 0; lane < this.#outstanding.length; lane++) {
      if ((this.#outstanding[lane] as number) > momentBytes) return false
    }
    return true
  }

  /** Dispatches up to `budget` records; true when there may be more to do at once. */
  dispatch(budget: number, now: number): boolean {
    const watermarks = this.#watermarks
    let left = budget
    this.#refusedLane = -1
    this.#credited = this.hasCredits
    this.#limits = this.#host.lead?.limits(now)
    while (left > 0 && !this.paused && !this.withheld && this.#credited) {
      const handle = watermarks.pick(now)
      if (handle < 0) break
      if (!this.#one(handle, now)) break
      left--
    }
    if (left < budget) this.#count(budget - left)
    this.#caughtUp = left > 0 && this.#host.caughtUp?.()
    this.flush()
    this.#caughtUp = undefined
    return left === 0
  }

  /** False where the record does not go yet. */
  #one(handle: number, now: number): boolean {
    const route = this.#routes[handle] as Route
    const { sorted } = route
    const input = sorted ?? route.buffer
    const { cursor, headTimestamp } = input
    if (this.#limits !== undefined && headTimestamp > (this.#limits[route.subtopology] as number)) return false
    const { bytes, keyStart, keyEnd } = cursor
    const slot = keyStart < 0 ? route.partition : keySlot(bytes, keyStart, keyEnd)
    const task = this.#affinity.task(route.subtopology, slot, route.partition)
    if (route.isChangelog && task !== route.partition) return this.#misplaced(route, input.headOffset, task)
    const lane = this.#affinity.lane(route.subtopology, task)
    if (!this.#admission.takes(lane, route.subtopology, slot)) {
      this.#refusedLane = lane
      this.#refusedSubtopology = route.subtopology
      this.#refusedSlot = slot
      return false
    }
    const writer = this.#writers[lane] as TransferWriter
    // An extractor of the application may have given the record another time than it carries.
    const { source, originTopic, partition, carriesValue } = route
    if (this.#limits !== undefined && !(headTimestamp <= (this.#latest[route.subtopology] as number)))
      this.#latest[route.subtopology] = headTimestamp
    this.#records[handle]!++
    this.#bytes[handle]! += writer.appendFrom(cursor, source, task, originTopic, partition, headTimestamp, carriesValue)
    input.shift()
    if (sorted !== undefined) sorted.shownOffset = sorted.headOffset
    const at = this.#watermarks.inForce(handle)
    const watermark = this.#watermarks.dispatched(handle, input.headTimestamp, input.headOffset, now)
    writer.setLast(watermark, at, ++this.#seq)
    if (writer.length >= this.#host.dispatchBytes) this.#send(lane, writer, this.#byTask ? untold : watermark)
    return true
  }

  #misplaced({ topic, partition }: Route, offset: number, task: number): false {
    // Behind the dispatch that is under way.
    queueMicrotask(() => this.#host.failed(misplacedKey(topic, partition, offset, task)))
    return false
  }

  /** Tells the counters of what was dispatched, once for all of it. */
  #count(dispatched: number): void {
    this.total += dispatched
    this.sinceBarrier += dispatched
    const counters = this.#counters
    // Another dispatcher counted before a restart in place: the process goes on where that one was.
    counters[engineIndex.recordsDispatched] = (counters[engineIndex.recordsDispatched] as number) + dispatched
    for (let handle = 0; handle < this.#records.length; handle++) {
      const records = this.#records[handle] as number
      if (records === 0) continue
      const at = this.#routes[handle]?.counter ?? -1
      if (at >= 0) {
        counters[at] = (counters[at] as number) + records
        counters[at + 1] = (counters[at + 1] as number) + (this.#bytes[handle] as number)
      }
      const { subtopology } = this.#routes[handle] as Route
      this.#host.lead?.went(subtopology, records, this.#bytes[handle] as number, this.#latest[subtopology] ?? 0)
      this.#records[handle] = 0
      this.#bytes[handle] = 0
    }
  }

  /** Everything that was dispatched has a number up to this one. */
  get seq(): number {
    return this.#seq
  }

  /** Sends what is packed, and how far dispatch has come to lanes that have not heard of it. */
  flush(): void {
    const watermark = this.#byTask ? untold : this.#watermarks.global()
    const seq = this.#seq
    for (let lane = 0; lane < this.#writers.length; lane++) {
      const writer = this.#writers[lane] as TransferWriter
      if (writer.records > 0) {
        this.#send(lane, writer, watermark)
      } else if (
        watermark > (this.#sentWatermark[lane] as number) ||
        (this.#hasLevels && seq > (this.#sentSeq[lane] as number))
      ) {
        this.#sentWatermark[lane] = watermark
        this.#sentSeq[lane] = seq
        const { number: run } = this.#host.run
        this.#host.send(
          lane,
          { type: 'watermark', run, watermark, seq, ...(this.#caughtUp === true && { caughtUp: true }) },
          [],
        )
      }
    }
    if (this.#byTask) this.#tellTasks()
  }

  /** Behind the records from which they follow: the watermarks of tasks that have come further. */
  #tellTasks(): void {
    const told = this.#told
    this.#watermarks.tellTasks((handle, watermark) => {
      const { subtopology, partition } = this.#routes[handle] as Route
      const lane = this.#affinity.lane(subtopology, partition)
      const tasks = told[lane] ?? []
      told[lane] = tasks
      tasks.push({ subtopology, partition, watermark })
    })
    for (let lane = 0; lane < told.length; lane++) {
      const tasks = told[lane]
      if (tasks === undefined) continue
      told[lane] = undefined
      this.#host.send(lane, { type: 'task-watermarks', run: this.#host.run.number, tasks }, [])
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
    const lane = this.#affinity.lane(subtopology, task)
    this.#admission.gave(lane, subtopology, key === null ? -1 : slot)
    const writer = this.#writers[lane] as TransferWriter
    const watermark = this.#watermarks.global()
    const keyEnd = key?.length ?? -1
    const valueEnd = value?.length ?? -1
    writer.append(
      ...([source, task, -1, -1, -1, timestamp, watermark] as const),
      ...([key, 0, keyEnd, value, 0, valueEnd, null, 0, 0] as const),
      ...([watermark, ++this.#seq, 0] as const),
    )
    this.sinceBarrier++
  }

  #send(lane: number, writer: TransferWriter, watermark: number): void {
    const { head, length, records } = writer
    assert(records > 0, `a buffer without records goes to lane ${lane}`)
    const buffer = writer.take()
    const outstanding = (this.#outstanding[lane] as number) + length
    this.#outstanding[lane] = outstanding
    if (outstanding >= this.#queueBytes) this.#credited = false
    const seq = this.#seq
    this.#sentWatermark[lane] = watermark
    this.#sentSeq[lane] = seq
    const { number: run } = this.#host.run
    const message = {
      type: 'data',
      run,
      buffer,
      head,
      length,
      records,
      watermark,
      seq,
      ...(this.#caughtUp === true && { caughtUp: true }),
    } as const
    this.#host.send(lane, message, [buffer])
  }
}
