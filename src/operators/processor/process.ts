/** The user's own processors: their context, schedules and timers. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { tryParseDuration } from '../../base/duration.ts'
import { EngineError } from '../../base/errors.ts'
import { loggerOf, silentLog } from '../../base/logger.ts'
import { readInt64, writeInt64 } from '../../serde/primitive.ts'
import type { Serde } from '../../serde/serde.ts'
import type { AnyStore, KeyValueStore, StoreSpec } from '../../state/contract.ts'
import { asOf, type ReaderTime } from '../../state/stores/as-of.ts'
import type { RecordView, SpecOf } from '../../topology/operator-spec.ts'
import { type Headers, headersFault } from '../../broker/wire/headers.ts'
import { type Downstream, forward, isPromise, type Maybe, type Origin, Rec } from '../contract.ts'
import {
  firedAt,
  nextInstant,
  NodeOperator,
  type OperatorEnv,
  processingFailed,
  timeOf,
  whereOf,
} from '../node-operator.ts'
import { SortedList } from '../../state/rows/sorted-list.ts'
import { bytesText, byText } from '../text-order.ts'
import { Turns } from './turns.ts'

type Answer = void | Promise<void>

interface UserProcessor {
  process(value: unknown, key: unknown, record: RecordView): Answer
  onTimer?(key: unknown, atMs: number): Answer
  close?(): void
}

interface Schedule {
  readonly intervalMs: number
  readonly clock: 'event-time' | 'wall-clock'
  readonly run: (atMs: number) => Answer
  due: number
  cancelled: boolean
}

interface KeyTimer {
  readonly at: number
  /** The instant at which it fires: `at`, or the first one behind that at which it was asked for. */
  readonly due: number
  readonly text: string
  readonly key: unknown
}

const inOrder = (a: KeyTimer, b: KeyTimer): number => a.at - b.at || byText(a.text, b.text)

const noHeaders: Headers = []
const nothing = (): undefined => undefined

/** A timer that is firing: what it forwards is as of its time. */
class Firing {
  readonly key: unknown
  readonly time: number
  readonly origin: Origin

  constructor(key: unknown, time: number, origin: Origin) {
    this.key = key
    this.time = time
    this.origin = origin
  }
}

export class ProcessOperator extends NodeOperator {
  readonly #spec: SpecOf<'process'>
  readonly #schedules: Schedule[] = []
  readonly #timers = new SortedList<KeyTimer>((a, b) => a.due - b.due || inOrder(a, b))
  /** Those of them that were asked for when their time had passed. The store keeps no more than that time: a start begins behind it. */
  readonly #overdue = new Map<string, KeyTimer>()
  readonly #allowed: ReadonlySet<string>
  readonly #specOf: (store: string) => StoreSpec
  /** Stores as the function sees them. */
  readonly #seen = new Map<string, AnyStore>()
  readonly #readerTime: ReaderTime = {
    before: () => this.#now()?.origin.at ?? Number.NEGATIVE_INFINITY,
    current: () => {
      const at = this.#now()
      return at instanceof Rec ? timeOf(at) : at && firedAt(at.origin)
    },
  }
  #processor: UserProcessor | undefined
  /**
   * The record or timer that functions were called for. A synchronous function has it here; one that awaits carries it
   * along in `#behindAwaits`, because other records may be under way meanwhile. That costs time, so it begins with the
   * first promise; the call that gave it has its cause in `#first`.
   */
  #cause: Rec | Firing | undefined
  #first: Rec | Firing | undefined
  #behindAwaits: AsyncLocalStorage<Rec | Firing> | undefined
  #lastWatermark = Number.NEGATIVE_INFINITY
  /**
   * Keeps schedules apart from `process`. Only where a promise was given may one meet the other: as long as there was none,
   * no record asks for its turn.
   */
  readonly #turns = new Turns()
  #isClosed = false

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'process'>, specOf: (store: string) => StoreSpec) {
    super(env, children)
    this.#spec = spec
    this.#specOf = specOf
    this.#allowed = new Set([...spec.stores, ...spec.globalStores])
  }

  init(): void {
    const made = this.#spec.factory(this.#context() as never)
    this.#processor = (typeof made === 'function' ? { process: made } : made) as UserProcessor
    if (typeof this.#processor?.process !== 'function') {
      throw new EngineError(
        'TOPOLOGY_INVALID',
        `The factory of ${this.name} must answer a function or an object with a function named "process".`,
      )
    }
    const store = this.#timerStore()
    if (store) for (const [key, at] of store.all()) this.#timers.add(this.#timer(key, readInt64(at, 0)))
    this.#wake()
  }

  process(rec: Rec): Maybe {
    this.enter()
    const processor = this.#processor as UserProcessor
    if (this.gate !== undefined) {
      this.#behindAwaits ??= new AsyncLocalStorage()
      const done = this.gate.run(rec.origin, () => this.#gated(rec))
      return this.later(done, rec, nothing, this.#turns)
    }
    if (this.#behindAwaits) return this.#beside(rec, this.#behindAwaits)
    this.#cause = rec
    const done = processor.process(rec.value, rec.key, rec)
    this.#cause = undefined
    if (!isPromise(done)) return
    this.#turns.entered()
    return this.#firstPromise(done, rec, rec)
  }

  /** Other calls may be under way. */
  #beside(rec: Rec, behind: AsyncLocalStorage<Rec | Firing>): Maybe {
    const { opened } = this.#turns
    if (opened !== undefined) {
      // By the time the callback comes back the task may have left the lane.
      return this.later(opened, rec, () => (this.#isClosed ? undefined : this.#beside(rec, behind)))
    }
    const processor = this.#processor as UserProcessor
    const done = behind.run(rec, () => processor.process(rec.value, rec.key, rec))
    if (!isPromise(done)) return
    this.#turns.entered()
    return this.later(done, rec, nothing, this.#turns)
  }

  /** It is the record's turn among the calls, which are bounded. One that waits there for its turn is not under way. */
  #gated(rec: Rec): unknown {
    const { opened } = this.#turns
    if (opened !== undefined) return opened.then(() => this.#gated(rec))
    this.#turns.entered()
    if (this.#isClosed) return
    const processor = this.#processor as UserProcessor
    return this.#behindAwaits?.run(rec, () => processor.process(rec.value, rec.key, rec))
  }

  onWatermark(watermark: number): Maybe {
    const before = this.#lastWatermark
    this.#lastWatermark = watermark
    const origin = this.timerOrigin(before)
    const timers = this.#timers.takeWhile((timer) => timer.due <= watermark)
    if (this.#overdue.size > 0) for (const { text } of timers) this.#overdue.delete(text)
    // Of what a start has found, and of tasks that keep no order, some may have been due before.
    timers.sort(inOrder)
    return this.#afterwards(this.inTurn(timers, (timer) => this.#fireTimer(timer, origin)))
  }

  /** However far the watermark has come at once, a schedule fires once. */
  onAdvanced(watermark: number): Maybe {
    const origin = this.timerOrigin(this.#lastWatermark)
    this.#lastWatermark = watermark
    return this.#afterwards(this.#fireSchedules('event-time', watermark, origin))
  }

  onWallClock(nowMs: number): Maybe {
    const origin = this.timerOrigin(this.context.streamTime())
    return this.#afterwards(this.#fireSchedules('wall-clock', nowMs, origin))
  }

  close(): void {
    this.#isClosed = true
    this.#processor?.close?.()
  }

  #afterwards(pending: Maybe): Maybe {
    if (pending !== undefined) return pending.then(() => this.#wake())
    this.#wake()
  }

  #fireTimer(timer: KeyTimer, origin: Origin): Maybe {
    const store = this.#needTimers()
    const kept = store.get(timer.key)
    // One that was due at the same time has cancelled or moved it.
    if (kept === undefined || readInt64(kept, 0) !== timer.at) return
    store.delete(timer.key)
    return this.#run(new Firing(timer.key, timer.at, origin), () => this.#processor?.onTimer?.(timer.key, timer.at))
  }

  #fireSchedules(clock: Schedule['clock'], now: number, origin: Origin): Maybe {
    const due = this.#schedules.filter(
      (schedule) => schedule.clock === clock && !schedule.cancelled && schedule.due <= now,
    )
    if (due.length === 0) return
    const fire = (schedule: Schedule): Maybe => {
      // By one that was due at the same time, or by a call that it waited for; meanwhile the task may have left the lane.
      if (schedule.cancelled || this.#isClosed) return
      schedule.due += (Math.floor((now - schedule.due) / schedule.intervalMs) + 1) * schedule.intervalMs
      return this.#run(new Firing(undefined, now, origin), () => schedule.run(now))
    }
    return this.#turns.alone(() => this.inTurn(due, fire))
  }

  #run(firing: Firing, fn: () => Answer | undefined): Maybe {
    let done: Answer | undefined
    this.atWork()
    try {
      if (this.#behindAwaits) {
        done = this.#behindAwaits.run(firing, fn)
      } else {
        this.#cause = firing
        done = fn()
        this.#cause = undefined
      }
    } catch (error) {
      throw processingFailed(error, this.name, undefined)
    }
    if (!isPromise(done)) return
    return this.#behindAwaits ? this.later(done, undefined, nothing) : this.#firstPromise(done, firing, undefined)
  }

  heldFrom(): number {
    let from = this.#timers.first?.due ?? Number.POSITIVE_INFINITY
    for (const { at } of this.#overdue.values()) from = Math.min(from, at)
    return from
  }

  #wake(): void {
    const first = this.#timers.first
    if (first) this.context.wakeAt(this, first.due)
    for (const schedule of this.#schedules) {
      if (schedule.cancelled) continue
      if (schedule.clock === 'event-time') this.context.wakeAfter(this, schedule.due)
      else this.context.wakeAtWallClock(this, schedule.due)
    }
  }

  #timerStore(): KeyValueStore<unknown, Uint8Array> | undefined {
    const { timerStore } = this.#spec
    return timerStore === undefined ? undefined : (this.context.store(timerStore) as KeyValueStore<unknown, Uint8Array>)
  }

  #timer(key: unknown, at: number, from = at): KeyTimer {
    const text = typeof key === 'string' ? key : bytesText(this.#timerKeys.serialize(key))
    return { at, due: Math.max(at, from), key, text }
  }

  /**
   * The first instant at which what is asked for now may fire. It follows from the record or the timer at hand: how far the
   * task was advanced when it came depends on the functions that others wait for.
   */
  #nextInstant(): number {
    const at = this.#now()
    if (at === undefined) return Number.NEGATIVE_INFINITY
    return at instanceof Rec ? nextInstant(at.origin) : at.origin.at + 1
  }

  get #timerKeys(): Serde<unknown> {
    return this.#specOf(this.#spec.timerStore as string).keySerde
  }

  #setTimer(key: unknown, atMs: number): void {
    if (!(Math.abs(atMs) <= Number.MAX_SAFE_INTEGER))
      throw new EngineError(
        'PROCESSING_FAILED',
        `${this.name} sets a timer for ${String(atMs)}; give milliseconds since 1970. Where it is not to fire, set none.`,
      )
    const at = Math.max(0, Math.round(atMs))
    this.#deleteTimer(key)
    const bytes = new Uint8Array(8)
    writeInt64(bytes, 0, at)
    this.#needTimers().put(key, bytes)
    const timer = this.#timer(key, at, this.#nextInstant())
    if (timer.due > at) this.#overdue.set(timer.text, timer)
    this.#timers.add(timer)
    this.#wake()
  }

  #deleteTimer(key: unknown): void {
    const kept = this.#needTimers().delete(key)
    if (!kept) return
    const timer = this.#timer(key, readInt64(kept, 0))
    this.#timers.remove(this.#overdue.get(timer.text) ?? timer)
    this.#overdue.delete(timer.text)
  }

  #needTimers(): KeyValueStore<unknown, Uint8Array> {
    const store = this.#timerStore()
    if (!store)
      throw new EngineError('TOPOLOGY_INVALID', `${this.name} uses timers by key; give it the option { timers: true }.`)
    return store
  }

  #store(which: string | { readonly name: string } | null | undefined): AnyStore {
    const name = typeof which === 'string' ? which : String(which?.name)
    const seen = this.#seen.get(name)
    if (seen !== undefined) return seen
    if (this.#allowed.has(name)) return this.#open(name)
    throw new EngineError(
      'TOPOLOGY_INVALID',
      `${this.name} uses the store ${name}, which its options do not name; add it to { stores: […] }.`,
    )
  }

  #open(name: string): AnyStore {
    const store = this.context.store(name)
    // By times of their own, stores forget by what was put alone: that is what Kafka Streams does.
    const isPlain = this.context.operatorTime || !this.#spec.stores.includes(name)
    const seen = isPlain ? store : asOf(store, this.#specOf(name), this.#readerTime)
    this.#seen.set(name, seen)
    return seen
  }

  /** How far event time had come for the record at hand, however far it has come beside it. */
  #streamTime(): number {
    const at = this.#now()
    return at instanceof Rec && at.origin.topic !== '' ? at.origin.watermark : this.context.streamTime()
  }

  #schedule(interval: unknown, clock: Schedule['clock'], run: Schedule['run']): { cancel(): void } {
    const intervalMs = tryParseDuration(interval)
    if (intervalMs === undefined || intervalMs === 0) {
      throw new EngineError(
        'TOPOLOGY_INVALID',
        `${this.name} schedules every ${JSON.stringify(interval)}; give a duration of at least one millisecond.`,
      )
    }
    if (clock !== 'event-time' && clock !== 'wall-clock') {
      throw new EngineError(
        'TOPOLOGY_INVALID',
        `${this.name} schedules by the clock ${JSON.stringify(clock)}, which there is not; give 'event-time' or 'wall-clock'.`,
      )
    }
    const due = clock === 'event-time' ? 0 : this.context.wallClock() + intervalMs
    const schedule: Schedule = { intervalMs, clock, run, due, cancelled: false }
    this.#schedules.push(schedule)
    this.#wake()
    return {
      cancel: () => {
        schedule.cancelled = true
        const at = this.#schedules.indexOf(schedule)
        if (at >= 0) this.#schedules.splice(at, 1)
      },
    }
  }

  /** From now on causes are carried behind awaits. */
  async #firstPromise(promise: PromiseLike<void>, cause: Rec | Firing, rec: Rec | undefined): Promise<void> {
    this.#behindAwaits = new AsyncLocalStorage()
    this.#first = cause
    try {
      await this.later(promise, rec, nothing, rec && this.#turns)
    } finally {
      this.#first = undefined
    }
  }

  #now(): Rec | Firing | undefined {
    return this.#cause ?? this.#behindAwaits?.getStore() ?? this.#first
  }

  /** Sends a record on, as of the record or timer at hand. */
  #forward(key: unknown, value: unknown, options: { timestamp?: number; headers?: Headers } | undefined): Maybe {
    const at = this.#now()
    const given = this.#wholeTime(options?.timestamp)
    const fault = options?.headers === undefined ? undefined : headersFault(options.headers)
    if (fault !== undefined)
      throw new EngineError('PROCESSING_FAILED', `${this.name} forwards a record with headers that are none: ${fault}.`)
    if (at instanceof Rec) {
      const timestamp = given ?? at.timestamp
      const keyRange = at.key === key ? at.keyRange : undefined
      return forward(
        this.children,
        new Rec(key, value, timestamp, options?.headers ?? at.headers, at.origin, keyRange, undefined),
      )
    }
    const origin = at?.origin ?? this.timerOrigin(this.#lastWatermark)
    const timestamp = given ?? at?.time ?? Math.max(0, this.context.streamTime())
    return forward(
      this.children,
      new Rec(key, value, timestamp, options?.headers ?? noHeaders, origin, undefined, undefined),
    )
  }

  /** A fraction would be one time for operators and another one once it was written to a topic or a store. */
  #wholeTime(timestamp: number | undefined): number | undefined {
    if (timestamp === undefined || timestamp === null) return undefined
    if (timestamp >= 0 && timestamp < Number.POSITIVE_INFINITY) return Math.floor(timestamp)
    throw new EngineError(
      'PROCESSING_FAILED',
      `${this.name} forwards a record with the timestamp ${timestamp}; give milliseconds since 1970.`,
    )
  }

  #context(): unknown {
    const { context } = this
    return {
      logger: loggerOf(context.log ?? silentLog, () => whereOf(this.name, this.#now()?.origin)),
      applicationId: context.applicationId,
      partition: context.partition,
      store: (which: string | { readonly name: string }) => this.#store(which),
      schedule: (interval: unknown, clock: Schedule['clock'], run: Schedule['run']) =>
        this.#schedule(interval, clock, run),
      timers: {
        set: (key: unknown, at: number) => this.#setTimer(key, at),
        delete: (key: unknown) => this.#deleteTimer(key),
        get: (key: unknown) => {
          const kept = this.#needTimers().get(key)
          return kept && readInt64(kept, 0)
        },
      },
      streamTime: () => this.#streamTime(),
      wallClock: () => context.wallClock(),
      requestCommit: () => context.requestCommit(),
      fencingToken: () => context.fencingToken?.() ?? 0,
      forward: this.#spec.fixedKey
        ? (value: unknown, options?: { timestamp?: number; headers?: Headers }) =>
            this.#forward(this.#now()?.key, value, options)
        : (key: unknown, value: unknown, options?: { timestamp?: number; headers?: Headers }) =>
            this.#forward(key, value, options),
    }
  }
}
