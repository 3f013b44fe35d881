/** What the reference model is made of: vertices that pass records on, one at a time, and the world that drives them. */
import {
  canonical,
  evaluate,
  type Env,
  type Expr,
  FunctionFailed,
  type Json,
  jsonOf,
} from '../../../conformance/expr.ts'

/** What the model does not know is no failure of the engine. */
export class Unsupported extends Error {
  override readonly name = 'Unsupported'
}

/** A record on its way: its time, and the watermark by which its lateness is judged. */
export interface Rec {
  readonly key: Json
  readonly value: unknown
  readonly at: number
  readonly watermark: number
  /** Those of the record that made it what it is. */
  readonly headers?: string | undefined
  /** The input that it follows from; undefined: it was made by a timer. */
  readonly cause?: Cause | undefined
}

export interface Cause {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** What it was when it came to the place of its key; undefined: more than a record. */
  readonly came: { readonly key: Json; readonly value: Json; readonly at: number } | undefined
}

/** A function that failed, and the record that got no further. */
export interface Failed {
  readonly rec: Rec
  readonly message: string
}

/** What travels below a table: a row's new value and, where it is known, the one before. */
export interface Update {
  readonly now: Json
  readonly old: Json
}

export interface Told {
  readonly topic: string
  readonly key: Json
  readonly value: Json
  readonly timestamp: number
  readonly headers?: string | undefined
}

export const never = Number.POSITIVE_INFINITY
export const always = Number.NEGATIVE_INFINITY

export const call = (expr: Expr | undefined, env: Readonly<Record<string, unknown>>): Json =>
  evaluate(expr as Expr, Object.fromEntries(Object.entries(env).map(([name, value]) => [name, jsonOf(value)])) as Env)

export class World {
  readonly outputs: Told[] = []
  /** Hand-overs still to be worked off, in the order in which they were made. */
  readonly queue: Array<() => void> = []
  /** In the order in which they were made: parents before children. */
  readonly vertices: Vertex[] = []
  /** How far each level has been advanced. */
  readonly #reached: number[] = []
  watermark = always
  /** Everything up to here has fired, and all that followed is done. */
  settled = always
  late = 0
  readonly failed: Failed[] = []
  readonly storesInUse = new Set<string>()

  reached(level: number): number {
    return this.#reached[level] ?? always
  }

  drain(): void {
    for (let next = this.queue.shift(); next !== undefined; next = this.queue.shift()) next()
  }

  /** Fires what the watermark has passed, as if it came to each time at which something is due, and no further. */
  advance(watermark: number): void {
    if (watermark <= this.watermark) return
    for (;;) {
      const due = Math.min(...this.vertices.map((vertex) => vertex.due))
      const next = due > this.settled ? due : this.settled + 1
      if (due > watermark || next > watermark) break
      this.#fire(next)
    }
    this.watermark = watermark
    this.#reached.fill(watermark)
    this.settled = watermark
  }

  /** Shallow levels first; what is handed over is worked off in between. */
  #fire(time: number): void {
    this.watermark = time
    const deepest = Math.max(...this.vertices.map((vertex) => vertex.level))
    for (let level = 0; level <= deepest; level++) {
      this.#reached[level] = time
      for (const vertex of this.vertices) {
        if (vertex.level === level && vertex.due <= time) vertex.fire(time)
      }
      if (this.queue.length === 0) continue
      this.drain()
      level = -1
    }
    this.settled = time
  }
}

export abstract class Vertex {
  readonly world: World
  readonly level: number
  readonly children: Vertex[] = []
  /** The watermark at which it wants to be fired. */
  due = never

  constructor(world: World, parents: readonly Vertex[], level?: number) {
    this.world = world
    this.level = level ?? Math.max(0, ...parents.map((parent) => parent.level))
    world.vertices.push(this)
    for (const parent of parents) parent.children.push(this)
  }

  abstract take(rec: Rec): void

  fire(_watermark: number): void {
    this.due = never
  }

  pass(rec: Rec): void {
    for (const child of this.children) this.attempt(rec, () => child.take(rec))
  }

  /** What a function throws ends the record's way at this one vertex. */
  protected attempt(rec: Rec, take: () => void): void {
    try {
      take()
    } catch (error) {
      if (!(error instanceof FunctionFailed)) throw error
      this.world.failed.push({ rec, message: error.message })
    }
  }

  /** A row of a table at which a function fails is none below; the failure is told. */
  protected orTold<T>(rec: Rec, make: () => T): T | null {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof FunctionFailed)) throw error
      this.world.failed.push({ rec, message: error.message })
      return null
    }
  }

  tell(rec: Rec, now: Json, old: Json, at = rec.at): void {
    this.pass({ ...rec, at, value: { now, old } satisfies Update })
  }
}

/** As it was, or looked up: that a function fails at it was told when it came. */
export function orNone<T>(make: () => T): T | null {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof FunctionFailed)) throw error
    return null
  }
}

/** A vertex that is a function of the record alone. */
export class Step extends Vertex {
  readonly #take: (rec: Rec, pass: (rec: Rec) => void) => void

  constructor(world: World, parents: readonly Vertex[], take: (rec: Rec, pass: (rec: Rec) => void) => void) {
    super(world, parents)
    this.#take = take
  }

  take(rec: Rec): void {
    this.#take(rec, (next) => this.pass(next))
  }
}

/** Records go to the place of their key, a level deeper, when the work at hand is done. */
export class HandOver extends Vertex {
  keepsNull: boolean

  constructor(world: World, parent: Vertex, keepsNull = false) {
    super(world, [parent], parent.level + 1)
    this.keepsNull = keepsNull
  }

  take(rec: Rec): void {
    if (rec.key === null && !this.keepsNull) return
    this.world.queue.push(() => this.pass(arriving(rec)))
  }
}

/** Where a record comes to another place, that is what it was when it came. */
function arriving(rec: Rec): Rec {
  const { key, value, at, cause } = rec
  if (cause === undefined) return rec
  const isPlain = typeof value !== 'object' || value === null || 'g' in value
  return { ...rec, cause: { ...cause, came: isPlain ? { key, value: value as Json, at } : undefined } }
}

export interface Row {
  readonly key: Json
  readonly value: Json
  readonly at: number
}

/** Rows by key; a null value deletes. */
export class Rows {
  readonly #rows = new Map<string, Row>()

  get(key: Json): Row | undefined {
    return this.#rows.get(canonical(key))
  }

  put(key: Json, value: Json, at: number): void {
    if (value === null) this.#rows.delete(canonical(key))
    else this.#rows.set(canonical(key), { key, value, at })
  }
}

/** A table as others see it: its rows, and whether its updates say what they replace. */
export interface Table {
  readonly vertex: Vertex
  row(key: Json): Row | undefined
  /** Somebody reads its rows. */
  keep(): void
  /** Asked for by those who need old values; `force` keeps rows that would not be kept otherwise. */
  sendOld(force: boolean): boolean
}

export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
