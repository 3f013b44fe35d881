/**
 * The sub-topologies of a program, told from the documents: what needs equal keys in one place begins another one, and
 * what meets lies in one. Which of them feed each other in a circle, and which are fed behind a processor.
 */
import type { Program, ProgramNode } from './program.ts'

export const parentsOf = ({ from }: ProgramNode): readonly string[] => (from === undefined ? [] : [from].flat())

const aggregates: ReadonlySet<string> = new Set(['count', 'reduce', 'aggregate'])
const rekeying: ReadonlySet<string> = new Set(['selectKey', 'map', 'flatMap', 'process'])

/** Of each node, what lies between it and its parents. */
export interface Place {
  /** The sub-topology, by a number. */
  readonly at: number
  readonly isTable: boolean
  /** Records have another key since they were last together. */
  readonly rekeyed: boolean
  /** Parents, by their number, whose records come by a topic. */
  readonly hops: readonly number[]
}

interface Edge {
  readonly from: number
  readonly to: number
}

export class Places {
  readonly #found = new Map<string, Place>()
  readonly #joinedTo: number[] = []
  readonly #edges: Edge[] = []
  readonly #behindProcessors: number[] = []
  readonly #joined = new Map<string, number>()

  constructor({ nodes }: Program) {
    for (const node of nodes) {
      const place = this.#placeOf(node)
      this.#found.set(node.id, place)
      for (const { id } of [...(node.branches ?? []), ...(node.default ? [node.default] : [])])
        this.#found.set(id, place)
      if (node.processor) this.#behindProcessors.push(place.at)
    }
  }

  of(id: string): Place {
    return this.#found.get(id) as Place
  }

  /** Whether two places lie in one sub-topology that feeds itself by way of others. */
  isCircular(id: string): boolean {
    const at = this.#root(this.of(id).at)
    return this.#reached(this.#fedBy(at)).has(at)
  }

  /** Whether records that come over this hop may come back to it. */
  isCircularHop(parent: string, id: string): boolean {
    const [from, to] = [this.#root(this.of(parent).at), this.#root(this.of(id).at)]
    return this.#reached([to]).has(from)
  }

  /** Whether the records alone tell the time there: who feeds it is a processor, or lies behind one, or in a circle. */
  isUntimed(id: string): boolean {
    const at = this.#root(this.of(id).at)
    if (this.isCircular(id)) return true
    const sources = this.#behindProcessors.flatMap((each) => this.#fedBy(this.#root(each)))
    if (this.#reached(sources).has(at)) return true
    const circles = this.#edges.filter(({ from, to }) => this.#reached([to]).has(this.#root(from)))
    return this.#reached(circles.map(({ to }) => to)).has(at)
  }

  #fedBy(at: number): number[] {
    return this.#edges.filter(({ from }) => this.#root(from) === at).map(({ to }) => this.#root(to))
  }

  #reached(from: readonly number[]): Set<number> {
    const reached = new Set(from.map((each) => this.#root(each)))
    // The set grows while the loop walks it.
    for (const each of reached) for (const next of this.#fedBy(each)) reached.add(next)
    return reached
  }

  #root(at: number): number {
    const to = this.#joinedTo[at] as number
    return to === at ? at : this.#root(to)
  }

  #fresh(): number {
    this.#joinedTo.push(this.#joinedTo.length)
    return this.#joinedTo.length - 1
  }

  #behind(from: number): number {
    const to = this.#fresh()
    this.#edges.push({ from, to })
    return to
  }

  #meet(a: number, b: number): number {
    this.#joinedTo[this.#root(a)] = this.#root(b)
    return b
  }

  #placeOf(node: ProgramNode): Place {
    const [first, second] = parentsOf(node).map((id) => this.of(id))
    if (first === undefined) return { at: this.#fresh(), isTable: node.op !== 'stream', rekeyed: false, hops: [] }
    if (second !== undefined) return this.#placeOfTwo(node, first, second)
    const hop = (isTable: boolean): Place => ({ at: this.#behind(first.at), isTable, rekeyed: false, hops: [0] })
    const here = (change: Partial<Place>): Place => ({ ...first, hops: [], ...change })
    if (node.op === 'groupBy') return hop(first.isTable)
    if (node.op === 'groupByKey' || node.op === 'repartition' || node.op === 'toTable') {
      const isTable = node.op === 'toTable'
      return first.rekeyed || node.op === 'repartition' ? hop(isTable) : here({ isTable })
    }
    if (aggregates.has(node.op)) return here({ isTable: true })
    if (node.op === 'toStream') return here({ isTable: false, rekeyed: node.key !== undefined })
    return rekeying.has(node.op) ? here({ rekeyed: true }) : here({})
  }

  #placeOfTwo(node: ProgramNode, first: Place, second: Place): Place {
    const { isTable } = first
    if (node.foreignKey !== undefined) {
      // The rows of the left table go to the right one, whose answers come back.
      this.#edges.push({ from: first.at, to: second.at }, { from: second.at, to: first.at })
      return { at: first.at, isTable, rekeyed: false, hops: [] }
    }
    if (node.op === 'merge')
      return { at: this.#meet(first.at, second.at), isTable, rekeyed: first.rekeyed || second.rekeyed, hops: [] }
    // A global table is everywhere, and the join by any field of a record.
    if (node.key !== undefined) return { ...first, hops: [] }
    const [a = 0, b = 0] = parentsOf(node).map((id) => this.#together(id))
    const hops = [first, second].flatMap(({ rekeyed }, i) => (rekeyed ? [i] : []))
    return { at: this.#meet(a, b), isTable, rekeyed: false, hops }
  }

  /** Joins of one stream share the topic that brings its equal keys together. */
  #together(id: string): number {
    const { at, rekeyed } = this.of(id)
    const known = this.#joined.get(id)
    const to = known ?? (rekeyed ? this.#behind(at) : at)
    this.#joined.set(id, to)
    return to
  }
}
