/** A record as it came from the engine or another lane: decoded, given its origin, and handed to its task. */
import { assert } from '../../base/assert.ts'
import { ByteRange } from '../../base/byte-range.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { type Origin, PlainOrigin, Rec } from '../../operators/contract.ts'
import { decodeRecord } from '../../operators/decode.ts'
import { SerdeWaits } from '../../serde/serde.ts'
import { Prefetch, mostPrefetched } from '../../state/table/prefetch.ts'
import type { CompiledSource } from '../../topology/compiled.ts'
import type { Deferred } from './deferred.ts'
import { LaidElsewhere } from './laid-elsewhere.ts'
import { asksInRetrospect } from '../../topology/levels/timers-met.ts'
import { looksBack } from '../../topology/levels/looks-back.ts'
import { rowsByKey } from '../../topology/keys/rows-by-key.ts'
import { noHeaders } from '../../broker/wire/headers.ts'
import { decodeHeaders } from '../../broker/wire/record-batch.ts'
import { extractAgain, failedTimestamp } from '../extraction.ts'
import type { LaneCounters } from '../lane-counters.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { Calls } from '../tasks/calls.ts'
import { type TaskRunner, undecoded } from '../tasks/task-runner.ts'
import type { TaskSet } from '../tasks/task-set.ts'
import type { TaskSlot } from '../tasks/task-slot.ts'
import type { TransferReader } from '../transfer.ts'

export interface IntakeParts {
  readonly tasks: TaskSet
  readonly runner: TaskRunner
  readonly counters: LaneCounters
  readonly calls: Calls
  readonly deferred: Deferred
  /** The record cannot be decoded; the policy is applied when this returns. */
  failed(slot: TaskSlot, rec: Rec, error: unknown): void
}

/** Apart: the sentence is only made where it is needed. */
function noTask({ source, task }: TransferReader): never {
  assert(false, `source ${source} has no task ${task} on this lane`)
}

export class Intake {
  readonly #options: LaneOptions
  readonly #tasks: TaskSet
  readonly #runner: TaskRunner
  readonly #counters: LaneCounters
  readonly #calls: Calls
  readonly #deferred: Deferred
  readonly #failed: IntakeParts['failed']
  /** Topics by the number that records carry. */
  originTopics: readonly string[] = []
  /** Some records read the row of their key in a store. */
  readonly looksAhead: boolean
  readonly #ahead = new Prefetch()
  /** Sources of which a record without a value was told. */
  readonly #toldNull = new Set<CompiledSource>()
  readonly #laid: LaidElsewhere
  /** By source: whether what comes of a record may be handed to other tasks, which need its place. */
  readonly #passesOn: readonly boolean[]
  /** By source: whether somebody asks for the number of its dispatch, and for the event time before that. */
  readonly #tellsSeq: readonly boolean[]
  readonly #tellsTime: readonly boolean[]
  /** Nobody asks for the place of any record, nor for one as it came. For all of them, so that all origins are of one form. */
  readonly #isPlain: boolean

  constructor(options: LaneOptions, { tasks, runner, counters, calls, deferred, failed }: IntakeParts) {
    this.#options = options
    this.#tasks = tasks
    this.#runner = runner
    this.#counters = counters
    this.#calls = calls
    this.#deferred = deferred
    this.#failed = failed
    const { topology } = options
    this.#laid = new LaidElsewhere(topology)
    this.#passesOn = topology.sources.map(({ level }) => level < topology.levels - 1)
    this.#tellsSeq = topology.sources.map(
      ({ subtopology }, i) => (this.#passesOn[i] as boolean) || asksInRetrospect(topology, subtopology),
    )
    this.#tellsTime = topology.sources.map(
      ({ subtopology }, i) => (this.#tellsSeq[i] as boolean) || looksBack(topology, subtopology),
    )
    this.#isPlain = !this.#tellsTime.includes(true) && !tasks.host.keepsRecords
    this.looksAhead = topology.sources.some((source) => rowsByKey(topology, source) !== undefined)
  }

  /** The number that records carry for this topic; -1 where they carry none. */
  numberOf(topic: string): number {
    return this.originTopics.indexOf(topic)
  }

  /** Prefetches the rows that the next records will ask for. */
  lookAhead(reader: TransferReader): void {
    const ahead = this.#ahead
    let cold = 0
    for (let i = 0; i < mostPrefetched && reader.look(); i++) {
      if (reader.aheadSource >= this.#passesOn.length) continue
      const rows = this.#tasks.ofSource(reader.aheadSource, reader.aheadTask)?.rowsBySource[reader.aheadSource]
      if (rows === undefined || !rows.isCacheCold || reader.aheadKeyStart < 0) continue
      ahead.add(rows, reader.bytes, reader.aheadKeyStart, reader.aheadKeyEnd)
      cold++
    }
    // Where none of so many has its row far away, none of those behind them will.
    if (cold === 0) reader.lookNoFurther()
    else ahead.look()
  }

  /** Numbers that nobody asks for are not to be allocated. */
  #origin(reader: TransferReader, epoch: CommitEpoch): Origin {
    const topic = this.originTopics[reader.originTopic] ?? ''
    const { originPartition: partition, offset, watermark } = reader
    if (this.#isPlain) return new PlainOrigin(topic, partition, offset, watermark, epoch)
    const tellsTime = this.#tellsTime[reader.source] as boolean
    const passesOn = this.#passesOn[reader.source] as boolean
    return {
      topic,
      partition,
      offset,
      watermark,
      epoch,
      at: tellsTime ? reader.at : 0,
      seq: (this.#tellsSeq[reader.source] as boolean) ? reader.seq : 0,
      sub: passesOn ? reader.sub : 0,
      handed: 0,
      came: undefined,
      call: undefined,
    }
  }

  /** Takes in the record at which the reader stands. */
  take(reader: TransferReader, epoch: CommitEpoch): void {
    const source = this.#options.topology.sources[reader.source]
    if (source === undefined) {
      this.#takeDeferred(reader)
      return
    }
    const slot = this.#tasks.ofSource(reader.source, reader.task) ?? noTask(reader)
    const origin = this.#origin(reader, epoch)
    this.#counters.at(reader.originTopic, reader.originPartition, reader.offset, source.subtopology)
    const { bytes } = reader
    const key = reader.keyStart < 0 ? null : new ByteRange(bytes, reader.keyStart, reader.keyEnd)
    const value = reader.valueStart < 0 ? null : new ByteRange(bytes, reader.valueStart, reader.valueEnd)
    const headers =
      reader.headersEnd > reader.headersStart ? decodeHeaders(bytes, reader.headersStart, reader.headersEnd) : noHeaders
    if (this.#tasks.host.keepsRecords) origin.came = { key, value, timestamp: reader.timestamp, headers }
    if (value === null && source.tellsNull) this.#tellNull(source, origin)
    if (this.#laid.looksAt(reader.source)) this.#lookAt(source, origin, reader.task, key)
    let rec: Rec
    try {
      rec = decodeRecord(source, key, value, reader.timestamp, headers, origin)
      // Only a timestamp function of the application can have made it negative, or a producer without a clock.
      if (rec.timestamp < 0 && !this.#timed(source, slot, rec)) {
        this.#calls.done(reader.source, rec)
        return
      }
    } catch (error) {
      this.#notDecoded(
        slot,
        reader,
        new Rec(undecoded, undecoded, reader.timestamp, headers, origin, key, value),
        error,
      )
      return
    }
    this.#runner.submit(slot, reader.source, rec, reader.at, reader.seq)
  }

  /** It waits for what its serde needs, or nothing can be made of it. */
  #notDecoded(slot: TaskSlot, reader: TransferReader, rec: Rec, error: unknown): void {
    if (error instanceof SerdeWaits) {
      this.#runner.submit(slot, reader.source, rec, reader.at, reader.seq)
      return
    }
    const { headers, origin, keyRange, valueRange } = rec
    const timestamp = rec.timestamp < 0 ? this.#options.clock.now() : rec.timestamp
    const unread = new Rec(undefined, undefined, timestamp, headers, origin, keyRange, valueRange)
    this.#failed(slot, unread, error)
    this.#calls.done(reader.source, unread)
  }

  #lookAt(source: CompiledSource, { topic, offset }: Origin, task: number, key: ByteRange | null): void {
    const { affinity } = this.#tasks
    const message = affinity && this.#laid.look(source.index, { topic, offset, task, key }, affinity)
    const { toEngine, lane } = this.#options
    if (message) toEngine({ type: 'notice', lane, message, about: `laid ${source.subtopology}` }, [])
  }

  /** Once for each source: that a function is given null which does not say that it is ready for it. */
  #tellNull(source: CompiledSource, { topic, partition, offset }: Origin): void {
    if (this.#toldNull.has(source)) return
    this.#toldNull.add(source)
    const message =
      `the record ${topic}/${partition} at offset ${offset} has no value, and functions behind the stream of ${topic} are given null for it. ` +
      'Where such records are expected, say `tombstones: true` in the settings of `topology.stream`: then the type of the values has null'
    this.#options.toEngine({ type: 'notice', lane: this.#options.lane, message, about: `null ${source.index}` }, [])
  }

  /** A record that was passed on within its task; only its place came with the others'. */
  #takeDeferred(reader: TransferReader): void {
    const { slot, source, rec } = this.#deferred.take(reader.watermark)
    this.#counters.at(reader.originTopic, reader.originPartition, reader.offset, slot.subtopology)
    this.#runner.submit(slot, source, rec, reader.at, reader.seq)
  }

  /** As for a record that comes in, of one that could not be decoded then. Throws as `decodeRecord`. */
  decode(slot: TaskSlot, index: number, late: Rec): Rec | undefined {
    const source = this.#options.topology.sources[index] as CompiledSource
    const { keyRange = null, valueRange = null, timestamp, headers, origin } = late
    const rec = decodeRecord(source, keyRange, valueRange, timestamp, headers, origin)
    return rec.timestamp < 0 && !this.#timed(source, slot, rec) ? undefined : rec
  }

  /** False for a record that has no time: it goes no further. */
  #timed(source: CompiledSource, slot: TaskSlot, rec: Rec): boolean {
    if (rec.timestamp === failedTimestamp && source.timestampExtractor !== undefined) extractAgain(source, rec)
    this.#tasks.host.dropped(slot, rec, 'negative_timestamp', source.name)
    return false
  }
}
