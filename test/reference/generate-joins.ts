/** Joins of every kind, as steps of a program that grows. */
import type { Flow, Growth, Order, Step } from './growth.ts'
import * as values from './values.ts'

const total = (flow: Flow): boolean => flow.order === 'total'
const deeper = (flow: Flow): number => flow.level + (flow.rekeyed ? 1 : 0)

const streams: Step = (growth) => {
  const { random } = growth
  const fits = (flow: Flow): boolean =>
    flow.kind === 'stream' && flow.order !== 'last' && flow.rate > 0.02 && flow.rate < 0.7
  const one = growth.pick(fits)
  const two = growth.pick((flow) => fits(flow) && flow !== one)
  if (!one || !two) return
  const before = random.int(9) * 500
  const after = random.int(9) * 500
  const pairs = (one.rate * two.rate * (before + after) * 0.4) / 1000
  if (pairs > 1) return
  const place = growth.placeOf(one)
  growth.meet(place, growth.placeOf(two))
  const op = random.pick(['join', 'leftJoin', 'outerJoin'])
  const late = Math.max(one.delay, two.delay)
  const grace = (late === 0 ? 0 : late + 1000) + (random.chance(0.5) ? 0 : random.int(10) * 1000)
  const order: Order = total(one) && total(two) && op === 'join' ? 'total' : 'free'
  const waits = op === 'join' ? 0 : Math.max(before, after) + grace + 1
  growth.node(
    op,
    one,
    { window: { before, after, grace }, joiner: values.joined },
    {
      order,
      rekeyed: false,
      mixed: false,
      place,
      level: Math.max(deeper(one), deeper(two)),
      delay: Math.max(late, waits),
      rate: pairs + (op === 'join' ? 0 : one.rate),
    },
    two,
  )
}

const streamWithTable: Step = (growth) => {
  const stream = growth.pick((flow) => flow.kind === 'stream' && total(flow))
  const table = growth.pick((flow) => flow.kind === 'table' && total(flow))
  if (!stream || !table) return
  const level = Math.max(deeper(stream), table.level)
  const place = growth.placeOf(stream)
  growth.meet(place, table.place)
  growth.node(
    growth.random.pick(['join', 'leftJoin']),
    stream,
    { joiner: values.joined },
    { rekeyed: false, mixed: false, level, place },
    table,
  )
}

const streamWithGlobal: Step = (growth) => {
  const stream = growth.pick((flow) => flow.kind === 'stream' && flow.order !== 'last')
  const table = growth.pick((flow) => flow.kind === 'global')
  if (!stream || !table) return
  const op = growth.random.pick(['join', 'leftJoin'])
  growth.node(op, stream, { joiner: values.joined, key: values.field('g') }, {}, table)
}

const tables: Step = (growth) => {
  const one = growth.pick((flow) => flow.kind === 'table' && flow.rate < 1)
  const two = growth.pick((flow) => flow.kind === 'table' && flow.rate < 1 && flow !== one)
  if (!one || !two) return
  growth.meet(one.place, two.place)
  const op = growth.random.pick(['join', 'leftJoin', 'outerJoin'])
  const named = growth.random.chance(0.3) ? { store: { name: growth.id('store') } } : {}
  growth.node(
    op,
    one,
    { joiner: values.joined, ...named },
    {
      order: total(one) && total(two) ? 'total' : 'last',
      level: Math.max(one.level, two.level),
      rate: one.rate + two.rate,
    },
    two,
  )
}

/** Of tables of one origin each change comes by both, with an old row that never was: a foreign key is not left by it. */
function isOfTwoTables(growth: Growth, id: string): boolean {
  const node = growth.nodes.find((each) => each.id === id)
  if (node?.from === undefined || ['toTable', 'count', 'reduce', 'aggregate'].includes(node.op)) return false
  return Array.isArray(node.from) || isOfTwoTables(growth, node.from as string)
}

const foreignKeys: Step = (growth) => {
  const left = growth.pick(
    (flow) =>
      flow.kind === 'table' && total(flow) && flow.keys <= 30 && flow.rate < 0.5 && !isOfTwoTables(growth, flow.id),
  )
  const right = growth.pick((flow) => flow.kind === 'table' && total(flow) && flow.rate < 0.3)
  if (!left || !right || left === right) return
  const op = growth.random.pick(['join', 'leftJoin'])
  growth.node(
    op,
    left,
    { joiner: values.joined, foreignKey: values.field('g') },
    {
      // In which order a right row reaches its left rows is open.
      order: 'keyed',
      level: Math.max(left.level + 2, right.level + 1),
      rate: left.rate + right.rate * 4,
    },
    right,
  )
}

export const joinSteps: ReadonlyArray<readonly [weight: number, step: Step]> = [
  [4, streams],
  [5, streamWithTable],
  [1, streamWithGlobal],
  [2, tables],
  [7, foreignKeys],
]
