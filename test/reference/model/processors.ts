/** The processors that programs name, as vertices of the model. */
import { canonical, type Expr, type Json } from '../../../conformance/expr.ts'
import type { ProgramNode } from '../program.ts'
import { byText, call, never, type Rec, Rows, Step, Unsupported, Vertex, type World } from './parts.ts'

/** Where the processor is to fail on the record, it does. */
function check({ id, fails }: ProgramNode, rec: Rec, after: boolean): void {
  if (fails?.after !== after) return
  const value: Expr = { fn: 'value' }
  call({ fn: 'fail', as: id, when: fails.when, about: value, of: value }, { value: rec.value })
}

export function processor(world: World, parent: Vertex, node: ProgramNode): Vertex {
  const { type, store = '', withinMs = 0, n = 0, everyMs = 1 } = node.processor ?? { type: '', store: '' }
  if (world.storesInUse.has(store)) throw new Unsupported('a store of two processors')
  if (store !== '') world.storesInUse.add(store)
  const rows = new Rows()
  switch (type) {
    case 'dedupe':
      return new Step(world, [parent], (rec, pass) => {
        check(node, rec, false)
        if (rec.key === null) return
        const last = rows.get(rec.key)
        if (last !== undefined && rec.at - (last.value as number) < withinMs) return
        rows.put(rec.key, rec.at, rec.at)
        check(node, rec, true)
        pass(rec)
      })
    case 'countSeen':
      return new Step(world, [parent], (rec, pass) => {
        check(node, rec, false)
        if (rec.key === null) return
        const seen = ((rows.get(rec.key)?.value as number | undefined) ?? 0) + 1
        rows.put(rec.key, seen, rec.at)
        check(node, rec, true)
        pass({ ...rec, value: { value: rec.value as Json, n: seen } })
      })
    case 'fanOut':
      return new Step(world, [parent], (rec, pass) => {
        for (let i = 0; i < n; i++) pass({ ...rec, value: { i, value: rec.value as Json }, at: rec.at + i })
      })
    case 'spans':
      return new Spans(world, parent, everyMs, node)
    case 'quiet':
      return new Quiet(world, parent, withinMs, node)
    default:
      throw new Unsupported(`the processor ${type}`)
  }
}

/** Timers by key. */
abstract class Timed extends Vertex {
  readonly timers = new Map<string, { key: Json; at: number; n: number }>()

  readonly #node: ProgramNode

  constructor(world: World, parent: Vertex, node: ProgramNode) {
    super(world, [parent])
    this.#node = node
  }

  take(rec: Rec): void {
    check(this.#node, rec, false)
    if (rec.key !== null) this.note(rec)
    check(this.#node, rec, true)
  }

  protected abstract note(rec: Rec): void

  #firedUpTo = Number.NEGATIVE_INFINITY
  /** What a timer tells is as early as the time before it: nothing below finds it late. */
  protected before = Number.NEGATIVE_INFINITY

  protected set(key: Json, at: number, n: number): void {
    this.timers.set(canonical(key), { key, at, n })
    this.due = Math.min(this.due, at)
  }

  override fire(watermark: number): void {
    this.before = this.#firedUpTo
    this.#firedUpTo = watermark
    const due = [...this.timers].filter(([, { at }]) => at <= watermark)
    due.sort(([a, x], [b, y]) => x.at - y.at || byText(a, b))
    for (const [text] of due) this.timers.delete(text)
    this.due = never
    for (const { at } of this.timers.values()) this.due = Math.min(this.due, at)
    for (const [, { key, at, n }] of due) this.fired(key, at, n)
  }

  protected abstract fired(key: Json, at: number, n: number): void
}

/** How many records of a key each span of time had, told when it is over by a timer of its own. */
class Spans extends Timed {
  readonly #every: number

  constructor(world: World, parent: Vertex, every: number, node: ProgramNode) {
    super(world, parent, node)
    this.#every = every
  }

  protected note(rec: Rec): void {
    const end = rec.at - (rec.at % this.#every) + this.#every
    const id = { key: rec.key, end }
    this.set(id, end, (this.timers.get(canonical(id))?.n ?? 0) + 1)
  }

  protected fired(id: Json, at: number, n: number): void {
    const { key } = id as { key: Json }
    this.pass({ key, value: { i: n, a: n, g: `g${n % 5}`, h: n % 7 }, at, watermark: this.before })
  }
}

/** Tells of a key that had no record for a while, and how many it had until then. */
class Quiet extends Timed {
  readonly #within: number

  constructor(world: World, parent: Vertex, within: number, node: ProgramNode) {
    super(world, parent, node)
    this.#within = within
  }

  protected note(rec: Rec): void {
    this.set(rec.key, rec.at + this.#within, (this.timers.get(canonical(rec.key))?.n ?? 0) + 1)
  }

  protected fired(key: Json, at: number, n: number): void {
    this.pass({ key, value: { i: n, a: n, g: `g${n % 5}`, h: n % 7 }, at, watermark: this.before })
  }
}
