/**
 * What holds of a program's results where tables tell each changed row once per commit. What does not come from a table
 * is as ever. Of a table's updates some are told: in their order, the newest last. What is made of those updates has the
 * same content in the end where it is a table; where it is not, it depends on when commits come, and is not compared.
 */
import { Random } from '../../src/base/random.ts'
import type { Program, ProgramNode, Promised } from './program.ts'
import type { Results } from './results.ts'

/** `groups`: as `last`; but a group that rows have left within the commit in which they came was never there. */
export type Folded = Promised | 'updates' | 'some' | 'groups' | 'open'

interface State {
  readonly told: Folded
  /** A join with a stream finds the newest rows. */
  readonly isFresh: boolean
  /** It was made by the node of a window that has not closed. */
  readonly isWindows?: boolean
  /** What it tells comes with the old value of the last update that it held back, not with that of the last one it let out. */
  readonly isSuppressed?: boolean
}

/** Operators that say themselves that they tell every update, beside others of which each row is told once per commit. */
export function mixed(program: Program): Program {
  const random = new Random(program.seed ^ 0xe417)
  const keeping = new Set([...aggregates, 'table', 'toTable'])
  const windows = new Set(program.nodes.flatMap(({ id, op }) => (op === 'windowedBy' ? [id] : [])))
  const nodes = program.nodes.map((node) => {
    if (!keeping.has(node.op) || windows.has(String(node.from)) || random.chance(0.5)) return node
    return { ...node, tells: 'on-update' as const }
  })
  return { ...program, nodes }
}

const exact: State = { told: 'sequence', isFresh: true }
const open: State = { told: 'open', isFresh: false }
const content: State = { told: 'last', isFresh: false }
const groups: State = { told: 'groups', isFresh: false }
const folded: State = { told: 'updates', isFresh: true }

const isExact = ({ told, isFresh }: State): boolean => told === 'sequence' && isFresh

const aggregates = new Set(['count', 'reduce', 'aggregate'])
const alike = new Set(['groupByKey', 'repartition', 'peek', 'toStream'])
const tablesOnly = new Set(['updates', 'last', 'sequence'])
const tableStates = new Set([...tablesOnly, 'groups'])

export function foldedStates({ nodes }: Program): Map<string, State> {
  const states = new Map<string, State>()
  const kinds = new Map<string, ProgramNode>()
  for (const node of nodes) {
    kinds.set(node.id, node)
    const from = [node.from ?? []].flat().map((id) => states.get(id) ?? open)
    const state = stateOf(node, from, kinds)
    states.set(node.id, state)
    for (const branch of [...(node.branches ?? []), ...(node.default ? [node.default] : [])])
      states.set(branch.id, state)
  }
  return states
}

function stateOf(node: ProgramNode, from: readonly State[], nodes: ReadonlyMap<string, ProgramNode>): State {
  const [one = exact, two] = from
  if (from.length === 0) return node.op === 'table' ? folded : exact
  const parent = nodes.get([node.from ?? ''].flat()[0] as string)
  if (aggregates.has(node.op)) return aggregateOf(one, parent)
  if (node.op === 'suppress') {
    if (node.until === 'windowCloses') return one.isWindows ? exact : open
    if (!tableStates.has(one.told)) return open
    return { ...(one.told === 'groups' ? groups : content), isSuppressed: true }
  }
  if (from.some(({ isSuppressed }) => isSuppressed) && node.op !== 'toStream' && node.op !== 'mapValues') return open
  if (node.op === 'toTable') return isExact(one) ? folded : one.told === 'updates' ? content : open
  if (two !== undefined) return joinOf(node, one, two, isTable(node, nodes))
  if (isExact(one)) return one
  switch (node.op) {
    case 'groupBy':
      return isTable(node, nodes) && tablesOnly.has(one.told) ? groups : open
    case 'mapValues':
      return node.store === undefined ? one : { ...one, isFresh: false }
    case 'filter':
    case 'filterNot':
    case 'split':
      if (isTable(node, nodes)) return node.store === undefined ? one : { ...one, isFresh: false }
      return one.told === 'updates' || one.told === 'some' ? { told: 'some', isFresh: false } : open
    default:
      return alike.has(node.op) && !one.isWindows && node.key === undefined ? one : open
  }
}

/** Whether the node is made of a table. */
function isTable(node: ProgramNode, nodes: ReadonlyMap<string, ProgramNode>): boolean {
  const parent = nodes.get([node.from ?? ''].flat()[0] as string)
  if (parent === undefined) return false
  if (parent.op === 'table' || parent.op === 'toTable' || parent.op === 'suppress' || aggregates.has(parent.op))
    return true
  if (['mapValues', 'filter', 'filterNot', 'join', 'leftJoin', 'outerJoin'].includes(parent.op))
    return isTable(parent, nodes)
  return false
}

function aggregateOf(group: State, parent: ProgramNode | undefined): State {
  if (parent?.op === 'windowedBy') {
    if (!isExact(group)) return open
    return parent.emit === 'onWindowClose' ? exact : { ...folded, isWindows: true }
  }
  if (isExact(group)) return folded
  return group.told === 'groups' ? groups : open
}

function joinOf(node: ProgramNode, one: State, two: State, isOfTables: boolean): State {
  if (node.op === 'merge' || node.window !== undefined) return isExact(one) && isExact(two) ? exact : open
  if (isOfTables) return tablesOnly.has(one.told) && tablesOnly.has(two.told) ? content : open
  if (!isExact(one)) return open
  return two.isFresh && two.told !== 'open' ? exact : open
}

/** What can be compared of each topic. */
export function foldedPromises(program: Program): Map<string, Folded> {
  const states = foldedStates(program)
  const promises = new Map<string, Folded>()
  for (const { op, topic = '', from, promised = 'sequence' } of program.nodes) {
    if (op !== 'to') continue
    const { told } = states.get(from as string) ?? open
    if (told === 'sequence' || told === 'open') promises.set(topic, told === 'open' ? 'open' : promised)
    else if (promised === 'sequence' || told === 'last' || told === 'groups') promises.set(topic, told)
    else promises.set(topic, promised === 'last' ? 'last' : 'open')
  }
  return promises
}

const withoutTime = (item = ''): string => item.replace(/^\S+ /, '')
/** Of a group that has no rows any more: `i` counts them. */
const isEmpty = (item = ''): boolean => item.includes('"i":0}') || item.includes('"i":0,')
const isNull = (item: string | undefined): boolean => item === undefined || item.endsWith(' null')

/** What is wrong with a key's results, of which those found may be fewer. */
function faultOf(
  want: readonly string[],
  got: readonly string[],
  promised: 'updates' | 'some' | 'groups',
): string | undefined {
  if (promised === 'groups') {
    const [last, told] = [want.at(-1), got.at(-1)].map((item) =>
      isNull(item) || isEmpty(item) ? '' : withoutTime(item),
    )
    return last === told ? undefined : `the last one told is ${told}, the newest ${last}`
  }
  let at = 0
  // Which of several deletions in a row is told is open.
  for (const item of got.filter((each) => !isNull(each))) {
    while (at < want.length && want[at] !== item) at++
    if (at++ === want.length) return `${item} is told where it was no update`
  }
  if (promised === 'some') return undefined
  const [last, told] = [want.at(-1), got.at(-1)]
  if (isNull(last) ? isNull(told) : last === told) return undefined
  return `the last one told is ${told}, the newest ${last}`
}

/** One line a topic whose folded results are not what they may be; the others are compared as ever. */
export function foldedFaults(promises: ReadonlyMap<string, Folded>, expected: Results, found: Results): string[] {
  const faults: string[] = []
  for (const [topic, promised] of promises) {
    if (promised !== 'updates' && promised !== 'some' && promised !== 'groups') continue
    const [want, got] = [expected.get(topic), found.get(topic)]
    for (const key of new Set([...(want?.keys() ?? []), ...(got?.keys() ?? [])])) {
      const fault = faultOf(want?.get(key) ?? [], got?.get(key) ?? [], promised)
      if (fault === undefined) continue
      faults.push(`${topic} (${promised}): key ${key}: ${fault}`)
      break
    }
  }
  return faults
}
