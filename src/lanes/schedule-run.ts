/** Runs the function of a scheduled source and encodes what it emits; the engine dispatches that like any record. */
import { assert } from '../base/assert.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { isPromise } from '../operators/contract.ts'
import type { CompiledSource, ScheduledRecord, ScheduledTick } from '../topology/compiled.ts'
import { policyFor } from './tasks/error-policy.ts'
import type { LaneCounters } from './lane-counters.ts'
import type { LaneOptions } from './lane-options.ts'
import type { EmittedRecord, ToLane } from './protocol.ts'

export interface ScheduleRunsHost {
  /** The engine's run: what a function of an earlier one answers is void. */
  run(): number
  failed(error: unknown): void
}

/**
 * Answers the engine's ticks. The barrier does not wait for a function under way, since nothing of it belongs to an
 * epoch before the engine dispatches it.
 */
export class ScheduleRuns {
  readonly #options: LaneOptions
  readonly #counters: LaneCounters
  readonly #host: ScheduleRunsHost

  constructor(options: LaneOptions, counters: LaneCounters, host: ScheduleRunsHost) {
    this.#options = options
    this.#counters = counters
    this.#host = host
  }

  tick({ source: index, scheduledAt, count }: Extract<ToLane, { type: 'tick' }>): void {
    const source = this.#options.topology.sources[index]
    assert(source !== undefined, `no source ${index}`)
    const { toEngine, lane } = this.#options
    const run = this.#host.run()
    const answer = (records: readonly EmittedRecord[]): void => {
      if (run === this.#host.run()) toEngine({ type: 'emitted', lane, run, source: index, count, records }, [])
    }
    const refuse = (error: unknown): void => {
      if (run !== this.#host.run()) return
      if (policyFor(error, this.#options.policies) === 'fail') {
        this.#host.failed(error)
        return
      }
      // There is no record that a dead letter could carry: it is skipped and counted either way.
      this.#counters.dropped(source.subtopology, 'handler')
      answer([])
    }
    this.#counters.probe.currentNode = source.node
    try {
      const emitted = runSchedule(source, { scheduledAt, count })
      if (Array.isArray(emitted)) answer(emitted)
      else emitted.then(answer, refuse)
    } catch (error) {
      refuse(error)
    }
    this.#counters.probe.currentNode = -1
  }
}

/** @throws EngineError `PROCESSING_FAILED` or `PRODUCE_FAILED`, also through the promise. */
function runSchedule(source: CompiledSource, tick: ScheduledTick): EmittedRecord[] | Promise<EmittedRecord[]> {
  let emitted: unknown
  try {
    emitted = source.schedule?.emit(tick)
  } catch (error) {
    throw failed(source, tick, error)
  }
  if (!isPromise(emitted)) return encoded(source, tick, emitted)
  return Promise.resolve(emitted).then(
    (records) => encoded(source, tick, records),
    (error: unknown) => {
      throw failed(source, tick, error)
    },
  )
}

function failed(source: CompiledSource, { scheduledAt, count }: ScheduledTick, error: unknown): EngineError {
  return new EngineError(
    'PROCESSING_FAILED',
    `the function of the scheduled source ${source.name} failed at firing ${count}, due at ` +
      `${new Date(scheduledAt).toISOString()}: ${messageOf(error)}`,
    { cause: error, node: source.name },
  )
}

function encoded(source: CompiledSource, tick: ScheduledTick, emitted: unknown): EmittedRecord[] {
  if (emitted === null || emitted === undefined) return []
  const records = (Array.isArray(emitted) ? emitted : [emitted]) as readonly ScheduledRecord[]
  try {
    return records.map(({ key, value, timestamp }) => ({
      key: key === null || key === undefined ? null : source.keySerde.serialize(key),
      value: value === null || value === undefined ? null : source.valueSerde.serialize(value),
      timestamp: wholeTime(timestamp ?? tick.scheduledAt),
    }))
  } catch (error) {
    throw new EngineError(
      'PRODUCE_FAILED',
      `a record that the scheduled source ${source.name} emitted at firing ${tick.count} cannot be encoded: ${messageOf(error)}`,
      { cause: error, node: source.name },
    )
  }
}

/** A batch keeps whole milliseconds; what is no time at all would move event time to where nothing follows. */
function wholeTime(timestamp: number): number {
  if (Number.isFinite(timestamp)) return Math.floor(timestamp)
  throw new EngineError('PRODUCE_FAILED', `its timestamp is ${String(timestamp)}; give milliseconds since 1970`)
}
