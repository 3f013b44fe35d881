/**
 * What holds of a program's results where sub-topologies exchange records through topics (concepts, "Through topics", and
 * decision 41), and how a program is made one of which as much as possible holds.
 *
 * - The order is that of event time, not that of dispatch: the same where no record is out of order. So programs are run
 *   without disorder.
 * - Where times are equal the order is that of offsets. What several tasks made of one record may come in any order, and
 *   whether it meets what else became of that record is open.
 * - Sub-topologies that feed each other in a circle take records as they come. Which row a record meets there is open. Of a
 *   foreign-key join whose result has a store the last row is right; so is what tables make of it.
 *   A group that its rows came to and left again may never have been told.
 * - A join of tables that are made of the same one tells a change of both by way of each. What it tells in between decides
 *   whether it tells a deletion.
 * - Behind a processor, and behind a circle, records alone tell the time: windows there may find records late, and timers
 *   depend on the partitions.
 * - Each task has a time of its own: what a suppression for a time has told last at the end depends on it.
 */
import { canonical } from '../../conformance/expr.ts'
import { mayFail } from './failing.ts'
import { foldedFaults } from './per-commit.ts'
import type { Program, ProgramNode, Promised } from './program.ts'
import { differences, type Results } from './results.ts'
import { parentsOf, Places } from './topic-places.ts'
import * as values from './values.ts'

/**
 * `sequence`: each key's results in their order, and records between keys in the order of time. `set`: the same results in any
 * order. `last`: the newest row of each key. `groups`: the same, but an empty one may be missing. `open`: nothing.
 */
type Told = Promised | 'groups' | 'open'

interface State {
  readonly told: Told
  /** Source topics that it is made of. */
  readonly of: ReadonlySet<string>
  /** Several results of one record: 0 none; 1 of one task; 2 behind a topic, hence of several. */
  readonly twins: 0 | 1 | 2
  /** Results lie behind the time at which they are told: they come in another order than that of their causes. */
  readonly isHeldBack: boolean
  /** A function failed on some of the table's updates, or fails on rows that are read: below, old rows are not ended. */
  readonly isCut?: boolean
}

const aggregates: ReadonlySet<string> = new Set(['count', 'reduce', 'aggregate'])
const multiplying: ReadonlySet<string> = new Set(['flatMap', 'flatMapValues'])
const ofAnyOrder = new Set([values.summing, values.reducingSums].map((expr) => canonical(expr as never)))

const isIn = (told: Told, ...wanted: readonly Told[]): boolean => wanted.includes(told)
const isOfOne = (a: State, b: State): boolean => [...a.of].some((topic) => b.of.has(topic))

class Telling {
  readonly #program: Program
  readonly #places: Places
  readonly #nodes = new Map<string, ProgramNode>()
  readonly #states = new Map<string, State>()

  constructor(program: Program) {
    this.#program = program
    this.#places = new Places(program)
    for (const node of program.nodes) {
      this.#nodes.set(node.id, node)
      const state = this.#withFailures(node, this.#stateOf(node))
      for (const { id } of [node, ...(node.branches ?? []), ...(node.default ? [node.default] : [])])
        this.#states.set(id, state)
    }
  }

  of(id: string): State {
    return this.#states.get(id) as State
  }

  /** Where a function fails on some of the updates, it matters which there are: the newest one that it takes is what is left. */
  #withFailures(node: ProgramNode, state: State): State {
    const parents = parentsOf(node)
    const isOfTables = parents.some((id) => this.#places.of(id).isTable)
    const isCut = isOfTables && !aggregates.has(node.op) && (mayFail(node) || parents.some((id) => this.of(id).isCut))
    const isOfAnyOrder = state.told === 'set' && parents.length === 1
    const isSame = state.told === 'sequence' || isOfAnyOrder
    const isOpen = (mayFail(node) && (node.add !== undefined || !isSame)) || (isCut && !isSame)
    return { ...state, isCut, told: isOpen ? 'open' : state.told }
  }

  /** What comes of a parent once it is where the node is. */
  #arrived(node: ProgramNode, parent: string, i: number): State {
    const state = this.of(parent)
    if (!this.#places.of(node.id).hops.includes(i)) return state
    const isTable = this.#places.of(parent).isTable
    const twins = state.twins === 0 ? 0 : 2
    const losesOrder =
      this.#places.isCircularHop(parent, node.id) ||
      state.twins === 2 ||
      state.isHeldBack ||
      this.#places.isUntimed(parent)
    if (!losesOrder || state.told !== 'sequence') return { ...state, twins }
    return { ...state, twins, told: isTable ? 'last' : 'set' }
  }

  #stateOf(node: ProgramNode): State {
    const parents = parentsOf(node)
    const [one, two] = parents.map((id, i) => this.#arrived(node, id, i))
    if (one === undefined) return { told: 'sequence', of: new Set([node.topic ?? '']), twins: 0, isHeldBack: false }
    if (two !== undefined) return this.#ofTwo(node, one, two)
    const { told } = one
    if (aggregates.has(node.op)) return this.#aggregated(node, one)
    if (multiplying.has(node.op)) return told === 'last' ? { ...one, told: 'open' } : { ...one, twins: one.twins || 1 }
    const isTable = this.#places.of(parents[0] as string).isTable
    if (told === 'groups' && node.op !== 'mapValues' && node.op !== 'toStream') return { ...one, told: 'open' }
    switch (node.op) {
      case 'groupBy':
        return isTable ? { ...one, told: told === 'last' ? 'groups' : told, twins: 2 } : one
      case 'toTable':
        return told === 'set' ? { ...one, told: 'open' } : one
      case 'suppress':
        return node.until === 'windowCloses' ? one : { ...one, told: 'open' }
      case 'process':
      case 'processValues':
        return this.#processed(node, one)
      case 'filter':
      case 'filterNot':
      case 'split':
      case 'selectKey':
      case 'map':
        return told === 'last' && !isTable ? { ...one, told: 'open' } : one
      default:
        return one
    }
  }

  #processed(node: ProgramNode, one: State): State {
    if (node.processor?.type !== 'spans') return isIn(one.told, 'sequence') ? one : { ...one, told: 'open' }
    const told = this.#places.isUntimed(node.id) ? 'open' : one.told
    return { ...one, told, twins: one.twins || 1, isHeldBack: true }
  }

  #aggregated(node: ProgramNode, one: State): State {
    const grouping = this.#nodes.get(parentsOf(node)[0] as string) as ProgramNode
    const isOfTable = node.add !== undefined || this.#places.of(grouping.id).isTable
    if (isOfTable) return one
    const anyOrder = node.op === 'count' || ofAnyOrder.has(canonical((node.agg ?? node.reduce) as never))
    if (grouping.op !== 'windowedBy') {
      if (one.told === 'sequence') return one
      return { ...one, told: one.told === 'set' && anyOrder ? 'last' : 'open' }
    }
    const isFinal = grouping.emit === 'onWindowClose' || this.#isSuppressed(node.id)
    const closed = { ...one, twins: one.twins || 1, isHeldBack: isFinal || one.isHeldBack } as const
    if (this.#places.isUntimed(node.id)) return { ...closed, told: 'open' }
    if (one.told === 'sequence') return closed
    return { ...closed, told: one.told === 'set' && isFinal && anyOrder ? 'sequence' : 'open' }
  }

  #isSuppressed(id: string): boolean {
    return this.#program.nodes.some(({ op, from }) => op === 'suppress' && from === id)
  }

  #ofTwo(node: ProgramNode, one: State, two: State): State {
    const both = { of: new Set([...one.of, ...two.of]), isHeldBack: one.isHeldBack || two.isHeldBack }
    const twins = one.twins === 2 || two.twins === 2 ? 2 : one.twins || two.twins
    const told = this.#toldOfTwo(node, one, two)
    if (node.op !== 'merge' && node.window !== undefined)
      return { ...both, told, twins: twins || 1, isHeldBack: both.isHeldBack || node.op !== 'join' }
    return { ...both, told, twins: node.op === 'merge' && isOfOne(one, two) ? 2 : twins }
  }

  #toldOfTwo(node: ProgramNode, one: State, two: State): Told {
    const [a, b] = [one.told, two.told]
    const [left, right] = parentsOf(node).map((id) => this.#places.of(id))
    const isPlain = !isOfOne(one, two) && !one.isHeldBack && !two.isHeldBack
    const areStreams = isIn(a, 'sequence', 'set') && isIn(b, 'sequence', 'set')
    if (node.foreignKey !== undefined) {
      const areRows = isIn(a, 'sequence', 'last') && isIn(b, 'sequence', 'last')
      return areRows && node.store?.name !== undefined ? 'last' : 'open'
    }
    const inOrder = a === 'sequence' && b === 'sequence' && isPlain && !this.#places.isCircular(node.id)
    if (node.op === 'merge') return inOrder ? 'sequence' : areStreams ? 'set' : 'open'
    if (left?.isTable) {
      if (inOrder) return 'sequence'
      if (isOfOne(one, two)) return 'open'
      return isIn(a, 'sequence', 'last') && isIn(b, 'sequence', 'last') ? 'last' : 'open'
    }
    if (node.window !== undefined) {
      if (this.#places.isUntimed(node.id) || !areStreams) return 'open'
      return inOrder && node.op === 'join' ? 'sequence' : 'set'
    }
    // A global table is there before all else.
    if (right?.isTable && node.key !== undefined) return a
    return inOrder ? 'sequence' : 'open'
  }
}

/** Each foreign-key join's result has a store, and no record is out of order. */
export function forTopics(program: Program): Program {
  const kept = (node: ProgramNode): ProgramNode =>
    node.foreignKey === undefined || node.store ? node : { ...node, store: { name: `kept-${node.id}` } }
  return { ...program, disorder: 0, disorders: {}, nodes: program.nodes.map(kept) }
}

/** What can be compared of each topic. */
export function topicPromises(program: Program): Map<string, Told> {
  const telling = new Telling(program)
  const promises = new Map<string, Told>()
  for (const node of program.nodes) {
    if (node.op !== 'to') continue
    const { told } = telling.of(parentsOf(node)[0] as string)
    // Which of a row's values is the newest of a topic that the value chooses is open where others lie between.
    const isChosen = node.topicFrom !== undefined && !isIn(told, 'sequence', 'set')
    promises.set(node.topic ?? '', isChosen ? 'open' : least(node.promised ?? 'sequence', told))
  }
  return promises
}

function least(a: Promised, b: Told): Told {
  if (b === 'open' || b === 'groups') return a === 'set' ? 'open' : b
  if (a === 'last' || b === 'last') return a === 'set' || b === 'set' ? 'open' : 'last'
  return a === 'set' ? 'set' : b
}

const withPromise = (node: ProgramNode, promised: Promised): ProgramNode => {
  // In another order another record may have been the last one that made the result.
  const comparesHeaders = node.comparesHeaders === true && promised === 'sequence'
  return { ...node, promised, comparesHeaders }
}

/** What differs from the model, of what can be compared. */
export function topicFaults(program: Program, expected: Results, found: Results): string[] {
  const promises = topicPromises(program)
  const nodes = program.nodes.flatMap((node) => {
    const promised = promises.get(node.topic ?? '')
    if (node.op !== 'to') return [node]
    return promised === undefined || promised === 'open' || promised === 'groups' ? [] : [withPromise(node, promised)]
  })
  const groups = new Map([...promises].flatMap(([topic, told]) => (told === 'groups' ? [[topic, told] as const] : [])))
  return [...differences({ ...program, nodes }, expected, found), ...foldedFaults(groups, expected, found)]
}
