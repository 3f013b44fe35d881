/** Holds updates of a table back: until the row's window closes, or for a time. */
import { EngineError } from '../base/errors.ts'
import type { Serde } from '../serde/serde.ts'
import type { KeyValueStore, Windowed } from '../state/contract.ts'
import type { Suppressed } from '../topology/serdes/internal-serdes.ts'
import type { SpecOf } from '../topology/operator-spec.ts'
import { Change, type Downstream, forward, type Maybe, type Origin, Rec } from './contract.ts'
import { heldBackOrigin, NodeOperator, type OperatorEnv } from './node-operator.ts'
import { QuietInput } from './quiet/quiet-input.ts'
import { SortedList } from '../state/rows/sorted-list.ts'
import { bytesText, byText } from './text-order.ts'

interface Place {
  readonly time: number
  /** The key's bytes; where two times are equal they decide. */
  readonly text: string
  readonly key: unknown
}

const progressKey = 'closed'

export class SuppressOperator extends NodeOperator {
  readonly #spec: SpecOf<'suppress'>
  readonly #store: KeyValueStore<unknown, Suppressed>
  readonly #keySerde: Serde<unknown>
  readonly #places = new SortedList<Place>((a, b) => a.time - b.time || byText(a.text, b.text))
  readonly #delay: number
  readonly #quiet: QuietInput | undefined
  /**
   * How far quiet has let out: no further start is to take in what comes for those windows. What goes by the watermark alone
   * needs no such note, for no record comes behind it.
   */
  readonly #progress: KeyValueStore<unknown, unknown> | undefined
  #letOut = Number.NEGATIVE_INFINITY
  /** Rows on their way through asynchronous functions below, by the text of their keys. */
  readonly #passing = new Map<string, Promise<void>>()

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'suppress'>, keySerde: Serde<unknown>) {
    super(env, children)
    this.#spec = spec
    this.#keySerde = keySerde
    this.#store = env.context.store(spec.store) as KeyValueStore<unknown, Suppressed>
    const { until } = spec
    if (until.type === 'timeLimit') {
      this.#delay = until.ms
      return
    }
    // Kafka Streams lets go one instant before the last record of such a window may come, and then once more.
    this.#delay = until.graceMs + (until.inclusiveEnd && !env.context.operatorTime ? 1 : 0)
    if (until.closeAfterIdleMs === undefined) return
    this.#quiet = new QuietInput(this, env.context, until.closeAfterIdleMs, until.waitMs)
    this.#progress = env.context.store(env.node.hiddenStores[0] as string) as KeyValueStore<unknown, unknown>
  }

  init(): void {
    const kept = this.#progress?.get(progressKey)
    if (typeof kept === 'number') this.#letOut = kept
    let newest = Number.NEGATIVE_INFINITY
    for (const [key, row] of this.#store.all()) {
      this.#places.add(this.#place(row.time, key))
      newest = Math.max(newest, row.timestamp)
    }
    if (newest !== Number.NEGATIVE_INFINITY) this.#quiet?.begins(newest)
    this.#wake()
  }

  process(rec: Rec): Maybe {
    this.enter()
    const passing = this.#passing.size === 0 ? undefined : this.#passing.get(this.#textOf(rec.key))
    return passing === undefined ? this.#take(rec) : passing.then(() => this.#take(rec))
  }

  #take(rec: Rec): Maybe {
    if (this.#quiet && this.#told(rec)) return this.drop(rec, 'late')
    this.#quiet?.arrived(this.timeAt(rec), rec.timestamp)
    this.#hold(rec)
    const before = this.#letOut
    const due = this.#due(this.settledAt(rec))
    const early = this.#overflow()
    this.#wake()
    if (due.length === 0 && early.length === 0) return
    return this.#release([...due, ...early], heldBackOrigin(rec.origin, before))
  }

  onWatermark(watermark: number): Maybe {
    return this.#letOutUpTo(watermark, this.#letOut)
  }

  onWallClock(nowMs: number): Maybe {
    const time = this.#quiet?.timeAt(nowMs)
    if (time === undefined) return
    const before = this.#letOut
    if (this.#isDue(this.#places.first, time)) this.#progress?.put(progressKey, Math.max(before, time))
    const released = this.#letOutUpTo(time, before)
    this.#quiet?.waitsFor((this.#places.first?.time ?? Number.POSITIVE_INFINITY) + this.#delay, time, nowMs)
    return released
  }

  heldFrom(): number {
    const { first } = this.#places
    if (first === undefined) return Number.POSITIVE_INFINITY
    return this.#spec.until.type === 'windowCloses' ? (first.key as Windowed<unknown>).start : first.time
  }

  /** Its window's final result went out while the input was quiet. */
  #told(rec: Rec): boolean {
    return (rec.key as Windowed<unknown>).end + this.#delay <= this.#letOut && rec.origin.watermark < this.#letOut
  }

  #place(time: number, key: unknown): Place {
    return { time, text: this.#textOf(key), key }
  }

  #textOf(key: unknown): string {
    return bytesText(this.#keySerde.serialize(key))
  }

  #hold(rec: Rec): void {
    const change = rec.value as Change
    const held = this.#store.get(rec.key)
    const time =
      held?.time ?? (this.#spec.until.type === 'windowCloses' ? (rec.key as Windowed<unknown>).end : rec.timestamp)
    const newValue = change.newValue ?? null
    const oldValue = change.oldValue ?? null
    const priorValue = held ? held.priorValue : oldValue
    const { timestamp, headers } = rec
    const oldTimestamp = Math.max(change.oldTimestamp ?? 0, held?.oldTimestamp ?? 0)
    this.#store.put(rec.key, { time, oldTimestamp, timestamp, headers, newValue, oldValue, priorValue })
    if (!held) this.#places.add(this.#place(time, rec.key))
  }

  #letOutUpTo(time: number, before: number): Maybe {
    const due = this.#due(time)
    this.#wake()
    return this.#release(due, this.timerOrigin(before))
  }

  #due(watermark: number): Place[] {
    if (watermark > this.#letOut) this.#letOut = watermark
    return this.#places.takeWhile((place) => this.#isDue(place, watermark))
  }

  #isDue(place: Place | undefined, watermark: number): boolean {
    return place !== undefined && place.time + this.#delay <= watermark
  }

  #overflow(): Place[] {
    const { maxRecords, whenFull } = this.#spec
    if (maxRecords === undefined || this.#places.size <= maxRecords) return []
    if (whenFull === 'fail') {
      throw new EngineError(
        'PROCESSING_FAILED',
        `${this.name} holds back ${this.#places.size} rows, more than its maxRecords of ${maxRecords}; raise it, or shorten the windows.`,
        { node: this.name },
      )
    }
    let excess = this.#places.size - maxRecords
    return this.#places.takeWhile(() => excess-- > 0)
  }

  #release(places: readonly Place[], origin: Origin): Maybe {
    return this.inTurn(places, (place) => {
      const row = this.#store.get(place.key)
      if (row === undefined) return
      // A window that ended as a deletion never had a final result.
      if (row.newValue === null && this.#spec.until.type === 'windowCloses') {
        this.#store.delete(place.key)
        return
      }
      const change = new Change(row.newValue, this.#spec.sendOldValues ? row.oldValue : null, true, row.oldTimestamp)
      const rec = new Rec(place.key, change, row.timestamp, row.headers, origin, undefined, undefined)
      // The row counts as held back until it has passed on: a table joined with itself finds the value before it.
      const passing = forward(this.children, rec)
      if (passing !== undefined) return this.#passes(place, passing)
      this.#store.delete(place.key)
    })
  }

  /** It was let out by a record of another key, or by time: those of its own key wait here meanwhile. */
  #passes({ key, text }: Place, passing: Promise<void>): Promise<void> {
    const passed = passing.then(() => {
      this.#store.delete(key)
      this.#passing.delete(text)
    })
    this.#passing.set(text, passed)
    return passed
  }

  #wake(): void {
    const first = this.#places.first
    if (first) this.wakeAt(first.time + this.#delay)
  }
}
