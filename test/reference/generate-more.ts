/**
 * Operators beyond those that the reference model knows, as steps of a program that grows, and stores that keep their rows to the
 * end: for programs of which two runs are compared with one another.
 */
import { Random } from '../../src/base/random.ts'
import type { StoreNode } from '../../conformance/scenario.ts'
export type { Generated } from './generate.ts'
import { fold, type Generated, generate, windowOf } from './generate.ts'
import type { Flow, Growth, Step } from './growth.ts'
import type { ProgramNode } from './program.ts'
import * as values from './values.ts'

const dayMs = 86_400_000
/** Past the records that end the input. */
const longMs = 365 * dayMs

const total = (flow: Flow): boolean => flow.order === 'total'

function grouped(growth: Growth, flow: Flow): Flow {
  const rest = { kind: 'part', rekeyed: false, mixed: false } as const
  if (!flow.rekeyed) return growth.node('groupByKey', flow, {}, rest)
  return growth.node('groupByKey', flow, {}, { ...rest, level: flow.level + 1, place: growth.behind(flow) })
}

const cogroup: Step = (growth) => {
  const { random } = growth
  const fits = (flow: Flow): boolean => flow.kind === 'stream' && flow.order !== 'last' && flow.rate < 0.8
  const one = growth.pick(fits)
  const two = growth.pick((flow) => fits(flow) && flow !== one)
  if (!one || !two) return
  const free = !total(one) || !total(two)
  const delay = Math.max(one.delay, two.delay)
  const cut = random.chance(0.5) ? windowOf(random, delay, 3) : undefined
  const merges = cut?.window.type === 'session'
  const agg = free || merges ? values.summing : values.following
  const [a, b] = [grouped(growth, one), grouped(growth, two)]
  growth.meet(a.place, b.place)
  const level = Math.max(a.level, b.level)
  const first = growth.node('cogroup', a, { agg }, { level })
  const second = growth.node('cogroup', first, { agg }, { level, rate: a.rate + b.rate }, b)
  const how = { init: values.nothing, ...(merges ? { merge: values.mergingSums } : {}) }
  if (cut === undefined) {
    growth.node('aggregate', second, how, { kind: 'table', order: free ? 'last' : 'total', keys: 60 })
    return
  }
  // These windows tell each update; of those only the last one is the same in every run.
  const windows = growth.node('windowedBy', second, { window: cut.window }, {})
  const updates = growth.node('aggregate', windows, how, { rate: second.rate * cut.factor })
  const told = growth.node('suppress', updates, { until: 'windowCloses' }, {})
  const next = { kind: 'stream', order: 'keyed', delay: cut.held, rekeyed: true, rate: second.rate * 0.5 } as const
  const stream = growth.node('toStream', told, { key: values.innerKey }, next)
  growth.node('filter', stream, { pred: values.isThere }, {})
}

const transformed: Step = (growth) => {
  const table = growth.pick((flow) => flow.kind === 'table')
  if (!table) return
  const named = growth.random.chance(0.5) ? { store: { name: growth.id('store') } } : {}
  growth.node('transformValues', table, { value: values.otherValue(4), ...named }, {})
}

/** A stream waits for the rows of its time in a table that knows earlier ones. */
const waiting: Step = (growth) => {
  const { random } = growth
  const stream = growth.pick((flow) => flow.kind === 'stream' && total(flow) && flow.delay === 0)
  const source = growth.pick((flow) => flow.kind === 'stream' && total(flow) && flow.delay === 0 && flow !== stream)
  if (!stream || !source) return
  const store: StoreNode = { name: growth.id('store'), type: 'versioned', historyRetentionMs: longMs }
  const level = source.level + (source.rekeyed ? 1 : 0)
  const place = growth.placeOf(source)
  // Nothing else goes on with it: a table of versions cannot be suppressed.
  const table = growth.node('toTable', source, { store }, { kind: 'part', rekeyed: false, level, place })
  const grace = random.int(8) * 1000
  const at = growth.placeOf(stream)
  growth.meet(at, table.place)
  const deeper = Math.max(stream.level + (stream.rekeyed ? 1 : 0), level)
  growth.node(
    random.pick(['join', 'leftJoin']),
    stream,
    { joiner: values.joined, grace },
    { rekeyed: false, mixed: false, level: deeper, place: at, order: 'keyed', delay: grace + 1 },
    table,
  )
}

const unlimited: Step = (growth) => {
  const flow = growth.pick((f) => f.kind === 'stream' && f.order !== 'last' && f.rate < 0.8)
  if (!flow) return
  const group = grouped(growth, flow)
  const cut = growth.node('windowedBy', group, { window: { type: 'unlimited', start: 0 } }, {})
  const { op, ...rest } = fold(growth.random, true, false)
  growth.node(op, cut, rest, { order: flow.order === 'total' ? 'total' : 'last' })
}

/** Two tables by window, joined. Apart from the other steps, so that seeds stand for the programs that they stood for. */
const joinedWindows: Step = (growth) => {
  const { random } = growth
  const fits = (flow: Flow): boolean => flow.kind === 'stream' && total(flow) && flow.rate < 0.5
  const one = growth.pick(fits)
  const two = growth.pick((flow) => fits(flow) && flow !== one)
  if (!one || !two) return
  const { window, factor } = windowOf(random, Math.max(one.delay, two.delay), 3)
  const tableOf = (flow: Flow): Flow => {
    const cut = growth.node('windowedBy', growth.group(flow), { window }, {})
    const isMerged = window.type === 'session'
    const how = isMerged ? { agg: values.summing, merge: values.mergingSums } : { agg: values.following }
    const rest = { init: values.nothing, ...how }
    return growth.node('aggregate', cut, rest, { kind: 'part', rate: flow.rate * factor })
  }
  const [left, right] = [tableOf(one), tableOf(two)]
  growth.meet(left.place, right.place)
  const next = { level: Math.max(left.level, right.level), rate: left.rate + right.rate }
  const pairs = growth.node(
    random.pick(['join', 'leftJoin', 'outerJoin']),
    left,
    { joiner: values.joined },
    next,
    right,
  )
  const stream = growth.node('toStream', pairs, { key: values.innerKey }, { kind: 'stream', rekeyed: true })
  growth.node('filter', stream, { pred: values.isThere }, {})
}

/** A program of what the model knows, that joins tables by window. */
export function generateWindowed(seed: number, records: number): Generated {
  return generate(seed, { records, more: [[25, joinedWindows]] })
}

const more: ReadonlyArray<readonly [weight: number, step: Step]> = [
  [3, cogroup],
  [2, transformed],
  [3, waiting],
  [1, unlimited],
]

const aggregates: ReadonlySet<string> = new Set(['count', 'reduce', 'aggregate'])

/** Every node and every store bears the name of its node, and windows stay longer than the input lasts. */
function kept(node: ProgramNode, windows: ReadonlySet<string>, isOrdered: boolean, random: Random): ProgramNode {
  const named = node.op === 'split' ? node : { ...node, name: node.id }
  const isOfWindows = windows.has(node.from as string)
  if (aggregates.has(node.op) && isOfWindows) return { ...named, store: { name: `of-${node.id}`, retentionMs: longMs } }
  const mayBeVersioned = node.op === 'table' || node.op === 'toTable' || aggregates.has(node.op)
  if (!isOrdered || !mayBeVersioned || node.store !== undefined || !random.chance(0.4)) return named
  const historyRetentionMs = random.pick([longMs, 60_000])
  return { ...named, store: { name: `of-${node.id}`, type: 'versioned', historyRetentionMs } }
}

/** A program of any operators; `orders` says what is the same in every run. */
export function generateAny(seed: number, records: number): Generated {
  const program = generate(seed, { records, more })
  const random = new Random(seed ^ 0x570e)
  const windows = new Set(program.nodes.filter(({ op }) => op === 'windowedBy').map(({ id }) => id))
  // A version that comes late is none of the newest row; and a table of versions cannot be suppressed.
  const mayBe = !program.nodes.some(({ until }) => until === 'timeLimit')
  const isOrdered = (id: string): boolean => mayBe && ['total', 'keyed'].includes(program.orders[id] ?? 'total')
  return { ...program, nodes: program.nodes.map((node) => kept(node, windows, isOrdered(node.id), random)) }
}
