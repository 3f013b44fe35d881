/**
 * A partition of which nothing more is known to be there lets the records of its task go ahead. So that must be known of the
 * time at which those records were read, or of a later one. An answer to a fetch seldom tells it of all partitions: some are
 * missing in it, for their broker has not answered yet, or they had enough at hand; some lay there from an older request;
 * and a broker reads one after the other, so that a row may have come behind a partition that it had read already. Where
 * those end is asked for. Until it is known, the records that the answer brought wait, and their task is not fetched.
 */
import type { Clock } from '../../base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { Timers } from '../../base/timers.ts'
import { BrokerError, type BrokerPort, type Isolation } from '../../broker/port.ts'
import type { PartitionBuffer } from './partition-buffer.ts'

export interface EndChecksOptions {
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
  readonly isolation: Isolation
  readonly maxWaitMs: number
}

export interface EndChecksEvents {
  /** How much of a partition's log was not fetched when it was asked; undefined: nobody knows. */
  evidence(buffer: PartitionBuffer, lag: number | undefined, askedAt?: number): void
  /** A task may be fetched again. */
  released(): void
  /** Something failed that no broker has to do with. */
  failed(error: unknown): void
}

/** What was taken over of one answer, in its order. */
export interface TakenAnswer {
  readonly taken: readonly PartitionBuffer[]
  /** Those of them that brought records, by their place among them. */
  readonly arrived: readonly number[]
  /** It was put together from what was read at different times. */
  readonly isApart: boolean
}

/** Places within an answer. */
interface Span {
  readonly first: number
  last: number
}

/** A broker that took too long to say its ends is given more time at the next question. */
const longestPatienceMs = 4000
/** Beside a broker that needs so long for an answer, each task asks for itself for a while. */
const slowMs = 50
const slowForMs = 60_000

export class EndChecks {
  readonly #o: EndChecksOptions
  readonly #events: EndChecksEvents
  /** What they have was not asked for with success since it came into doubt. */
  readonly #unknown = new Set<PartitionBuffer>()
  /** Those of which a question had no answer. */
  readonly #wereAsked = new WeakSet<PartitionBuffer>()
  /** Tasks with a question under way. */
  readonly #asking = new Set<string>()
  #patienceMs: number
  #slowUntil = Number.NEGATIVE_INFINITY
  #closed = false

  constructor(options: EndChecksOptions, events: EndChecksEvents) {
    this.#o = options
    this.#events = events
    this.#patienceMs = options.maxWaitMs
  }

  /** What is there and was not fetched; undefined: a fetch has found nothing more, but nobody knows whether that is of now. */
  lagOf(buffer: PartitionBuffer): number | undefined {
    return buffer.lag === 0 && this.#unknown.has(buffer) ? undefined : buffer.lag
  }

  /** Whether a question about its task is under way: what a fetch brought now would need another one. */
  holds({ task }: PartitionBuffer): boolean {
    return task !== undefined && this.#asking.has(task)
  }

  /** Some broker lately took its time. */
  get areSlow(): boolean {
    return this.#o.clock.monotonic() < this.#slowUntil
  }

  /** What a fetch may say of it next may be of the past. */
  doubt(buffer: PartitionBuffer): void {
    if (buffer.task !== undefined) this.#unknown.add(buffer)
  }

  forget(buffer: PartitionBuffer): void {
    this.#unknown.delete(buffer)
  }

  close(): void {
    this.#closed = true
  }

  /**
   * Asks for what is in doubt behind this answer, among these partitions. The result resolves when all is known, or fails to
   * be; undefined: no doubt.
   */
  check(answer: TakenAnswer, among: readonly PartitionBuffer[]): Promise<unknown> | undefined {
    const doubtful = this.#doubtful(answer, among)
    if (doubtful.size === 0) return undefined
    // One broker that does not answer holds up a question. So those who have had no answer before are asked for by themselves.
    const questions: PartitionBuffer[][] = [[]]
    for (const buffers of doubtful.values()) {
      if (this.areSlow || buffers.some((buffer) => this.#wereAsked.has(buffer))) questions.push(buffers)
      else questions[0]?.push(...buffers)
    }
    return Promise.all(questions.map((buffers) => this.#ask(buffers)))
  }

  /** By their tasks, those of which more may be there than is known. */
  #doubtful(
    { taken, arrived, isApart }: TakenAnswer,
    among: readonly PartitionBuffer[],
  ): Map<string, PartitionBuffer[]> {
    const doubtful = new Map<string, PartitionBuffer[]>()
    const { readsInTurn = false } = this.#o.broker
    const isOfOneMoment = taken.length === among.length && !isApart && !readsInTurn
    if (this.#unknown.size === 0 && (isOfOneMoment || arrived.length === 0)) return doubtful
    const spans = spansOf(taken, arrived)
    const places = new Map(taken.map((buffer, at) => [buffer, at]))
    for (const buffer of among) {
      const { task, lag } = buffer
      if (task === undefined) continue
      const at = places.get(buffer)
      const span = spans.get(task)
      const isOld = span !== undefined && isOlder(at, span, isApart, readsInTurn)
      if (lag > 0) {
        // It is waited for as it is. But an answer that is under way may say that nothing more is there.
        if (isOld) this.doubt(buffer)
      } else if (isOld || (this.#unknown.has(buffer) && (at !== undefined || span !== undefined))) {
        const others = doubtful.get(task)
        if (others) others.push(buffer)
        else doubtful.set(task, [buffer])
      }
    }
    return doubtful
  }

  async #ask(buffers: readonly PartitionBuffer[]): Promise<void> {
    if (buffers.length === 0) return
    const tasks = new Set(buffers.map(({ task }) => task as string))
    for (const task of tasks) this.#asking.add(task)
    for (const buffer of buffers) {
      this.#unknown.add(buffer)
      this.#events.evidence(buffer, undefined)
    }
    const askedAt = this.#o.clock.monotonic()
    const ends = await this.#endsOf(buffers)
    for (const task of tasks) this.#asking.delete(task)
    if (this.#closed) return
    for (const buffer of buffers) {
      const end = ends.get(keyOf(buffer))
      if (end === undefined) this.#wereAsked.add(buffer)
      else this.#wereAsked.delete(buffer)
      // Those that have gone meanwhile are forgotten.
      if (end === undefined || !this.#unknown.delete(buffer)) continue
      buffer.endsAtLeast(end, this.#o.clock.monotonic())
      this.#events.evidence(buffer, buffer.lag, askedAt)
    }
    this.#events.released()
  }

  /** Without those of which nobody said it. They are asked for again once they are fetched, or something comes that needs them. */
  async #endsOf(buffers: readonly PartitionBuffer[]): Promise<ReadonlyMap<PartitionKey, number>> {
    const { broker, clock, timers, isolation } = this.#o
    const began = clock.monotonic()
    const places = buffers.map(({ topic, partition }) => ({ topic, partition }))
    const asking = broker.listOffsets(places, isolation === 'read_committed' ? 'stable' : 'latest')
    const known = asking.catch((error: unknown) => {
      // The fetch of these partitions tells of it.
      if (!(error instanceof BrokerError)) this.#events.failed(error)
      return []
    })
    const ends = await within(timers, this.#patienceMs, known)
    const now = clock.monotonic()
    if (now - began >= slowMs) this.#slowUntil = now + slowForMs
    if (ends === undefined) this.#patienceMs = Math.min(longestPatienceMs, this.#patienceMs * 2)
    return new Map(ends?.map((at) => [keyOf(at), at.offset]))
  }
}

const keyOf = ({ topic, partition }: TopicPartition): PartitionKey => partitionKey(topic, partition)

/** Of each task the first and the last partition that brought something. */
function spansOf(taken: readonly PartitionBuffer[], arrived: readonly number[]): Map<string, Span> {
  const spans = new Map<string, Span>()
  for (const at of arrived) {
    const { task } = taken[at] as PartitionBuffer
    if (task === undefined) continue
    const span = spans.get(task)
    if (span) span.last = at
    else spans.set(task, { first: at, last: at })
  }
  return spans
}

/** Whether what an answer says of a partition may be older than what it brought of another one of the same task. */
function isOlder(at: number | undefined, { first, last }: Span, isApart: boolean, readsInTurn: boolean): boolean {
  if (at === undefined) return true
  if (isApart) return first !== at || last !== at
  return readsInTurn && at < last
}

/** What `promised` comes to within this time; undefined if it does not. */
export async function within<T>(timers: Timers, atMostMs: number, promised: Promise<T>): Promise<T | undefined> {
  let cancel: (() => void) | undefined
  const over = new Promise<undefined>((resolve) => {
    cancel = timers.after(atMostMs, () => resolve(undefined))
  })
  try {
    return await Promise.race([promised, over])
  } finally {
    cancel?.()
  }
}
