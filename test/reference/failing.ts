/**
 * Functions that fail on some records, by what these hold, at once and behind a promise; and values that cannot be decoded. All
 * of it is drawn behind the program itself, which is the same without.
 */
import type { Expr } from '../../conformance/expr.ts'
import { Random } from '../../src/base/random.ts'
import type { Flow } from './growth.ts'
import type { Program, ProgramNode } from './program.ts'
import { constant, field } from './values.ts'

type FlowOf = (id: string) => Flow | undefined

const value: Expr = { fn: 'value' }
const left: Expr = { fn: 'left' }
const right: Expr = { fn: 'right' }
const there = (of: Expr): Expr => ({ fn: 'not', of: { fn: 'isNull', of } })
const add = (a: Expr, b: Expr): Expr => ({ fn: 'add', a, b })

/** Of a value or a count some few. */
const some = (a: Expr, n: number, rest: number): Expr => ({
  fn: 'eq',
  a: { fn: 'mod', a, n },
  b: constant(rest),
})

/** Its partners and their order are the same in every run. */
const isExact = (flow: Flow): boolean => flow.order === 'total' || (flow.order === 'keyed' && !flow.mixed)

/** What they tell of a record depends on what came before. */
const stateful = new Set([
  ...['count', 'reduce', 'aggregate', 'windowedBy', 'groupBy', 'groupByKey', 'suppress', 'toTable'],
  ...['join', 'leftJoin', 'outerJoin', 'process', 'processValues'],
])

class Failing {
  readonly random: Random
  readonly #program: Program
  readonly #flowOf: FlowOf
  /** Nodes by what they make. */
  readonly #made = new Map<string, ProgramNode>()

  constructor(program: Program, flowOf: FlowOf) {
    this.random = new Random(program.seed ^ 0xfa11)
    this.#program = program
    this.#flowOf = flowOf
    for (const node of program.nodes)
      for (const { id } of [node, ...(node.branches ?? []), ...(node.default ? [node.default] : [])])
        this.#made.set(id, node)
  }

  node(id: unknown): ProgramNode | undefined {
    return this.#program.nodes.find((node) => node.id === id)
  }

  parents({ from }: ProgramNode): Flow[] {
    return [from ?? []].flat().flatMap((id) => this.#flowOf(id) ?? [])
  }

  /** No first value of a window that is open to chance would be null. */
  get takesNulls(): boolean {
    return this.#program.nodes.every((node) => node.op !== 'reduce' || this.parents(node).every(isExact))
  }

  /** Whether the headers of each of its results are the same in every run. */
  hasOwnHeaders(node: ProgramNode): boolean {
    const flows = this.parents(node)
    if (stateful.has(node.op) && !flows.every(isExact)) return false
    return [node.from ?? []].flat().every((id) => {
      const parent = this.#made.get(id)
      return parent === undefined || this.hasOwnHeaders(parent)
    })
  }

  #when(a: Expr): Expr {
    const n = 5 + this.random.int(20)
    return some(a, n, this.random.int(n))
  }

  #ofValue(): Expr {
    return this.#when(add(field('a'), value))
  }

  #fails(node: ProgramNode, of: Expr, when = this.#ofValue(), about = value): Expr {
    return { fn: 'fail', as: node.id, when, about, of }
  }

  #joins(node: ProgramNode): ProgramNode {
    const both: Expr = {
      fn: 'and',
      of: [there(left), there(right), this.#when(add(field('a', left), field('h', right)))],
    }
    const about: Expr = { fn: 'list', items: [left, right] }
    return { ...node, joiner: this.#fails(node, node.joiner as Expr, both, about) }
  }

  #late(node: ProgramNode): ProgramNode {
    if (node.slow !== undefined || !this.random.chance(0.4)) return node
    const concurrency = this.random.chance(0.3) ? { concurrency: 1 + this.random.int(4) } : {}
    const again = this.random.chance(0.3)
    return { ...node, late: 1 + this.random.int(4), calls: { ...concurrency, again } }
  }

  /** Each record chooses its topic. */
  chooses(node: ProgramNode): ProgramNode {
    if (node.op !== 'to' || node.promised === 'last' || !this.random.chance(0.2)) return node
    const { topic = '' } = node
    const which: Expr = { fn: 'mod', a: field('a'), n: 2 }
    const topicFrom: Expr = { fn: 'concat', parts: [constant(`${topic}-`), which] }
    return { ...node, topics: [`${topic}-0`, `${topic}-1`], topicFrom: this.#fails(node, topicFrom) }
  }

  /** The node with functions that fail; the same where none may. */
  of(node: ProgramNode): ProgramNode {
    const [one, two] = this.parents(node)
    if (one === undefined || one.order === 'last') return node
    if (two !== undefined) return this.#ofTwo(node, one, two)
    const isTable = one.kind === 'table'
    switch (node.op) {
      case 'mapValues':
        return this.#late({ ...node, value: this.#fails(node, node.value as Expr) })
      case 'filter':
      case 'filterNot':
        return this.#late({ ...node, pred: this.#fails(node, node.pred as Expr) })
      case 'flatMapValues':
        return this.#late({ ...node, list: this.#fails(node, node.list as Expr) })
      case 'flatMap':
        return this.#late({ ...node, list: this.#fails(node, node.list as Expr) })
      case 'map':
        return this.#late({ ...node, value: this.#fails(node, node.value as Expr) })
      case 'selectKey':
        return this.#late({ ...node, key: this.#fails(node, node.key as Expr) })
      case 'split': {
        const [branch, ...more] = node.branches ?? []
        if (branch === undefined) return node
        return { ...node, branches: [{ ...branch, pred: this.#fails(node, branch.pred) }, ...more] }
      }
      case 'groupBy':
        return isTable && !isExact(one) ? node : { ...node, key: this.#fails(node, node.key as Expr) }
      case 'aggregate':
      case 'reduce':
        return this.#aggregates(node, one)
      case 'process':
      case 'processValues':
        return this.#late({ ...node, fails: { when: this.#ofValue(), after: this.random.chance(0.5) } })
      default:
        return node
    }
  }

  #aggregates(node: ProgramNode, group: Flow): ProgramNode {
    const parent = this.node([node.from].flat()[0])
    const window = parent?.op === 'windowedBy' ? parent.window : undefined
    // A window is folded anew from its records by the model.
    if (window !== undefined && 'type' in window && window.type === 'sliding') return node
    if (node.add !== undefined) {
      const which = this.random.pick(['add', 'sub'] as const)
      return isExact(group) ? { ...node, [which]: this.#fails(node, node[which] as Expr) } : node
    }
    const which = node.op === 'reduce' ? 'reduce' : 'agg'
    // Which value is the first, and not folded, is open.
    if (node.op === 'reduce' && !isExact(group)) return node
    return this.#late({ ...node, [which]: this.#fails(node, node[which] as Expr) })
  }

  #ofTwo(node: ProgramNode, one: Flow, two: Flow): ProgramNode {
    if (node.op === 'merge') return node
    const isGlobal = two.kind === 'global'
    if (!isGlobal && !(isExact(one) && isExact(two))) return node
    return this.#late(this.#joins(node))
  }
}

const functions = ['topicFrom', 'value', 'pred', 'list', 'key', 'joiner', 'agg', 'reduce', 'add', 'sub'] as const

/** Whether a function of the node fails on some records. */
export function mayFail(node: ProgramNode): boolean {
  const all = [...functions.map((name) => node[name]), ...(node.branches ?? []).map(({ pred }) => pred)]
  return node.fails !== undefined || all.some((expr) => expr?.fn === 'fail')
}

export function failing(program: Program, flowOf: FlowOf): Program {
  const failures = new Failing(program, flowOf)
  const { random } = failures
  const nodes = program.nodes.map((node) => {
    const candidate = failures.of(node)
    return random.chance(0.5) ? candidate : node
  })
  const undecodable = random.chance(0.6) ? 10 + random.int(100) : undefined
  const policy = random.chance(0.7) ? 'dead-letter' : 'skip'
  const headers = random.chance(0.6)
  const nulls = random.chance(0.4) && failures.takesNulls ? 5 + random.int(40) : undefined
  const streams = program.topics.flatMap(({ kind, topic }) => (kind === 'stream' ? [topic] : []))
  const timed = streams.filter(() => random.chance(0.25))
  const disorders = Object.fromEntries(
    streams.flatMap((topic) => (random.chance(0.25) ? [[topic, random.int(8)] as const] : [])),
  )
  return {
    ...program,
    timed,
    disorders,
    nodes: nodes
      .map((each) => failures.chooses(each))
      .map((node) => (node.op === 'to' && failures.hasOwnHeaders(node) ? { ...node, comparesHeaders: true } : node)),
    policy,
    headers,
    ...(undecodable !== undefined && { undecodable }),
    ...(nulls !== undefined && { nulls }),
  }
}
