/** A program while it grows: its nodes, and what is known of what comes out of each. */
import type { Random } from '../../src/base/random.ts'
import type { ProgramNode } from './program.ts'
import * as values from './values.ts'

/**
 * What is the same in every run. `total`: what each record causes, in the order of dispatch. `keyed`: each key's results
 * in their order, but not what lies between keys; what timers and closing windows tell is of that kind. `free`: the same
 * results in any order. `last`: each key's last result alone.
 */
export type Order = 'total' | 'keyed' | 'free' | 'last'

export interface Flow {
  readonly id: string
  /** A part is what only the step that made it goes on with: a grouping, a table of windows. */
  readonly kind: 'stream' | 'table' | 'global' | 'part'
  readonly order: Order
  /** Held back for a time: each result is the same in every run, but nothing that looks at its rows goes by that time. */
  readonly isTimed: boolean
  /** What needs equal keys together hands over first. */
  readonly rekeyed: boolean
  /** Several keys became one since they were last together: between them nothing is promised. */
  readonly mixed: boolean
  /** By how much results may be told behind their own time. */
  readonly delay: number
  readonly level: number
  /** Results for each record of the input, about. */
  readonly rate: number
  readonly keys: number
  /** The sub-topology. */
  readonly place: number
  uses: number
}

export type Step = (growth: Growth) => void

type Change = Partial<Omit<Flow, 'id' | 'uses'>>

export class Growth {
  readonly random: Random
  readonly nodes: ProgramNode[] = []
  readonly processors: readonly string[] = ['dedupe', 'countSeen', 'spans']
  readonly #flows: Flow[] = []
  /** Of each place the one that it was put together with. */
  readonly #places: number[] = []
  #ids = 0
  #slow = 0

  constructor(random: Random) {
    this.random = random
  }

  id(name: string): string {
    return `${name}-${this.#ids++}`
  }

  get deepest(): number {
    return Math.max(0, ...this.#flows.map(({ level }) => level))
  }

  add(node: ProgramNode): void {
    this.nodes.push(node)
  }

  source(id: string, kind: Flow['kind'], keys: number): void {
    this.flow({
      id,
      kind,
      order: 'total',
      isTimed: false,
      rekeyed: false,
      mixed: false,
      delay: 0,
      level: 0,
      rate: 1,
      keys,
      place: this.#place(),
      uses: 0,
    })
  }

  flowOf(id: string): Flow | undefined {
    return this.#flows.find((flow) => flow.id === id)
  }

  rate(id: string, rate: number): void {
    const at = this.#flows.findIndex((flow) => flow.id === id)
    this.#flows[at] = { ...(this.#flows[at] as Flow), rate }
  }

  flow(flow: Flow): Flow {
    this.#flows.push(flow)
    return flow
  }

  use(flow: Flow): void {
    flow.uses++
  }

  /** One that fits, rather of the newer ones, and not one that is a mere step of another. */
  pick(fits: (flow: Flow) => boolean): Flow | undefined {
    const fitting = this.#flows.filter((flow) => fits(flow) && flow.rate > 0.01 && flow.uses < 3)
    const recent = fitting.slice(-4)
    return this.random.chance(0.7) ? this.random.pick(recent) : this.random.pick(fitting)
  }

  /** Few functions are slow, and few of them in one program. */
  slow(): { slow?: number } {
    if (this.#slow >= 2 || !this.random.chance(0.25)) return {}
    this.#slow++
    return { slow: 1 + this.random.int(3) }
  }

  node(op: string, from: Flow, rest: Omit<Partial<ProgramNode>, 'op' | 'id'>, change: Change, second?: Flow): Flow {
    const id = this.id(op)
    this.add({ id, op, from: second ? [from.id, second.id] : from.id, ...rest })
    this.use(from)
    if (second) this.use(second)
    const isTimed = from.isTimed && change.order === undefined
    return this.flow({ ...from, isTimed, ...change, id, uses: 0 })
  }

  #place(): number {
    this.#places.push(this.#places.length)
    return this.#places.length - 1
  }

  #found(place: number): number {
    const above = this.#places[place] as number
    return above === place ? place : this.#found(above)
  }

  /** A place that records are handed over to. */
  behind(_flow: Flow): number {
    return this.#place()
  }

  /** Where records of this key are together. */
  placeOf(flow: Flow): number {
    return flow.rekeyed ? this.behind(flow) : flow.place
  }

  /** Makes one place of two. */
  meet(a: number, b: number): void {
    this.#places[this.#found(a)] = this.#found(b)
  }

  /** Equal keys together. */
  together(flow: Flow): Flow {
    if (!flow.rekeyed) return flow
    return this.node(
      'repartition',
      flow,
      {},
      {
        rekeyed: false,
        mixed: false,
        level: flow.level + 1,
        place: this.behind(flow),
      },
    )
  }

  /** Grouped by its key, or by another one. */
  group(flow: Flow): Flow {
    const deeper = { kind: 'part', rekeyed: false, mixed: false, level: flow.level + 1 } as const
    if (flow.order === 'total' && this.random.chance(0.5)) {
      const key = this.random.chance(0.5) ? values.field('g') : values.keyOf(values.field('a'), 9)
      return this.node('groupBy', flow, { key }, { ...deeper, keys: 12, place: this.behind(flow) })
    }
    if (!flow.rekeyed) return this.node('groupByKey', flow, {}, { kind: 'part' })
    return this.node('groupByKey', flow, {}, { ...deeper, place: this.behind(flow) })
  }

  /** What is the same in every run, by node. */
  orders(): Record<string, Order> {
    return Object.fromEntries(this.#flows.map(({ id, order }) => [id, order]))
  }

  /** Every end gets a sink, and some of what lies between. */
  finish(): void {
    for (const flow of [...this.#flows]) {
      const isSource = this.nodes.find(({ id }) => id === flow.id)?.topic !== undefined
      if (flow.kind === 'global' || flow.kind === 'part' || isSource) continue
      if (flow.uses > 0 && this.random.chance(0.8)) continue
      const from = flow.kind === 'table' ? this.node('toStream', flow, {}, { kind: 'stream', rekeyed: false }) : flow
      const isLast = from.order === 'last' && !from.isTimed
      const promised = isLast ? 'last' : from.order === 'free' || from.mixed ? 'set' : 'sequence'
      const id = this.id('to')
      this.add({ id, op: 'to', from: from.id, topic: `out-${id}`, promised })
    }
  }
}
