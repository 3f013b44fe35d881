/** Aggregates in tumbling, hopping and unlimited windows. */
import type { Serde } from '../../serde/serde.ts'
import type { ValueAndTimestamp, Window, Windowed, WindowsOfStart, WindowStore } from '../../state/contract.ts'
import type { SpecOf, WindowSpec } from '../../topology/operator-spec.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { type Emission, toldAt } from '../emission.ts'
import {
  type CallGate,
  Change,
  type Downstream,
  forward,
  isPromise,
  type Maybe,
  type Origin,
  Rec,
} from '../contract.ts'
import type { OperatorEnv } from '../node-operator.ts'
import type { PendingWindow } from './pending-windows.ts'
import { forEachCall, isChangeable } from '../rows.ts'
import { WindowOperator } from './window-operator.ts'

type Store = WindowStore<unknown, unknown> & {
  windowsOf?(windowStart: number): WindowsOfStart | undefined
}

type Row = ValueAndTimestamp<unknown>

type Fixed = Extract<WindowSpec, { type: 'time' | 'unlimited' }>

/** Starts of the windows that a timestamp falls into, ascending. No window begins below 0. */
export function windowStarts(window: Fixed, timestamp: number): number[] {
  if (window.type === 'unlimited') return timestamp >= window.startMs ? [window.startMs] : []
  const { sizeMs, advanceMs } = window
  const starts: number[] = []
  let start = Math.floor(Math.max(0, timestamp - sizeMs + advanceMs) / advanceMs) * advanceMs
  for (; start <= timestamp; start += advanceMs) starts.push(start)
  return starts
}

export class TimeWindowOperator extends WindowOperator {
  readonly #window: Fixed
  readonly #size: number
  readonly #grace: number
  readonly #tumbling: boolean
  readonly #store: Store
  readonly #emission: Emission | undefined
  /** Start of the windows that were last noted as still to close. */
  #expected = Number.NaN

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'windowAggregate'>, keySerde: Serde<unknown>) {
    super(env, children, spec, keySerde)
    this.#window = spec.window as Fixed
    this.#size = this.#window.type === 'time' ? this.#window.sizeMs : Number.POSITIVE_INFINITY
    this.#grace = this.#window.type === 'time' ? this.#window.graceMs : 0
    this.#tumbling = this.#window.type === 'time' && this.#window.sizeMs === this.#window.advanceMs
    this.#store = env.context.store(spec.store?.name ?? '') as Store
    this.#emission = this.emissionOf(env, spec, ({ key, start }) => this.#windowed(key, start))
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (rec.key === null || rec.key === undefined) return this.drop(rec, 'null_key')
    const closing = this.closeFor(rec)
    return closing === undefined ? this.#add(rec) : this.#addBehind(closing, rec)
  }

  #addBehind(closing: Promise<void>, rec: Rec): Maybe {
    return closing.then(() => this.#add(rec))
  }

  #add(rec: Rec): Maybe {
    const now = this.now(rec)
    if (this.#tumbling) {
      const start = rec.timestamp - (rec.timestamp % this.#size)
      if (this.#closesAt(start) <= now) return this.drop(rec, 'late')
      return this.#update(start, rec)
    }
    const all = windowStarts(this.#window, rec.timestamp)
    const starts = all.filter((start) => this.#closesAt(start) > now)
    if (starts.length === 0) return this.drop(rec, 'late')
    if (starts.length < all.length) this.drop(rec, 'late_window')
    return this.#updateAll(starts, rec)
  }

  #updateAll(starts: readonly number[], rec: Rec): Maybe {
    return this.inTurn(starts, (start) => this.#update(start, rec))
  }

  #closesAt(start: number): number {
    return start + this.#size + this.#grace
  }

  #update(start: number, rec: Rec): Maybe {
    const { init, fold } = this.spec
    const row = this.#store.fetch(rec.key, start)
    const old = row === undefined ? (init?.() ?? null) : row.value
    this.atWork()
    const isFirst = init === undefined && (old === null || old === undefined)
    if (this.gate !== undefined && !isFirst) return this.#inItsTurn(this.gate, start, row, old, rec)
    const aggregate = isFirst ? rec.value : fold(old, rec.value, rec.key, rec)
    if (isPromise(aggregate)) return this.#putLater(aggregate, start, row, rec)
    return this.#put(start, row, aggregate, rec)
  }

  // Apart, so that no scope is made for the closures where the function answers at once.

  #inItsTurn(gate: CallGate, start: number, row: Row | undefined, old: unknown, rec: Rec): Maybe {
    const { init, fold } = this.spec
    const stored = (): unknown => this.#store.fetch(rec.key, start)?.value ?? init?.() ?? null
    const before = forEachCall(old, stored)
    const folded = gate.run(rec.origin, () => fold(before(), rec.value, rec.key, rec))
    return this.#putLater(folded, start, row, rec)
  }

  #putLater(aggregate: PromiseLike<unknown>, start: number, row: Row | undefined, rec: Rec): Maybe {
    return this.later(aggregate, rec, (value) => this.#put(start, row, value, rec))
  }

  #put(start: number, row: ValueAndTimestamp<unknown> | undefined, aggregate: unknown, rec: Rec): Maybe {
    const timestamp = row === undefined ? rec.timestamp : Math.max(rec.timestamp, row.timestamp)
    const tellsOld = this.spec.sendOldValues && this.pending === undefined && row !== undefined
    // The fold may have changed the object that was read.
    const stored = tellsOld && isChangeable(row.value) ? this.#store.fetch(rec.key, start) : row
    this.#store.put(rec.key, aggregate, start, timestamp)
    if (this.pending) {
      if (this.isRead) this.putUntold(this.#windowed(rec.key, start), rec)
      if (!this.#tumbling) this.expect(this.#windowed(rec.key, start), this.#closesAt(start))
      else if (start !== this.#expected) {
        this.#expected = start
        this.expect(this.#windowed(undefined, start), this.#closesAt(start))
      }
      return
    }
    const { key, headers } = rec
    if (this.#emission?.notes(key, start, 0, aggregate, toldAt(rec, aggregate, timestamp), headers)) return
    const window = this.#windowed(rec.key, start)
    const change = new Change(aggregate ?? null, this.spec.sendOldValues ? (stored?.value ?? null) : null)
    return forward(this.children, new Rec(window, change, timestamp, headers, rec.origin, undefined, undefined))
  }

  #windowed(key: unknown, start: number): Windowed<unknown> & Window {
    const end = this.#window.type === 'unlimited' ? Number.MAX_SAFE_INTEGER : start + this.#size
    return { key, start, end }
  }

  /** Tumbling windows of one start close together, and the store has them side by side. */
  protected override get namesKeys(): boolean {
    const { window } = this.spec
    return !(window.type === 'time' && window.sizeMs === window.advanceMs)
  }

  protected *kept(): Iterable<readonly [PendingWindow, number]> {
    for (const [key, start] of this.#store.all()) {
      yield [this.#windowed(this.namesKeys ? key : undefined, start), this.#closesAt(start)]
    }
  }

  protected override tellFinal(window: PendingWindow, origin: Origin, headers: Headers): Maybe {
    if (!this.#tumbling) return super.tellFinal(window, origin, headers)
    const rows = this.#store.windowsOf?.(window.start)
    if (rows !== undefined) return this.#tellAll(rows, window, origin, headers)
    return this.#tellEach(this.#store.fetchAll(window.start, window.start), window, origin, headers)
  }

  #tellAll(rows: WindowsOfStart, { start, end }: PendingWindow, origin: Origin, headers: Headers): Maybe {
    while (rows.next()) {
      const window = { key: rows.key, start, end }
      const pending = this.tellRow(window, rows, origin, headers)
      if (pending !== undefined) return pending.then(() => this.#tellAll(rows, window, origin, headers))
    }
  }

  #tellEach(rows: ReturnType<Store['fetchAll']>, { end }: PendingWindow, origin: Origin, headers: Headers): Maybe {
    for (let next = rows.next(); !next.done; next = rows.next()) {
      const [key, start, row] = next.value
      const window = { key, start, end }
      const pending = this.tellRow(window, row, origin, headers)
      if (pending !== undefined) return pending.then(() => this.#tellEach(rows, window, origin, headers))
    }
  }

  protected final(window: PendingWindow): ValueAndTimestamp<unknown> | undefined {
    return this.#store.fetch(window.key, window.start)
  }
}
