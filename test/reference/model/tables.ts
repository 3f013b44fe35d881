/** Tables: made of records, derived from one another, grouped, joined by key. */
import type { Json } from '../../../conformance/expr.ts'
import { HandOver, orNone, type Rec, type Row, Rows, type Table, type Update, Vertex, type World } from './parts.ts'

export abstract class TableVertex extends Vertex implements Table {
  sendsOld = false

  get vertex(): Vertex {
    return this
  }

  /** Aggregates keep their rows anyway. */
  keep(): void {
    return
  }

  abstract row(key: Json): Row | undefined
  abstract sendOld(force: boolean): boolean
}

/** The newest value of each key. Kept only where somebody asks for it. */
export class SourceTable extends TableVertex {
  readonly rows = new Rows()
  kept: boolean

  constructor(world: World, parent: Vertex, named: boolean) {
    super(world, [parent])
    this.kept = named
  }

  row(key: Json): Row | undefined {
    return this.rows.get(key)
  }

  override keep(): void {
    this.kept = true
  }

  sendOld(force: boolean): boolean {
    if (force) this.kept = true
    if (this.kept) this.sendsOld = true
    return this.sendsOld
  }

  take(rec: Rec): void {
    if (rec.key === null) return
    const old = this.sendsOld ? (this.rows.get(rec.key)?.value ?? null) : null
    const now = (rec.value ?? null) as Json
    this.rows.put(rec.key, now, rec.at)
    this.tell(rec, now, old)
  }
}

type Derive = (value: Json, key: Json) => Json

/** A filter (null where the row does not pass) or a mapping of values. */
export class DerivedTable extends TableVertex {
  readonly #parent: Table
  readonly #derive: Derive
  readonly #filters: boolean
  readonly #rows: Rows | undefined

  constructor(world: World, parent: Table, derive: Derive, filters: boolean, named: boolean) {
    super(world, [parent.vertex])
    this.#parent = parent
    this.#derive = derive
    this.#filters = filters
    this.#rows = named ? new Rows() : undefined
    if (filters) this.sendsOld = parent.sendOld(false)
  }

  row(key: Json): Row | undefined {
    if (this.#rows) return this.#rows.get(key)
    const row = this.#parent.row(key)
    const value = row === undefined ? null : orNone(() => this.#derive(row.value, key))
    return row === undefined || value === null ? undefined : { ...row, value }
  }

  override keep(): void {
    if (this.#rows === undefined) this.#parent.keep()
  }

  sendOld(force: boolean): boolean {
    if (this.#rows !== undefined || this.#parent.sendOld(force)) this.sendsOld = true
    return this.sendsOld
  }

  take(rec: Rec): void {
    const update = rec.value as Update
    const derived = (value: Json): Json => (value === null ? null : this.#derive(value, rec.key))
    const isNone = this.#rows === undefined && this.sendsOld
    const now = isNone ? this.orTold(rec, () => derived(update.now)) : derived(update.now)
    const before = (): Json =>
      this.#rows ? (this.#rows.get(rec.key)?.value ?? null) : orNone(() => derived(update.old))
    const old = this.sendsOld ? before() : null
    if (this.#filters && this.sendsOld && now === null && old === null) return
    this.#rows?.put(rec.key, now, rec.at)
    this.tell(rec, now, old)
  }
}

type Pair = readonly [key: Json, value: Json]

/** Takes a row out of its old group and puts it into its new one. */
export class TableGroups extends Vertex {
  readonly #group: (value: Json, key: Json) => Pair

  constructor(world: World, parent: Table, group: (value: Json, key: Json) => Pair) {
    super(world, [parent.vertex])
    parent.sendOld(true)
    this.#group = group
  }

  take(rec: Rec): void {
    const { now, old } = rec.value as Update
    const groupOf = (value: Json): Pair | undefined => {
      const [key, grouped] = value === null ? [null, null] : this.#group(value, rec.key)
      return key === null || grouped === null ? undefined : [key, grouped]
    }
    const into = this.orTold(rec, () => groupOf(now)) ?? undefined
    const from = orNone(() => groupOf(old)) ?? undefined
    if (into && from && JSON.stringify(into[0]) === JSON.stringify(from[0])) {
      this.tell({ ...rec, key: into[0] }, into[1], from[1])
      return
    }
    if (from) this.tell({ ...rec, key: from[0] }, null, from[1])
    if (into) this.tell({ ...rec, key: into[0] }, into[1], null)
  }
}

export interface GroupFolds {
  readonly init: (() => Json) | undefined
  readonly add: (aggregate: Json, value: Json, key: Json) => Json
  readonly subtract: (aggregate: Json, value: Json, key: Json) => Json
}

export class TableAggregate extends TableVertex {
  readonly #rows = new Rows()
  readonly #folds: GroupFolds

  constructor(world: World, groups: Vertex, folds: GroupFolds) {
    super(world, [new HandOver(world, groups, true)])
    this.#folds = folds
  }

  row(key: Json): Row | undefined {
    return this.#rows.get(key)
  }

  sendOld(): boolean {
    this.sendsOld = true
    return true
  }

  take(rec: Rec): void {
    const { init, add, subtract } = this.#folds
    const { now, old } = rec.value as Update
    const row = this.#rows.get(rec.key)
    let aggregate = row?.value ?? null
    let at = rec.at
    if (old !== null && aggregate !== null) {
      aggregate = subtract(aggregate, old, rec.key)
      at = Math.max(at, row?.at ?? at)
    }
    if (now !== null) {
      at = Math.max(at, row?.at ?? at)
      if (aggregate !== null) aggregate = add(aggregate, now, rec.key)
      else aggregate = init === undefined ? now : add(init(), now, rec.key)
    }
    this.#rows.put(rec.key, aggregate, at)
    this.tell(rec, aggregate, this.sendsOld ? (row?.value ?? null) : null, at)
  }
}

export interface JoinShape {
  readonly joiner: (left: Json, right: Json, key: Json) => Json
  readonly leftOuter: boolean
  readonly rightOuter: boolean
}

/** A join of two tables by key: an update of one meets the row of the other. */
export class TableJoin extends TableVertex {
  readonly #sides: readonly [Table, Table]
  readonly #shape: JoinShape
  readonly #rows: Rows | undefined

  constructor(world: World, left: Table, right: Table, shape: JoinShape, named: boolean) {
    super(world, [])
    this.#sides = [left, right]
    this.#shape = shape
    this.#rows = named ? new Rows() : undefined
    if (shape.leftOuter) left.sendOld(true)
    if (shape.rightOuter) right.sendOld(true)
    left.keep()
    right.keep()
    new TableJoinSide(world, left, this, true).children.push(this)
    new TableJoinSide(world, right, this, false).children.push(this)
  }

  row(key: Json): Row | undefined {
    if (this.#rows) return this.#rows.get(key)
    const [left, right] = this.#sides.map((side) => side.row(key))
    const value = orNone(() => this.joined(left?.value ?? null, right?.value ?? null, key))
    return value === null ? undefined : { key, value, at: Math.max(left?.at ?? -1, right?.at ?? -1) }
  }

  override keep(): void {
    if (this.#rows === undefined) for (const side of this.#sides) side.keep()
  }

  sendOld(): boolean {
    for (const side of this.#sides) side.sendOld(true)
    this.sendsOld = true
    return true
  }

  /** Null where what is there may not go on alone. */
  joined(left: Json, right: Json, key: Json): Json {
    const { leftOuter, rightOuter, joiner } = this.#shape
    if (left === null && (right === null || !rightOuter)) return null
    if (right === null && !leftOuter) return null
    return joiner(left, right, key)
  }

  goesAlone(left: boolean): boolean {
    return left ? this.#shape.leftOuter : this.#shape.rightOuter
  }

  other(left: boolean): Table {
    return this.#sides[left ? 1 : 0]
  }

  take(rec: Rec): void {
    const { now, old } = rec.value as Update
    this.#rows?.put(rec.key, now, rec.at)
    this.tell(rec, now, this.sendsOld ? old : null)
  }
}

class TableJoinSide extends Vertex {
  readonly #join: TableJoin
  readonly #left: boolean

  constructor(world: World, mine: Table, join: TableJoin, left: boolean) {
    super(world, [mine.vertex])
    this.#join = join
    this.#left = left
  }

  take(rec: Rec): void {
    if (rec.key === null) return
    const join = this.#join
    const { now, old } = rec.value as Update
    const row = join.other(this.#left).row(rec.key)
    if (row === undefined && (!join.goesAlone(this.#left) || (now === null && old === null))) return
    const other = row?.value ?? null
    const joined = (mine: Json): Json =>
      this.#left ? join.joined(mine, other, rec.key) : join.joined(other, mine, rec.key)
    const at = Math.max(rec.at, row?.at ?? rec.at)
    if (!join.sendsOld) this.tell(rec, joined(now), null, at)
    else
      this.tell(
        rec,
        this.orTold(rec, () => joined(now)),
        orNone(() => joined(old)),
        at,
      )
  }
}

/** Holds updates back: each key's newest until its window has closed, or until the first one held is so old. */
export class Suppressed extends TableVertex {
  readonly #parent: Table
  readonly #delay: number
  readonly #final: boolean
  readonly #held = new Map<string, { rec: Rec; time: number; prior: Json }>()
  readonly #textOf: (key: Json) => string
  #letOut = Number.NEGATIVE_INFINITY

  constructor(world: World, parent: Table, until: { final: boolean; delay: number }, textOf: (key: Json) => string) {
    super(world, [parent.vertex])
    parent.sendOld(true)
    this.#parent = parent
    this.#delay = until.delay
    this.#final = until.final
    this.#textOf = textOf
  }

  row(key: Json): Row | undefined {
    const held = this.#held.get(this.#textOf(key))
    if (held === undefined) return this.#parent.row(key)
    return held.prior === null ? undefined : { key, value: held.prior, at: -1 }
  }

  override keep(): void {
    this.#parent.keep()
  }

  sendOld(force: boolean): boolean {
    if (this.#parent.sendOld(force)) this.sendsOld = true
    return this.sendsOld
  }

  take(rec: Rec): void {
    const text = this.#textOf(rec.key)
    const held = this.#held.get(text)
    const time = held?.time ?? (this.#final ? (rec.key as unknown as { end: number }).end : rec.at)
    this.#held.set(text, { rec, time, prior: held ? held.prior : (rec.value as Update).old })
    this.due = Math.min(this.due, time + this.#delay)
    const reached = this.world.reached(this.level)
    if (this.due <= reached) this.fire(reached, rec.cause)
  }

  override fire(watermark: number, cause?: Rec['cause']): void {
    const before = this.#letOut
    this.#letOut = Math.max(before, watermark)
    const due = [...this.#held].filter(([, { time }]) => time + this.#delay <= watermark)
    due.sort(([a, x], [b, y]) => x.time - y.time || (a < b ? -1 : 1))
    for (const [text, { rec }] of due) {
      const { now, old } = rec.value as Update
      if (!(this.#final && now === null)) {
        this.tell(
          { ...rec, watermark: before, cause: cause && { ...cause, came: undefined } },
          now,
          this.sendsOld ? old : null,
        )
      }
      this.#held.delete(text)
    }
    this.due = Math.min(Number.POSITIVE_INFINITY, ...[...this.#held.values()].map(({ time }) => time + this.#delay))
  }
}
