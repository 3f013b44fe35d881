/** Random programs: sources, then step upon step on what there is, two to five levels deep, then sinks. */
import { Random } from '../../src/base/random.ts'
import type { WindowNode } from '../../conformance/scenario.ts'
import { failing } from './failing.ts'
import { joinSteps } from './generate-joins.ts'
import { type Flow, Growth, type Order, type Step } from './growth.ts'
import type { Program, ProgramNode, TopicSpec } from './program.ts'
import * as values from './values.ts'

const isStream = (flow: Flow): boolean => flow.kind === 'stream'

const mapValues: Step = (growth) => {
  const { random } = growth
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last')
  if (!flow) return
  const slow = growth.slow()
  growth.node('mapValues', flow, { value: values.otherValue(1 + random.int(9)), ...slow }, {})
}

const filter: Step = (growth) => {
  const { random } = growth
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last')
  if (!flow) return
  const pred = values.someOf(3, random.int(3))
  growth.node(random.pick(['filter', 'filterNot']), flow, { pred, ...growth.slow() }, { rate: flow.rate * 0.6 })
}

const flat: Step = (growth) => {
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last' && f.rate < 0.8)
  if (flow) growth.node('flatMapValues', flow, { list: values.doubled }, { rate: flow.rate * 2 })
}

const rekey: Step = (growth) => {
  const { random } = growth
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last')
  if (!flow) return
  const order = flow.order === 'total' ? 'total' : 'free'
  const n = 4 + random.int(20)
  const key = random.chance(0.5) ? values.field('g') : values.keyOf(values.field('a'), n)
  const next = { order, rekeyed: true, mixed: true, keys: 20 } as const
  const which = random.int(4)
  if (which === 0) growth.node('map', flow, { key, value: values.otherValue(3) }, next)
  else if (which === 1 && flow.rate < 0.8)
    growth.node(
      'flatMap',
      flow,
      { list: values.doubled, key, value: values.otherValue(3) },
      { ...next, rate: flow.rate * 2 },
    )
  else growth.node('selectKey', flow, { key, ...growth.slow() }, next)
}

const split: Step = (growth) => {
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last')
  if (!flow) return
  const [a, b] = [growth.id('branch'), growth.id('branch')]
  growth.add({
    id: growth.id('split'),
    op: 'split',
    from: flow.id,
    branches: [{ id: a, pred: values.small }],
    default: { id: b },
  })
  growth.use(flow)
  for (const id of [a, b]) growth.flow({ ...flow, id, rate: flow.rate * 0.5, uses: 0 })
}

const merge: Step = (growth) => {
  const one = growth.pick((f) => isStream(f) && f.order !== 'last' && f.rate < 1)
  const two = growth.pick((f) => isStream(f) && f.order !== 'last' && f.rate < 1 && f !== one)
  if (!one || !two) return
  growth.meet(one.place, two.place)
  const order = one.order === 'total' && two.order === 'total' ? 'total' : 'free'
  growth.node(
    'merge',
    one,
    {},
    {
      order,
      rekeyed: one.rekeyed || two.rekeyed,
      mixed: one.mixed || two.mixed,
      delay: Math.max(one.delay, two.delay),
      level: Math.max(one.level, two.level),
      rate: one.rate + two.rate,
      keys: Math.max(one.keys, two.keys),
    },
    two,
  )
}

const processors: Step = (growth) => {
  const { random } = growth
  const picked = growth.pick(
    (f) => isStream(f) && f.delay === 0 && (f.order === 'total' || (f.order === 'keyed' && !f.mixed)),
  )
  if (!picked) return
  const flow = growth.together(picked)
  const store = growth.id('store')
  const every = (5 + random.int(60)) * 1000
  const processor = { type: random.pick(growth.processors), store, everyMs: every, withinMs: every }
  const next = { rekeyed: processor.type !== 'countSeen' }
  if (processor.type === 'countSeen') {
    const seen = growth.node('processValues', flow, { processor }, { ...next, kind: 'part' })
    growth.node(
      'mapValues',
      seen,
      { value: { fn: 'set', of: values.field('value'), name: 'i', to: values.field('n') } },
      { kind: 'stream' },
    )
  } else if (processor.type === 'dedupe') growth.node('process', flow, { processor }, next)
  else growth.node('process', flow, { processor }, { ...next, order: 'keyed', rate: flow.rate * 0.7 })
}

export function windowOf(
  random: Random,
  delay: number,
  kinds: number,
): { window: WindowNode; held: number; factor: number } {
  const least = delay === 0 ? 0 : delay + 1000
  const grace = least + (random.chance(0.5) ? 0 : random.int(20) * 1000)
  const size = (2 + random.int(60)) * 1000
  switch (random.int(kinds)) {
    case 0:
      return { window: { type: 'tumbling', size, grace }, held: size + grace, factor: 1 }
    case 1: {
      const advance = Math.ceil(size / (2 + random.int(2)))
      return { window: { type: 'hopping', size, advance, grace }, held: size + grace, factor: 3 }
    }
    case 2: {
      const gap = (1 + random.int(10)) * 1000
      return { window: { type: 'session', gap, grace }, held: gap + grace + 1, factor: 2 }
    }
    default: {
      const diff = (1 + random.int(4)) * 1000
      return { window: { type: 'sliding', diff, grace }, held: diff + grace + 1, factor: 5 }
    }
  }
}

/** What an aggregate is made of; a count becomes a value of the common shape behind it. */
export function fold(random: Random, anyOrder: boolean, merges: boolean): Partial<ProgramNode> & { op: string } {
  const which = random.int(3)
  if (which === 0) return { op: 'count' }
  if (which === 1) return { op: 'reduce', reduce: anyOrder ? values.reducingSums : values.following }
  const agg = anyOrder ? values.summing : values.following
  return { op: 'aggregate', init: values.nothing, agg, ...(merges ? { merge: values.mergingSums } : {}) }
}

const aggregate: Step = (growth) => {
  const { random } = growth
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last')
  if (!flow) return
  const free = flow.order === 'free' || (flow.order === 'keyed' && flow.mixed)
  const group = growth.group(flow)
  const { op, ...rest } = fold(random, free, false)
  const order = free ? 'last' : flow.order
  const kind = op === 'count' ? 'part' : 'table'
  const table = growth.node(op, group, rest, { kind, order, keys: group.keys })
  if (op === 'count') growth.node('mapValues', table, { value: values.ofCount }, { kind: 'table' })
}

const windows: Step = (growth) => {
  const { random } = growth
  const flow = growth.pick((f) => isStream(f) && f.order !== 'last' && f.rate < 0.8)
  if (!flow) return
  const free = flow.order === 'free' || (flow.order === 'keyed' && flow.mixed)
  const { window, held, factor } = windowOf(random, flow.delay, flow.order === 'total' ? 4 : 3)
  // Which of a record's sliding windows is told first is open.
  const final = free || window.type === 'sliding' || random.chance(0.6)
  // A suppressed table of updates tells its windows' ends too.
  const suppressed = final && random.chance(0.4)
  const group = growth.group(flow)
  const emit = final && !suppressed ? { emit: 'onWindowClose' as const } : {}
  // Where records are folded anew the order of folding is nobody's business.
  const sets = window.type === 'session' || window.type === 'sliding'
  const cut = growth.node('windowedBy', group, { window, ...emit }, {})
  const { op, ...rest } = fold(random, free || sets, window.type === 'session')
  let told = growth.node(op, cut, rest, { kind: 'part', rate: flow.rate * factor })
  if (suppressed) told = growth.node('suppress', told, { until: 'windowCloses' }, {})
  const order = final ? 'keyed' : flow.order
  const delay = final ? held : flow.delay
  const kind = op === 'count' ? 'part' : 'stream'
  const stream = growth.node(
    'toStream',
    told,
    { key: values.innerKey },
    { kind, order, delay, rekeyed: true, rate: final ? flow.rate * 0.5 : flow.rate * factor },
  )
  const there = growth.node('filter', stream, { pred: values.isThere }, {})
  if (op === 'count') growth.node('mapValues', there, { value: values.ofCount }, { kind: 'stream' })
}

const toTable: Step = (growth) => {
  const flow = growth.pick((f) => isStream(f) && (f.order === 'total' || (f.order === 'keyed' && !f.mixed)))
  if (!flow) return
  growth.node(
    'toTable',
    flow,
    {},
    {
      kind: 'table',
      rekeyed: false,
      level: flow.level + (flow.rekeyed ? 1 : 0),
      place: growth.placeOf(flow),
    },
  )
}

const onTable: Step = (growth) => {
  const { random } = growth
  const table = growth.pick((f) => f.kind === 'table')
  if (!table) return
  const named = random.chance(0.3) ? { store: { name: growth.id('store') } } : {}
  if (random.chance(0.5)) growth.node('filter', table, { pred: values.someOf(3, random.int(3)), ...named }, {})
  else growth.node('mapValues', table, { value: values.otherValue(2), ...named }, {})
}

const groupTable: Step = (growth) => {
  const { random } = growth
  const table = growth.pick((f) => f.kind === 'table' && f.order !== 'last')
  if (!table) return
  const key = random.chance(0.5) ? values.field('g') : values.keyOf(values.field('a'), 9)
  const grouped = growth.node(
    'groupBy',
    table,
    { key, value: { fn: 'value' } },
    { kind: 'part', level: table.level + 1, place: growth.behind(table) },
  )
  const order = table.order === 'total' ? 'total' : 'last'
  const counts = random.chance(0.4)
  const folds = counts ? {} : { init: values.nothing, add: values.summing, sub: values.takingOut }
  const result = growth.node(counts ? 'count' : 'aggregate', grouped, folds, {
    order,
    keys: 12,
    rate: table.rate * 1.6,
  })
  if (counts) growth.node('mapValues', result, { value: values.ofCount }, { kind: 'table' })
}

const toStream: Step = (growth) => {
  const table = growth.pick((f) => f.kind === 'table')
  if (!table) return
  const stream = growth.node('toStream', table, {}, { kind: 'stream', rekeyed: false })
  if (table.order !== 'last') growth.node('filter', stream, { pred: values.isThere }, {})
}

const suppressForATime: Step = (growth) => {
  const table = growth.pick((f) => f.kind === 'table' && f.order === 'total')
  if (table)
    growth.node(
      'suppress',
      table,
      { until: 'timeLimit', ms: (1 + growth.random.int(30)) * 1000 },
      { order: 'last', isTimed: true },
    )
}

const steps: ReadonlyArray<readonly [weight: number, step: Step]> = [
  [2, mapValues],
  [1, filter],
  [1, flat],
  [5, rekey],
  [1, split],
  [2, merge],
  [2, processors],
  [3, aggregate],
  [4, windows],
  [2, toTable],
  [1, onTable],
  [2, groupTable],
  [3, toStream],
  [1, suppressForATime],
  ...joinSteps,
]

export interface GenerateOptions {
  readonly records?: number
  /** Steps that the reference model does not know. */
  readonly more?: ReadonlyArray<readonly [weight: number, step: Step]>
  /** Some functions fail on some records, and some values cannot be decoded. */
  readonly fails?: boolean
}

export interface Generated extends Program {
  readonly orders: Readonly<Record<string, Order>>
}

export function generate(
  seed: number,
  { records = 10_000, more = [], fails = false }: GenerateOptions = {},
): Generated {
  const random = new Random(seed)
  const streams = 1 + random.int(3)
  const tables = 1 + random.int(2)
  const topics: TopicSpec[] = []
  const growth = new Growth(random)
  const source = (kind: TopicSpec['kind'], name: string, weight: number, keys: number): void => {
    topics.push({ topic: name, kind, keys, weight })
    const op = kind === 'global' ? 'globalTable' : kind
    growth.add({ id: name, op, topic: name })
    growth.source(name, kind, keys)
  }
  for (let i = 0; i < streams; i++) source('stream', `stream-${i}`, 2 + random.int(3), 20 + random.int(60))
  for (let i = 0; i < tables; i++) source('table', `table-${i}`, 1 + random.int(2), 10 + random.int(20))
  if (random.chance(0.3)) source('global', 'global', 1, 30)
  const total = topics.reduce((sum, { weight }) => sum + weight, 0)
  for (const { topic, weight } of topics) growth.rate(topic, weight / total)
  const weighted = [...steps, ...more].flatMap(([weight, step]) => new Array<Step>(weight).fill(step))
  const depth = 2 + random.int(4)
  const atMost = 8 + random.int(10)
  for (let n = 0; n < 200; n++) {
    if (growth.nodes.length > 3 * atMost || (growth.deepest >= depth - 1 && n > atMost)) break
    if (growth.deepest >= depth) break
    random.pick(weighted)(growth)
  }
  growth.finish()
  const disorder = random.chance(0.5) ? 0 : random.int(6)
  const partitions = random.pick([1, 2, 4, 4])
  const program = { seed, nodes: growth.nodes, topics, records, partitions, disorder }
  const orders = growth.orders()
  return { ...(fails ? failing(program, (id) => growth.flowOf(id)) : program), orders }
}
