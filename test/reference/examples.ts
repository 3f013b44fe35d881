/** Programs that somebody would write, beside the random ones. */
import type { Expr } from '../../conformance/expr.ts'
import type { Program, ProgramNode } from './program.ts'
import { joined, ofCount } from './values.ts'

const field = (name: string, of?: Expr): Expr => ({ fn: 'field', name, ...(of && { of }) })
const left: Expr = { fn: 'left' }
const right: Expr = { fn: 'right' }
const both: Expr = { fn: 'object', fields: { i: field('i', left), at: field('i', right), g: field('g', left) } }

const topics = [
  { topic: 'orders', kind: 'stream', keys: 50, weight: 1 },
  { topic: 'prices', kind: 'table', keys: 20, weight: 1 },
] as const

const orders: ProgramNode = { id: 'orders', op: 'stream', topic: 'orders' }
const slowed: ProgramNode = { id: 'slowed', op: 'mapValues', from: 'orders', value: { fn: 'value' }, slow: 3 }

function example(seed: number, records: number, slow: boolean, nodes: readonly ProgramNode[]): Program {
  const head = slow ? [orders, slowed] : [orders]
  return { seed, nodes: [...head, ...nodes], topics, records, partitions: 4, disorder: 0, paired: true }
}

const byProduct = (slow: boolean): ProgramNode => ({
  id: 'by-product',
  op: 'selectKey',
  from: slow ? 'slowed' : 'orders',
  key: field('g'),
})

/** Each order with the price of its product, told one millisecond before it. */
export function pricedOrders(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    { id: 'prices', op: 'table', topic: 'prices' },
    byProduct(slow),
    { id: 'priced', op: 'leftJoin', from: ['by-product', 'prices'], joiner: both },
    { id: 'out', op: 'to', from: 'priced', topic: 'priced' },
  ])
}

/** Each order with the price records of its time: two streams. */
export function pairedStreams(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    { id: 'prices', op: 'stream', topic: 'prices' },
    byProduct(slow),
    {
      id: 'paired',
      op: 'join',
      from: ['by-product', 'prices'],
      window: { before: 500, after: 500 },
      joiner: both,
    },
    { id: 'out', op: 'to', from: 'paired', topic: 'paired' },
  ])
}

/** The pairs counted in windows that tell their final result: three levels. */
export function pairsInWindows(seed: number, records: number, slow: boolean): Program {
  const { nodes, ...rest } = pairedStreams(seed, records, slow)
  return {
    ...rest,
    nodes: [
      ...nodes.slice(0, -1),
      {
        id: 'by-group',
        op: 'groupBy',
        from: 'paired',
        key: { fn: 'str', of: { fn: 'mod', a: field('i'), n: 5 } },
      },
      {
        id: 'windows',
        op: 'windowedBy',
        from: 'by-group',
        window: { type: 'tumbling', size: 60_000, grace: 5000 },
        emit: 'onWindowClose',
      },
      { id: 'counts', op: 'count', from: 'windows' },
      { id: 'told', op: 'toStream', from: 'counts', key: field('key', { fn: 'key' }) },
      { id: 'out', op: 'to', from: 'told', topic: 'counted', promised: 'set' },
    ],
  }
}

/** Products that nobody orders for a while: a timer a product, put off by each order, behind a re-key. */
export function quietProducts(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    byProduct(slow),
    { id: 'together', op: 'repartition', from: 'by-product' },
    {
      id: 'quiet',
      op: 'process',
      from: 'together',
      processor: { type: 'quiet', store: 'counts', withinMs: 7000 },
    },
    { id: 'out', op: 'to', from: 'quiet', topic: 'quiet' },
  ])
}

/** Each order with the newest one that names its customer: a stream joined with a table of its own, re-keyed. */
export function ownTable(seed: number, records: number, slow: boolean): Program {
  const key: Expr = {
    fn: 'concat',
    parts: [
      { fn: 'const', value: 'k' },
      { fn: 'mod', a: field('a'), n: 9 },
    ],
  }
  return example(seed, records, slow, [
    { id: 'again', op: 'selectKey', from: slow ? 'slowed' : 'orders', key },
    { id: 'newest', op: 'toTable', from: 'again' },
    { id: 'met', op: 'leftJoin', from: ['orders', 'newest'], joiner: both },
    { id: 'out', op: 'to', from: 'met', topic: 'met' },
  ])
}

/** Orders by product counted together with what has the product's key already. */
export function mergedCounts(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    { id: 'prices', op: 'stream', topic: 'prices' },
    byProduct(slow),
    { id: 'both', op: 'merge', from: ['by-product', 'prices'] },
    { id: 'by-key', op: 'groupByKey', from: 'both' },
    { id: 'counts', op: 'count', from: 'by-key' },
    { id: 'told', op: 'toStream', from: 'counts' },
    { id: 'out', op: 'to', from: 'told', topic: 'counted' },
  ])
}

/** Each customer's newest order with the price of its product, told anew with each change of either. */
export function pricedTable(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    { id: 'prices', op: 'table', topic: 'prices' },
    { id: 'newest', op: 'toTable', from: slow ? 'slowed' : 'orders' },
    { id: 'priced', op: 'leftJoin', from: ['newest', 'prices'], joiner: both, foreignKey: field('g') },
    { id: 'told', op: 'toStream', from: 'priced' },
    { id: 'out', op: 'to', from: 'told', topic: 'priced' },
  ])
}

/** Visits of customers, told when they end, and counted by product together with the orders: each task has its own timers. */
export function visitsByProduct(seed: number, records: number, slow: boolean): Program {
  const session = (gap: number, grace: number) => ({ type: 'session', gap, grace }) as const
  const source = slow ? 'slowed' : 'orders'
  return example(seed, records, slow, [
    { id: 'by-customer', op: 'groupByKey', from: source },
    { id: 'visiting', op: 'windowedBy', from: 'by-customer', window: session(4000, 3000), emit: 'onWindowClose' },
    { id: 'visits', op: 'reduce', from: 'visiting', reduce: { fn: 'value' } },
    { id: 'ended', op: 'toStream', from: 'visits', key: field('key', { fn: 'key' }) },
    { id: 'all', op: 'merge', from: ['ended', source] },
    { id: 'by-product', op: 'groupBy', from: 'all', key: field('g') },
    { id: 'running', op: 'windowedBy', from: 'by-product', window: session(1000, 6001), emit: 'onWindowClose' },
    { id: 'counts', op: 'count', from: 'running' },
    { id: 'told', op: 'toStream', from: 'counts', key: field('key', { fn: 'key' }) },
    { id: 'out', op: 'to', from: 'told', topic: 'counted', promised: 'set' },
  ])
}

/** How many rows there are by a name that they have; the counts are keyed as the rows are. */
const countedBy = (name: string, of: string): ProgramNode[] => [
  { id: `${name}-groups`, op: 'groupBy', from: of, key: field('g'), value: { fn: 'value' } },
  { id: `${name}-counts`, op: 'count', from: `${name}-groups` },
  { id: name, op: 'mapValues', from: `${name}-counts`, value: ofCount },
]

const ownCounts = (slow: boolean): ProgramNode[] => [
  { id: 'newest', op: 'toTable', from: slow ? 'slowed' : 'orders' },
  ...countedBy('once', 'newest'),
  { id: 'rows', op: 'leftJoin', from: ['newest', 'once'], joiner: joined, store: { name: 'rows' } },
]

/** A table with counts of itself, looked up by what the counts name: what passes through a stage between is not overtaken. */
export function rowsByOwnCounts(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    ...ownCounts(slow),
    { id: 'met', op: 'join', from: ['once', 'rows'], joiner: joined, foreignKey: field('g') },
    { id: 'told', op: 'toStream', from: 'met' },
    { id: 'out', op: 'to', from: 'told', topic: 'met' },
  ])
}

/** The same counted once more and joined with what it was made of: two ways of one change, one of them longer. */
export function twiceCounted(seed: number, records: number, slow: boolean): Program {
  return example(seed, records, slow, [
    ...ownCounts(slow),
    ...countedBy('twice', 'rows'),
    { id: 'deeper', op: 'leftJoin', from: ['rows', 'twice'], joiner: joined, store: { name: 'deeper' } },
    { id: 'met', op: 'leftJoin', from: ['newest', 'deeper'], joiner: joined, store: { name: 'met' } },
    { id: 'told', op: 'toStream', from: 'met' },
    { id: 'out', op: 'to', from: 'told', topic: 'met' },
  ])
}

export const examples = {
  pricedOrders,
  pairedStreams,
  pairsInWindows,
  quietProducts,
  ownTable,
  mergedCounts,
  pricedTable,
  visitsByProduct,
  rowsByOwnCounts,
  twiceCounted,
}
