/** Makes a program that fails as small as it goes: first fewer records, then fewer ends, then fewer steps between. */
import type { Program, ProgramNode } from './program.ts'

type Fails = (program: Program) => Promise<boolean>

const parentsOf = ({ from }: ProgramNode): readonly string[] => (from === undefined ? [] : [from].flat())
const namesOf = (node: ProgramNode): string[] => [
  node.id,
  ...(node.branches ?? []).map(({ id }) => id),
  ...(node.default ? [node.default.id] : []),
]

/** Without what leads to no end. */
function pruned(nodes: readonly ProgramNode[]): ProgramNode[] {
  let kept = [...nodes]
  for (;;) {
    const used = new Set(kept.flatMap(parentsOf))
    const next = kept.filter((node) => node.op === 'to' || namesOf(node).some((name) => used.has(name)))
    if (next.length === kept.length) return next
    kept = next
  }
}

/** A step that gives records or rows of the kind that it takes may be left out. */
const skippable = new Set([
  'mapValues',
  'filter',
  'filterNot',
  'flatMapValues',
  'selectKey',
  'map',
  'flatMap',
  'repartition',
  'merge',
  'process',
  'join',
  'leftJoin',
  'outerJoin',
])

function without(nodes: readonly ProgramNode[], gone: ProgramNode, to: string): ProgramNode[] {
  const moved = (id: string): string => (id === gone.id ? to : id)
  return nodes
    .filter((node) => node !== gone)
    .map((node) => {
      if (node.from === undefined) return node
      return { ...node, from: typeof node.from === 'string' ? moved(node.from) : node.from.map(moved) }
    })
}

function* smaller(nodes: readonly ProgramNode[]): Generator<ProgramNode[]> {
  const sinks = nodes.filter(({ op }) => op === 'to')
  for (const sink of sinks) if (sinks.length > 1) yield pruned([...nodes.filter(({ op }) => op !== 'to'), sink])
  for (const sink of sinks) if (sinks.length > 1) yield pruned(nodes.filter((node) => node !== sink))
  for (const node of [...nodes].reverse()) {
    if (!skippable.has(node.op)) continue
    for (const parent of parentsOf(node)) yield pruned(without(nodes, node, parent))
  }
  for (const node of nodes) {
    if (node.slow === undefined) continue
    const { slow: _, ...plain } = node
    yield nodes.map((each) => (each === node ? plain : each))
  }
}

export async function shrink(program: Program, fails: Fails, say: (line: string) => void): Promise<Program> {
  let least = program
  const tried = async (candidate: Program): Promise<boolean> => {
    if (!(await fails(candidate))) return false
    least = candidate
    say(`${candidate.records} records, ${candidate.nodes.length} nodes`)
    return true
  }
  for (let records = program.records >> 1; records >= 50; records >>= 1) {
    if (!(await tried({ ...least, records }))) break
  }
  for (let again = true; again; ) {
    again = false
    for (const nodes of smaller(least.nodes)) {
      if (!(await tried({ ...least, nodes }))) continue
      again = true
      break
    }
  }
  return least
}
