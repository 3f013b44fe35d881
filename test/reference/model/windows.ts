/** Aggregates: of all records of a key, and of those in windows and sessions. */
import { canonical, type Json } from '../../../conformance/expr.ts'
import type { WindowNode } from '../../../conformance/scenario.ts'
import { always, byText, never, type Rec, type Row, Rows, Unsupported, type Vertex, type World } from './parts.ts'
import { TableVertex } from './tables.ts'

/** Without `init` the first value is the first aggregate. */
export interface Fold {
  readonly init: (() => Json) | undefined
  readonly fold: (aggregate: Json, value: Json, key: Json) => Json
  readonly merge: (left: Json, right: Json, key: Json) => Json
}

const folded = ({ init, fold }: Fold, before: Json, rec: Rec): Json => {
  const value = (rec.value ?? null) as Json
  return init === undefined && before === null ? value : fold(before, value, rec.key)
}

abstract class AggregateVertex extends TableVertex {
  readonly fold: Fold

  constructor(world: World, parent: Vertex, fold: Fold) {
    super(world, [parent])
    this.fold = fold
  }

  sendOld(): boolean {
    this.sendsOld = true
    return true
  }
}

/** One aggregate a key. `rows` is shared by the members of a cogroup. */
export class Aggregate extends AggregateVertex {
  readonly #rows: Rows

  constructor(world: World, parent: Vertex, fold: Fold, rows = new Rows()) {
    super(world, parent, fold)
    this.#rows = rows
  }

  row(key: Json): Row | undefined {
    return this.#rows.get(key)
  }

  take(rec: Rec): void {
    if (rec.key === null || rec.value === null) return
    const row = this.#rows.get(rec.key)
    const at = Math.max(rec.at, row?.at ?? rec.at)
    const now = folded(this.fold, row === undefined ? (this.fold.init?.() ?? null) : row.value, rec)
    this.#rows.put(rec.key, now, at)
    this.tell(rec, now, this.sendsOld ? (row?.value ?? null) : null, at)
  }
}

interface Span {
  readonly key: Json
  readonly start: number
  readonly end: number
}

/** What all windows share: rows by key and span, and final results in the order in which they fall due. */
abstract class Windows extends AggregateVertex {
  protected readonly rows: Map<string, Row & { span: Span }>
  protected readonly onClose: boolean
  protected closedUpTo = always
  readonly #open = new Map<string, { span: Span; closesAt: number }>()

  constructor(
    world: World,
    parent: Vertex,
    fold: Fold,
    onClose: boolean,
    rows = new Map<string, Row & { span: Span }>(),
  ) {
    super(world, parent, fold)
    this.onClose = onClose
    this.rows = rows
  }

  protected abstract closesAt(span: Span): number

  row(key: Json): Row | undefined {
    return this.rows.get(canonical(key))
  }

  protected now(rec: Rec): number {
    return Math.max(rec.watermark, this.closedUpTo)
  }

  protected put(rec: Rec, span: Span, value: Json, at: number, old: Json): void {
    const id = canonical(span as unknown as Json)
    if (value === null) this.rows.delete(id)
    else this.rows.set(id, { key: rec.key, value, at, span })
    if (!this.onClose) {
      this.tell({ ...rec, key: span as unknown as Json }, value, this.sendsOld ? old : null, at)
      return
    }
    const closesAt = this.closesAt(span)
    if (closesAt <= this.closedUpTo) return
    this.#open.set(id, { span, closesAt })
    this.due = Math.min(this.due, closesAt)
  }

  protected forget(span: Span): void {
    const id = canonical(span as unknown as Json)
    this.rows.delete(id)
    this.#open.delete(id)
  }

  override fire(watermark: number): void {
    const before = this.closedUpTo
    this.closedUpTo = Math.max(before, watermark)
    const closed = [...this.#open].filter(([, { closesAt }]) => closesAt <= watermark)
    closed.sort(
      ([, a], [, b]) =>
        a.closesAt - b.closesAt || a.span.start - b.span.start || byText(canonical(a.span.key), canonical(b.span.key)),
    )
    for (const [id] of closed) this.#open.delete(id)
    this.due = never
    for (const { closesAt } of this.#open.values()) this.due = Math.min(this.due, closesAt)
    for (const [id, { span }] of closed) {
      const row = this.rows.get(id)
      if (row === undefined) continue
      this.tell({ key: span as unknown as Json, value: null, at: row.at, watermark: before }, row.value, null)
    }
  }
}

/** Tumbling, hopping and endless windows. */
export class TimeWindows extends Windows {
  readonly #window: WindowNode

  constructor(
    world: World,
    parent: Vertex,
    fold: Fold,
    window: WindowNode,
    onClose: boolean,
    rows?: Map<string, Row & { span: Span }>,
  ) {
    super(world, parent, fold, onClose, rows)
    this.#window = window
  }

  protected closesAt({ end }: Span): number {
    return this.#window.type === 'unlimited' ? never : end + (this.#window.grace ?? 0)
  }

  #spans(key: Json, at: number): Span[] {
    const { type, size = 0, start = 0 } = this.#window
    if (type === 'unlimited') return at >= start ? [{ key, start, end: null as unknown as number }] : []
    const advance = type === 'hopping' ? (this.#window.advance ?? size) : size
    const spans: Span[] = []
    for (let from = at - (at % advance); from > at - size && from >= 0; from -= advance)
      spans.unshift({ key, start: from, end: from + size })
    return spans
  }

  take(rec: Rec): void {
    if (rec.key === null) return
    const spans = this.#spans(rec.key, rec.at).filter((span) => this.closesAt(span) > this.now(rec))
    if (spans.length === 0) this.world.late++
    for (const span of spans) {
      const row = this.rows.get(canonical(span as unknown as Json))
      const now = folded(this.fold, row === undefined ? (this.fold.init?.() ?? null) : row.value, rec)
      this.put(rec, span, now, Math.max(rec.at, row?.at ?? rec.at), row?.value ?? null)
    }
  }
}

/** A record joins all sessions that it touches into one. */
export class Sessions extends Windows {
  readonly #gap: number
  readonly #grace: number

  constructor(world: World, parent: Vertex, fold: Fold, window: WindowNode, onClose: boolean) {
    super(world, parent, fold, onClose)
    this.#gap = window.gap ?? 0
    this.#grace = window.grace ?? 0
  }

  protected closesAt({ end }: Span): number {
    return end + this.#gap + this.#grace + 1
  }

  readonly #byKey = new Map<string, Span[]>()

  take(rec: Rec): void {
    const { key, at } = rec
    if (key === null) return
    const text = canonical(key)
    const sessions = this.#byKey.get(text) ?? []
    const touched = sessions.filter(
      (span) =>
        span.end >= at - this.#gap &&
        span.start <= at + this.#gap &&
        !(this.onClose && this.closesAt(span) <= this.now(rec)),
    )
    touched.sort((a, b) => a.start - b.start)
    const span = {
      key,
      start: Math.min(at, ...touched.map(({ start }) => start)),
      end: Math.max(at, ...touched.map(({ end }) => end)),
    }
    if (this.closesAt(span) <= this.now(rec)) {
      this.world.late++
      return
    }
    let merged = this.fold.init?.() ?? null
    for (const each of touched) {
      const { value } = this.rows.get(canonical(each as unknown as Json)) as Row
      merged = this.fold.init === undefined && merged === null ? value : this.fold.merge(merged, value, key)
    }
    const now = folded(this.fold, merged, rec)
    // A session that stays as long as it was is told anew, not taken back.
    const grows = span.start !== at || span.end !== at
    for (const each of grows ? touched : []) {
      const { value } = this.rows.get(canonical(each as unknown as Json)) as Row
      this.forget(each)
      if (this.onClose) continue
      this.tell(
        { ...rec, headers: undefined, key: each as unknown as Json },
        null,
        this.sendsOld ? value : null,
        each.end,
      )
    }
    // A session without a value is gone: whoever comes next begins anew.
    this.#byKey.set(text, [...sessions.filter((each) => !touched.includes(each)), ...(now === null ? [] : [span])])
    // What a session holds is not of one record alone.
    this.put({ ...rec, headers: undefined }, span, now, span.end, null)
  }
}

/**
 * Windows of a length that end at a record, and those that begin right behind one, once another record falls into them.
 * Their contents are folded anew from the records, so folds whose order counts are for others.
 */
export class SlidingWindows extends Windows {
  readonly #length: number
  readonly #grace: number
  readonly #records = new Map<string, Rec[]>()
  readonly #starts = new Map<string, Set<number>>()

  constructor(world: World, parent: Vertex, fold: Fold, window: WindowNode, onClose: boolean) {
    super(world, parent, fold, onClose)
    this.#length = window.diff ?? 0
    this.#grace = window.grace ?? 0
  }

  protected closesAt({ end }: Span): number {
    return end + this.#grace + 1
  }

  take(rec: Rec): void {
    if (rec.key === null || rec.value === null) return
    const { at } = rec
    const length = this.#length
    if (at < length) throw new Unsupported('a sliding window that begins below zero')
    const text = canonical(rec.key)
    if (at + length < this.now(rec) - this.#grace) {
      this.world.late++
      return
    }
    // What lies two lengths back can be in no window that is still told.
    const floor = Math.min(at, this.now(rec) - this.#grace) - 3 * length - 3
    const others = (this.#records.get(text) ?? []).filter((other) => other.at >= floor)
    const starts = this.#starts.get(text) ?? new Set<number>()
    this.#starts.set(text, starts)
    for (const start of starts) if (start < floor) starts.delete(start)
    this.#records.set(text, [...others, rec])
    const told = [...starts].filter((start) => start <= at && start + length >= at).sort((a, b) => b - a)
    const before = Math.max(...others.filter((other) => other.at < at && other.at >= at - 2 * length).map((o) => o.at))
    if (before + 1 + length >= at && !starts.has(before + 1)) told.push(before + 1)
    if (!starts.has(at - length) && !told.includes(at - length)) told.push(at - length)
    if (!starts.has(at + 1) && others.some((other) => other.at > at && other.at <= at + 1 + length)) told.push(at + 1)
    for (const start of told) {
      if (start <= at && start + length < this.now(rec) - this.#grace) continue
      starts.add(start)
      this.#tell(rec, start)
    }
  }

  #tell(rec: Rec, start: number): void {
    const inside = (this.#records.get(canonical(rec.key)) ?? []).filter(
      (other) => other.at >= start && other.at <= start + this.#length,
    )
    let value = this.fold.init?.() ?? null
    for (const other of inside) value = folded(this.fold, value, other)
    const span = { key: rec.key, start, end: start + this.#length }
    const old = this.rows.get(canonical(span as unknown as Json))?.value ?? null
    this.put(rec, span, value, Math.max(...inside.map((other) => other.at)), old)
  }
}
