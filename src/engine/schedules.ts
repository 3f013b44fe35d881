/**
 * Scheduled sources: the engine thread knows when one is due, a lane runs its function. When it fired last is kept in
 * an internal compacted topic, written in the transaction that carries the firing's results.
 */
import { engineIndex } from '../base/counters.ts'
import { readUpTo } from '../broker/read-up-to.ts'
import { nextFiring } from '../time/schedule.ts'
import { noHeaders } from '../broker/wire/headers.ts'
import { RecordBatchBuilder, RecordCursor } from '../broker/wire/record-batch.ts'
import { askAgain, type AskingParts } from './restore/ask-again.ts'
import type { EngineOptions } from './engine-options.ts'
import type { EmittedRecord } from '../lanes/protocol.ts'
import type { Run } from './run.ts'
import type { ToProduce } from './commit/producer.ts'

export interface SchedulesHost {
  /** Dispatches what a firing brought. */
  dispatch(source: number, records: readonly EmittedRecord[]): void
  /** There is something to commit, though perhaps no record. */
  changed(): void
}

interface Schedule {
  readonly source: number
  readonly name: string
  readonly everyMs: number | undefined
  readonly cron: string | undefined
  /** Instant of the last firing, or the source's beginning; NaN before that. */
  lastMs: number
  /** Firings whose records were dispatched. */
  count: number
  changed: boolean
  /** Instant of the firing whose function has not answered yet: there is one at a time. */
  firing: number | undefined
  /** Nothing was to fire any more while it was called: its answer is waited for, and says nothing. */
  isVoid: boolean
  cancel: (() => void) | undefined
}

const longestTimerMs = 2 ** 31 - 1

export class Schedules {
  readonly #o: EngineOptions
  readonly #host: SchedulesHost
  readonly #topic: string
  #schedules: Schedule[] = []
  /** The run in which they fire; undefined while nothing is to fire. */
  #run: Run | undefined

  constructor(options: EngineOptions, host: SchedulesHost) {
    this.#o = options
    this.#host = host
    this.#topic = `${options.settings.applicationId}-schedules-changelog`
  }

  /**
   * Reads when each source fired last.
   * @throws RunOver once the run, or the engine, has ended.
   */
  async restore(over: () => boolean): Promise<void> {
    const { settings, broker } = this.#o
    this.#schedules = settings.plan.sources
      .filter((source) => source.schedule !== undefined)
      .map(({ index, name, schedule }) => ({
        source: index,
        name,
        everyMs: schedule?.everyMs,
        cron: schedule?.cron,
        lastMs: Number.NaN,
        count: 0,
        changed: false,
        firing: undefined,
        isVoid: false,
        cancel: undefined,
      }))
    if (this.#schedules.length === 0) return
    await broker.createTopics([{ topic: this.#topic, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
    for (const [name, state] of await readAll(this.#o, this.#topic, over)) {
      const schedule = this.#schedules.find((s) => s.name === name)
      if (!schedule) continue
      schedule.lastMs = state.lastMs
      schedule.count = state.count
    }
  }

  start(run: Run): void {
    if (this.#run !== undefined) return
    this.#run = run
    const now = this.#o.clock.now()
    for (const schedule of this.#schedules) {
      if (Number.isNaN(schedule.lastMs)) {
        // Kept from the first moment: else an application that is restarted often would never see a long interval end.
        schedule.lastMs = now
        schedule.changed = true
        this.#host.changed()
      }
      if (schedule.firing === undefined) this.#arm(run, schedule)
    }
  }

  /** Nothing fires any more. What a function under way answers is void: its firing is made up for. */
  stop(): void {
    this.#run = undefined
    for (const schedule of this.#schedules) {
      schedule.cancel?.()
      schedule.isVoid = schedule.firing !== undefined
    }
  }

  /**
   * A source's function has answered. Its firing counts from here on: its records and the new count are part of the
   * same commit.
   */
  emitted(source: number, count: number, records: readonly EmittedRecord[]): void {
    const run = this.#run
    const schedule = this.#schedules.find((s) => s.source === source)
    if (schedule?.firing === undefined || schedule.count !== count) return
    if (schedule.isVoid) {
      schedule.isVoid = false
      schedule.firing = undefined
      if (run !== undefined) this.#arm(run, schedule)
      return
    }
    if (run === undefined) return
    schedule.lastMs = schedule.firing
    schedule.firing = undefined
    schedule.count++
    schedule.changed = true
    this.#host.dispatch(source, records)
    this.#arm(run, schedule)
  }

  /** The state of the sources that fired since the last commit. */
  freeze(): ToProduce[] {
    const changed = this.#schedules.filter((s) => s.changed)
    if (changed.length === 0) return []
    const builder = new RecordBatchBuilder()
    for (const { name, lastMs, count } of changed) {
      builder.append(lastMs, Buffer.from(name), Buffer.from(JSON.stringify({ lastMs, count })), noHeaders)
    }
    for (const schedule of changed) schedule.changed = false
    return [{ topic: this.#topic, partition: 0, records: builder.finish(), count: changed.length }]
  }

  /** Has a lane run the source's function; `emitted` is its answer. */
  #fire(run: Run, { source, count }: Schedule, scheduledAt: number): void {
    const { send, settings, counters } = this.#o
    counters[engineIndex.scheduledRuns] = (counters[engineIndex.scheduledRuns] as number) + 1
    send(source % settings.lanes, { type: 'tick', run: run.number, source, scheduledAt, count }, [])
  }

  #arm(run: Run, schedule: Schedule): void {
    if (run !== this.#run) return
    const { clock, timers } = this.#o
    const now = clock.now()
    const due = nextFiring(schedule, schedule.lastMs, now)
    const wait = Math.min(Math.max(0, due - now), longestTimerMs)
    schedule.cancel = timers.after(wait, () => {
      if (run !== this.#run) return
      if (clock.now() >= due) {
        schedule.firing = due
        this.#fire(run, schedule, due)
      } else {
        this.#arm(run, schedule)
      }
    })
  }
}

async function readAll(
  parts: AskingParts,
  topic: string,
  over: () => boolean,
): Promise<Map<string, { lastMs: number; count: number }>> {
  const result = new Map<string, { lastMs: number; count: number }>()
  const { broker } = parts
  const at = { topic, partition: 0 }
  const [end] = await broker.listOffsets([at], 'stable')
  const [start] = await broker.listOffsets([at], 'earliest')
  const range = { ...at, from: start?.offset ?? 0, to: end?.offset ?? 0, maxBytes: 1 << 20 }
  const cursor = new RecordCursor()
  for await (const { answer, from } of readUpTo(broker, range, askAgain(parts, over))) {
    cursor.reset(answer.records, from, answer.aborted, 'read_committed')
    while (cursor.next()) {
      const key = Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)).toString()
      const value = Buffer.from(cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd)).toString()
      result.set(key, JSON.parse(value) as { lastMs: number; count: number })
    }
  }
  return result
}
