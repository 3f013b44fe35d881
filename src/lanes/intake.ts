/** A record as it came from the engine or another lane: decoded, given its origin, and handed to its task. */
import { assert } from '../base/assert.ts'
import { ByteRange } from '../base/byte-range.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { type Origin, Rec } from '../operators/contract.ts'
import { decodeRecord } from '../operators/task.ts'
import { LookAhead, mostAhead } from '../state/look-ahead.ts'
import type { CompiledSource } from '../topology/compiled.ts'
import { rowsByKey } from '../topology/rows-by-key.ts'
import { noHeaders } from '../wire/headers.ts'
import { decodeHeaders } from '../wire/record-batch.ts'
import { extractAgain, failedTimestamp } from './extraction.ts'
import type { LaneCounters } from './lane-counters.ts'
import type { LaneOptions } from './lane-options.ts'
import type { TaskRunner } from './task-runner.ts'
import type { TaskSet } from './task-set.ts'
import type { TaskSlot } from './task-slot.ts'
import type { TransferReader } from './transfer.ts'

export interface IntakeParts {
  readonly tasks: TaskSet
  readonly runner: TaskRunner
  readonly counters: LaneCounters
  /** The record cannot be decoded; the policy is applied when this returns. */
  failed(slot: TaskSlot, rec: Rec, error: unknown): void
}

export class Intake {
  readonly #options: LaneOptions
  readonly #tasks: TaskSet
  readonly #runner: TaskRunner
  readonly #counters: LaneCounters
  readonly #failed: IntakeParts['failed']
  /** Topics by the number that records carry. */
  originTopics: readonly string[] = []
  /** Some records read the row of their key in a store. */
  readonly looksAhead: boolean
  readonly #ahead = new LookAhead()

  constructor(options: LaneOptions, { tasks, runner, counters, failed }: IntakeParts) {
    this.#options = options
    this.#tasks = tasks
    this.#runner = runner
    this.#counters = counters
    this.#failed = failed
    const { topology } = options
    this.looksAhead = topology.sources.some((source) => rowsByKey(topology, source) !== undefined)
  }

  /** Brings the rows near that the next records will ask for. */
  lookAhead(reader: TransferReader): void {
    const ahead = this.#ahead
    for (let i = 0; i < mostAhead && reader.look(); i++) {
      const subtopology = this.#options.topology.sources[reader.aheadSource]?.subtopology ?? 0
      const rows = this.#tasks.get(subtopology, reader.aheadTask)?.rowsBySource[reader.aheadSource]
      if (rows === undefined || !rows.areFar || reader.aheadKeyStart < 0) continue
      ahead.add(rows, reader.bytes, reader.aheadKeyStart, reader.aheadKeyEnd)
    }
    ahead.look()
  }

  /** Takes in the record at which the reader stands. */
  take(reader: TransferReader, epoch: CommitEpoch): void {
    const source = this.#options.topology.sources[reader.source]
    const slot = source && this.#tasks.get(source.subtopology, reader.task)
    // The sentence is only made where it is needed: this runs for every record.
    if (source === undefined || slot === undefined) {
      assert(false, `source ${reader.source} has no task ${reader.task} on this lane`)
    }
    const origin: Origin = {
      topic: this.originTopics[reader.originTopic] ?? '',
      partition: reader.originPartition,
      offset: reader.offset,
      watermark: reader.watermark,
      epoch,
    }
    this.#counters.at(reader.originTopic, reader.originPartition, reader.offset, source.subtopology)
    const { bytes } = reader
    const key = reader.keyStart < 0 ? null : new ByteRange(bytes, reader.keyStart, reader.keyEnd)
    const value = reader.valueStart < 0 ? null : new ByteRange(bytes, reader.valueStart, reader.valueEnd)
    const headers =
      reader.headersEnd > reader.headersStart ? decodeHeaders(bytes, reader.headersStart, reader.headersEnd) : noHeaders
    this.#tasks.host.began(origin, key, value)
    let rec: Rec
    try {
      rec = decodeRecord(source, key, value, reader.timestamp, headers, origin)
      // Only a timestamp function of the application can have made it negative, or a producer without a clock.
      if (rec.timestamp < 0 && !this.#timed(source, slot, rec)) return
    } catch (error) {
      const timestamp = reader.timestamp < 0 ? this.#options.clock.now() : reader.timestamp
      this.#failed(slot, new Rec(undefined, undefined, timestamp, headers, origin, key, value), error)
      return
    }
    this.#runner.submit(slot, reader.source, rec)
  }

  /** False for a record that has no time: it goes no further. */
  #timed(source: CompiledSource, slot: TaskSlot, rec: Rec): boolean {
    if (rec.timestamp === failedTimestamp && source.timestampExtractor !== undefined) extractAgain(source, rec)
    this.#tasks.host.dropped(slot, rec, 'negative_timestamp', source.name)
    return false
  }
}
