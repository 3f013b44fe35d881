/** Joins of two streams, of a stream with a table, and of two tables by foreign key. */
import { canonical, type Json } from '../../../conformance/expr.ts'
import {
  byText,
  HandOver,
  never,
  orNone,
  type Rec,
  type Row,
  type Table,
  type Update,
  Vertex,
  type World,
} from './parts.ts'
import type { SourceTable } from './tables.ts'

export interface StreamJoinShape {
  readonly before: number
  readonly after: number
  readonly grace: number
  readonly joiner: (left: Json, right: Json, key: Json) => Json
  readonly leftOuter: boolean
  readonly rightOuter: boolean
}

/** Records of one key, side and time that wait for their first partner; told: they were let go without. */
interface Waiting {
  readonly left: boolean
  readonly at: number
  readonly key: Json
  readonly records: Array<{ readonly rec: Rec; readonly judged: Rec }>
  told: boolean
}

/** Two streams within a window of time. Partners are looked for before a record is remembered. */
export class StreamJoin extends Vertex {
  readonly shape: StreamJoinShape
  readonly #remembered: readonly [Map<string, Rec[]>, Map<string, Rec[]>] = [new Map(), new Map()]
  readonly #waiting = new Map<string, Waiting>()
  /** Records that were told alone. Others of their key and time may still find a partner. */
  readonly #told = new WeakSet<Rec>()

  constructor(world: World, left: Vertex, right: Vertex, shape: StreamJoinShape) {
    super(world, [left, right], Math.max(left.level, right.level))
    this.shape = shape
    // The vertex itself takes nothing: its sides do.
    left.children.splice(left.children.indexOf(this), 1, new JoinSide(world, left.level, this, true))
    right.children.splice(right.children.lastIndexOf(this), 1, new JoinSide(world, right.level, this, false))
  }

  take(): void {
    throw new TypeError('a join takes records by its sides')
  }

  match(rec: Rec, left: boolean): void {
    const { before, after, grace, leftOuter, rightOuter } = this.shape
    if (rec.value === null) return
    const outer = left ? leftOuter : rightOuter
    if (rec.key === null) {
      if (outer) this.#alone(rec, left)
      return
    }
    const [back, ahead] = left ? [before, after] : [after, before]
    // One side remembers the record whatever becomes of it in the join.
    this.attempt(rec, () => this.#meet(rec, left, back, ahead, grace, outer))
    this.#remember(rec, left)
  }

  #meet(rec: Rec, left: boolean, back: number, ahead: number, grace: number, outer: boolean): void {
    if (rec.at + ahead + grace < rec.watermark) {
      this.world.late++
    } else {
      const partners = this.#partners(rec, left, back, ahead)
      if (partners.length === 0 && outer) this.#wait(rec, left)
      for (const partner of partners) {
        const id = this.#id(partner, !left)
        if (this.#waiting.get(id)?.told === false) this.#waiting.delete(id)
        const [l, r] = left ? [rec.value, partner.value] : [partner.value, rec.value]
        const value = this.shape.joiner(l as Json, r as Json, rec.key)
        this.pass({ ...rec, value, at: Math.max(rec.at, partner.at) })
      }
    }
  }

  #id(rec: Rec, left: boolean): string {
    return `${canonical(rec.key)}@${rec.at}:${left}`
  }

  #partners(rec: Rec, left: boolean, back: number, ahead: number): Rec[] {
    const { before, after, grace } = this.shape
    const others = this.#remembered[left ? 1 : 0].get(canonical(rec.key)) ?? []
    // What no record in time can meet any more is forgotten.
    const horizon = this.world.settled - before - after - grace
    while ((others[0]?.at ?? never) < horizon) others.shift()
    return others.filter((other) => other.at >= rec.at - back && other.at <= rec.at + ahead && !this.#told.has(other))
  }

  #remember(rec: Rec, left: boolean): void {
    const mine = this.#remembered[left ? 0 : 1]
    const list = mine.get(canonical(rec.key)) ?? []
    mine.set(canonical(rec.key), list)
    let place = list.length
    while (place > 0 && (list[place - 1] as Rec).at > rec.at) place--
    list.splice(place, 0, rec)
  }

  #wait(rec: Rec, left: boolean): void {
    const id = this.#id(rec, left)
    const held = this.#waiting.get(id)
    if (held?.told) {
      this.#told.add(rec)
      this.#alone(rec, left)
      return
    }
    const waiting: Waiting = { left, at: rec.at, key: rec.key, records: held?.records ?? [], told: false }
    const deadline = this.#deadline(waiting)
    // One whose time was over when it came is told at the next instant, and is judged by the one at which it came.
    const { watermark } = this.world
    const judged = deadline <= watermark ? { ...rec, watermark: Math.max(rec.watermark, watermark) } : rec
    waiting.records.push({ rec, judged })
    this.#waiting.set(id, waiting)
    this.due = Math.min(this.due, deadline)
  }

  #deadline({ at, left }: Waiting): number {
    return at + (left ? this.shape.after : this.shape.before) + this.shape.grace + 1
  }

  override fire(watermark: number): void {
    const { before, after, grace } = this.shape
    this.due = never
    const overdue: Waiting[] = []
    for (const [id, waiting] of this.#waiting) {
      if (waiting.told) {
        if (waiting.at < watermark - before - after - grace) this.#waiting.delete(id)
      } else if (this.#deadline(waiting) <= watermark) overdue.push(waiting)
      else this.due = Math.min(this.due, this.#deadline(waiting))
    }
    overdue.sort((a, b) => a.at - b.at || Number(a.left) - Number(b.left) || byText(canonical(a.key), canonical(b.key)))
    for (const waiting of overdue) {
      waiting.told = true
      for (const { rec } of waiting.records) this.#told.add(rec)
      for (const { judged } of waiting.records) this.#alone({ ...judged, cause: undefined }, waiting.left)
    }
  }

  #alone(rec: Rec, left: boolean): void {
    const { joiner } = this.shape
    const value = rec.value as Json
    this.pass({ ...rec, value: left ? joiner(value, null, rec.key) : joiner(null, value, rec.key) })
  }
}

class JoinSide extends Vertex {
  readonly #join: StreamJoin
  readonly #left: boolean

  constructor(world: World, level: number, join: StreamJoin, left: boolean) {
    super(world, [], level)
    this.#join = join
    this.#left = left
  }

  take(rec: Rec): void {
    this.#join.match(rec, this.#left)
  }
}

export interface LookUp {
  readonly row: (key: Json) => Row | undefined
  readonly joiner: (value: Json, row: Json, key: Json) => Json
  readonly leftOuter: boolean
  /** The row's key, where it is not the record's. */
  readonly on?: (value: Json, key: Json) => Json
}

/** Each record with the row of its key as it is now. */
export class TableLookUp extends Vertex {
  readonly #shape: LookUp

  constructor(world: World, parent: Vertex, table: Vertex | undefined, shape: LookUp) {
    super(world, [parent], Math.max(parent.level, table?.level ?? 0))
    this.#shape = shape
  }

  take(rec: Rec): void {
    const { row, joiner, leftOuter, on } = this.#shape
    if (rec.value === null) return
    const key = on ? on(rec.value as Json, rec.key) : rec.key
    if (key === null && !leftOuter) return
    const found = key === null ? undefined : row(key)
    if (found === undefined && !leftOuter) return
    this.pass({ ...rec, value: joiner(rec.value as Json, found?.value ?? null, rec.key) })
  }
}

type Instruction = 'answer' | 'answer-if-found' | 'answer-again' | 'end' | 'end-and-answer'

interface Subscription {
  readonly instruction: Instruction
  readonly primaryKey: Json
  /** What the left row was when it subscribed. */
  readonly seen: string
}

interface Answer {
  readonly value: Json
  readonly seen: string
  readonly quiet: boolean
}

export interface ForeignShape {
  readonly on: (value: Json, key: Json) => Json
  readonly joiner: (left: Json, right: Json, key: Json) => Json
  readonly leftOuter: boolean
}

/** A left row's change ends its subscription at the right row it named, and makes the new one. */
class Subscriber extends Vertex {
  readonly #shape: ForeignShape

  constructor(world: World, left: Table, shape: ForeignShape) {
    super(world, [left.vertex])
    this.#shape = shape
  }

  take(rec: Rec): void {
    if (rec.key === null) return
    const { now, old } = rec.value as Update
    const { on, leftOuter } = this.#shape
    const after = now === null ? null : this.orTold(rec, () => on(now, rec.key))
    const before = old === null ? null : orNone(() => on(old, rec.key))
    const send = (key: Json, instruction: Instruction): void =>
      this.pass({
        ...rec,
        key,
        value: { instruction, primaryKey: rec.key, seen: canonical(now) } satisfies Subscription,
      })
    const same = canonical(before) === canonical(after)
    if (leftOuter) {
      if (old === null && now === null) return
      if (old !== null && before !== null && !same) send(before, 'end')
      send(after, 'answer')
    } else if (before === null) {
      if (after !== null) send(after, 'answer-if-found')
    } else if (after === null) {
      send(before, 'end-and-answer')
    } else if (same) {
      send(after, 'answer-again')
    } else {
      send(before, 'end')
      send(after, 'answer')
    }
  }
}

class Subscriptions extends Vertex {
  /** By foreign key, then primary key. */
  readonly byKey = new Map<string, Map<string, Subscription>>()
  readonly #right: Table

  constructor(world: World, parent: Vertex, right: Table) {
    super(world, [parent], Math.max(parent.level, right.vertex.level))
    this.#right = right
  }

  take(rec: Rec): void {
    const subscription = rec.value as Subscription
    const { instruction, primaryKey, seen } = subscription
    if (rec.key !== null) {
      const rows = this.byKey.get(canonical(rec.key)) ?? new Map<string, Subscription>()
      this.byKey.set(canonical(rec.key), rows)
      if (instruction === 'end' || instruction === 'end-and-answer') rows.delete(canonical(primaryKey))
      else rows.set(canonical(primaryKey), subscription)
    } else if (instruction !== 'answer') return
    if (instruction === 'end') return
    const row = rec.key === null ? undefined : this.#right.row(rec.key)
    if (instruction === 'answer-if-found' && row === undefined) return
    const value = instruction === 'end-and-answer' ? null : (row?.value ?? null)
    const answer = { value, seen, quiet: instruction === 'answer-again' } satisfies Answer
    this.pass({ ...rec, key: primaryKey, value: answer, at: Math.max(rec.at, row?.at ?? rec.at) })
  }
}

/** A right row's change is told to all that subscribed, in the order of their keys. */
class Subscribed extends Vertex {
  readonly #subscriptions: Subscriptions

  constructor(world: World, right: Table, subscriptions: Subscriptions) {
    super(world, [right.vertex], subscriptions.level)
    this.#subscriptions = subscriptions
  }

  take(rec: Rec): void {
    if (rec.key === null) return
    const value = (rec.value as Update).now
    const rows = this.#subscriptions.byKey.get(canonical(rec.key)) ?? new Map<string, Subscription>()
    for (const [, { primaryKey, seen }] of [...rows].sort(([a], [b]) => byText(a, b))) {
      this.pass({ ...rec, key: primaryKey, value: { value, seen, quiet: false } satisfies Answer })
    }
  }
}

/** The answer meets the left row; one that the row no longer waits for is dropped. */
class Resolver extends Vertex {
  readonly #left: Table
  readonly #shape: ForeignShape
  result: SourceTable | undefined

  constructor(world: World, parent: Vertex, left: Table, shape: ForeignShape) {
    super(world, [parent])
    this.#left = left
    this.#shape = shape
  }

  take(rec: Rec): void {
    const { value, seen, quiet } = rec.value as Answer
    const { joiner, leftOuter } = this.#shape
    const row = this.#left.row(rec.key)
    const hasResult = this.result?.kept === true && this.result.row(rec.key) !== undefined
    if (seen !== canonical(row?.value ?? null)) {
      // The change that was to end the result got no further where a function failed on it.
      if (leftOuter || !hasResult) return
      if (row === undefined || orNone(() => this.#shape.on(row.value, rec.key)) === null)
        this.pass({ ...rec, value: null })
      return
    }
    if (value === null && quiet && !hasResult) return
    const gone = row === undefined || (value === null && !leftOuter)
    this.pass({ ...rec, value: gone ? null : joiner((row as Row).value, value, rec.key) })
  }
}

/** Answers the vertex whose records are the rows of the result, and tells it of the table made of them. */
export function foreignKeyJoin(
  world: World,
  left: Table,
  right: Table,
  shape: ForeignShape,
  made: (vertex: Vertex) => SourceTable,
): SourceTable {
  right.sendOld(true)
  left.sendOld(true)
  right.keep()
  left.keep()
  const subscriptions = new Subscriptions(world, new HandOver(world, new Subscriber(world, left, shape), true), right)
  const subscribed = new Subscribed(world, right, subscriptions)
  const answers = new HandOver(world, subscriptions, true)
  subscribed.children.push(answers)
  const resolver = new Resolver(world, answers, left, shape)
  resolver.result = made(resolver)
  return resolver.result
}
