/**
 * A scenario behind and ahead of records of other keys, all there before the engine starts. Event time stays what it was:
 * what lies ahead is older than the scenario's oldest record, what lies behind as old as its newest. The other records are
 * the scenario's own again, each time with other keys and other texts in their values.
 */
import { Unsupported } from '../../reference/model/parts.ts'
import { Model } from '../../reference/model/model.ts'
import { canonical, type Json, jsonOf } from '../../../conformance/expr.ts'
import { contentOf } from '../../../conformance/run.ts'
import { ScenarioBuilder } from '../../../conformance/build.ts'
import { ReferenceDriver } from '../../../conformance/reference/reference-driver.ts'
import type { ScenarioNode } from '../../../conformance/scenario.ts'
import { defineApp, type Topology } from '../../../src/index.ts'
import {
  buildBundle,
  countsTimers,
  type InputRecord,
  moved,
  type NamedStore,
  type Recorded,
  recordsOf,
  turnsWallClock,
} from './scenario-bundle.ts'
import { add, applicationId, found, type Outputs, type Running, sortedRows } from './scenario-results.ts'

/** Stands in every key and text of the other records; topics may be named by them. */
export const mark = '-_'
/** So many variants of the scenario's keys are in use. */
const variants = 100

const sourceOps = new Set(['stream', 'table', 'globalTable', 'globalStore'])

function topicsOf({ topology }: Recorded): string[] {
  const named = topology.nodes.flatMap(({ op, topic, topics }) =>
    sourceOps.has(op) ? [topic ?? [], topics ?? []] : [],
  )
  return named.flat(2)
}

/** Why a scenario is not run like this. */
export function whyLeftOut(scenario: Recorded, lanes = 1): string | undefined {
  if (lanes > 1 && countsTimers.has(scenario.name)) return 'a processor without a store counts in each lane'
  if (scenario.describeOnly || scenario.expect.error !== undefined) return 'nothing is run'
  if (turnsWallClock(scenario)) return 'it needs a clock that moves only when told to'
  if (scenario.topology.nodes.some(({ timestamp }) => timestamp !== undefined))
    return 'its records tell their times in their values'
  if (recordsOf(scenario).length === 0) return 'it has no input'
  const read = new Set([...topicsOf(scenario), ...recordsOf(scenario).map(({ topic }) => topic)])
  if (scenario.topology.nodes.some(({ op, topic }) => op === 'to' && topic !== undefined && read.has(topic)))
    return 'it reads what it writes'
  return undefined
}

const otherText = (text: string, variant: number): string => text.replace(/\w+/g, `$&${mark}${variant}`)

function otherValue(value: Json, variant: number): Json {
  if (typeof value === 'string') return otherText(value, variant)
  if (Array.isArray(value)) return value.map((item: Json) => otherValue(item, variant))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, otherValue(part as Json, variant)]))
}

export interface Surrounded {
  readonly scenario: Recorded
  /** All records, in the order in which they are written to their topics. */
  readonly input: readonly InputRecord[]
  /** The order in which the engine takes them. */
  readonly dispatched: readonly InputRecord[]
  /** Whether it takes the scenario's own records in the order in which they were recorded. */
  readonly inRecordedOrder: boolean
}

export function surrounded(scenario: Recorded, ahead: number, behind: number): Surrounded {
  const own = recordsOf(scenario)
  const times = own.map(({ timestamp }) => timestamp)
  const [first, last] = [Math.min(...times), Math.max(...times)]
  const missing = topicsOf(scenario).filter((topic) => own.every((record) => record.topic !== topic))
  const other = (record: InputRecord, n: number, timestamp: number): InputRecord => {
    const variant = Math.floor(n / own.length) % variants
    const key = otherText(record.key ?? 'none', variant) || mark
    return { topic: record.topic, key, value: otherValue(record.value, variant), timestamp }
  }
  const others = (count: number, timeOf: (n: number) => number): InputRecord[] => [
    // A topic without any record would hold event time back.
    ...missing.map((topic) => other({ ...(own[0] as InputRecord), topic }, 0, timeOf(0))),
    ...Array.from({ length: count }, (_, n) => other(own[n % own.length] as InputRecord, n, timeOf(n))),
  ]
  const input = [...others(ahead, (n) => first - ahead + n), ...own, ...others(behind, () => last)]
  const dispatched = inOrder(scenario, input)
  const set = new Set(own)
  const taken = dispatched.filter((record) => set.has(record))
  return { scenario, input, dispatched, inRecordedOrder: taken.every((record, i) => record === own[i]) }
}

/** Global tables first; then always the oldest head of all topics, of equally old ones the first by name. */
function inOrder(scenario: Recorded, input: readonly InputRecord[]): InputRecord[] {
  const queues = Map.groupBy(input, ({ topic }) => topic)
  const result = input.filter(({ topic }) => isGlobal(scenario, topic))
  const waiting = [...queues.keys()].sort().filter((topic) => !isGlobal(scenario, topic))
  const at = new Map(waiting.map((topic) => [topic, 0]))
  for (;;) {
    let oldest: InputRecord | undefined
    for (const topic of waiting) {
      const head = queues.get(topic)?.[at.get(topic) as number]
      if (head && (oldest === undefined || head.timestamp < oldest.timestamp)) oldest = head
    }
    if (oldest === undefined) return result
    result.push(oldest)
    at.set(oldest.topic, (at.get(oldest.topic) as number) + 1)
  }
}

const isGlobal = ({ topology }: Recorded, topic: string): boolean =>
  topology.nodes.some((node) => node.op.startsWith('global') && node.topic === topic)

export interface Word {
  readonly outputs: Outputs
  readonly stores: Readonly<Record<string, readonly Json[]>>
}

/** The word of the reference model, which knows no headers and no stores; undefined where it lacks what the scenario uses. */
export function ofModel({ scenario, dispatched }: Surrounded, by: number): Outputs | undefined {
  try {
    const model = new Model(scenario.topology.nodes)
    let watermark = Number.NEGATIVE_INFINITY
    for (const input of dispatched) {
      model.advance(watermark)
      if (!isGlobal(scenario, input.topic)) watermark = Math.max(watermark, input.timestamp)
      model.take(input, watermark)
    }
    model.advance(watermark)
    const outputs: Outputs = {}
    for (const { topic, key, value, timestamp } of model.outputs)
      add(outputs, topic, key, { value: value ?? null, timestamp }, by)
    return outputs
  } catch (error) {
    if (error instanceof Unsupported) return undefined
    throw error
  }
}

/** What the tasks give when they are run one after the other, one record at a time. */
export async function ofTasks({ scenario, dispatched }: Surrounded, by: number): Promise<Word> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const app = defineApp({
    applicationId: 'conformance',
    build(topology) {
      const builder = new ScenarioBuilder(scenario)
      builder.build(topology)
      kinds = builder.stores
    },
  })
  const driver = new ReferenceDriver(app, { config: scenario.optimize ? { 'topology.optimization': 'all' } : {} })
  for (const { topic, key, value, timestamp, headers } of dispatched)
    await driver.input(topic).pipe(key, value, { timestamp, headers: headers ?? [] })
  const outputs: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of driver.readAllOutputs())
    add(outputs, topic, jsonOf(key), { value: (value ?? null) as Json, timestamp, headers: headers as never }, by)
  const times = recordsOf(scenario).map(({ timestamp }) => timestamp)
  const stores: Record<string, Json[]> = {}
  for (const [store, how] of kinds) stores[store] = contentOf(driver.store(store), how, times)
  driver.close()
  return { outputs, stores }
}

/** Where the two words differ, and the tasks' stands. */
const ofTasksAlone = new Set([
  // A window that a late record opens: the model folds all that lies in it, the engine only what was in its neighbour.
  'sliding/random-5',
])

/** Whether this is what Kafka Streams gave the scenario's own keys. */
export function isAsRecorded({ expect }: Recorded, { outputs }: Word): boolean {
  const recorded: Outputs = {}
  for (const { topic, key, value, timestamp, headers } of expect.output ?? [])
    add(recorded, topic, key, { value: value ?? null, timestamp, headers: (headers ?? []) as Json }, 0)
  const own = Object.entries(outputs).filter(([id]) => !id.includes(mark))
  return firstOf(Object.fromEntries(own), recorded) === undefined
}

export interface Wanted extends Word {
  /** Undefined: the model does not know what the scenario uses. */
  readonly modelled: Outputs | undefined
}

export async function wordOn(surrounding: Surrounded, by: number): Promise<Wanted> {
  const modelled = ofTasksAlone.has(surrounding.scenario.name) ? undefined : ofModel(surrounding, by)
  return { ...(await ofTasks(surrounding, by)), modelled }
}

const withoutHeaders = (outputs: Outputs): Outputs =>
  Object.fromEntries(
    Object.entries(outputs).map(([id, list]) => [
      id,
      list.map((text) => {
        const { headers: _, ...shown } = JSON.parse(text) as Record<string, Json>
        return canonical(shown)
      }),
    ]),
  )

const changesKeys = new Set(['selectKey', 'map', 'flatMap', 'process'])
const keepsKeys = new Set([
  'filter',
  'filterNot',
  'mapValues',
  'flatMapValues',
  'peek',
  'merge',
  'split',
  'processValues',
])

/**
 * Sinks where several keys become one behind a part without stores: it is spread over the lanes by key, and between keys
 * lanes keep no order.
 */
function unordered({ topology: { nodes } }: Recorded): ReadonlySet<string> {
  const made = (id: string): ScenarioNode | undefined =>
    nodes.find((node) => node.id === id || node.branches?.some((b) => b.id === id) || node.default?.id === id)
  const mixes = (id: string): boolean => {
    const node = made(id)
    if (node === undefined) return false
    if (changesKeys.has(node.op) || (node.op === 'toStream' && node.key !== undefined)) return true
    return keepsKeys.has(node.op) && [node.from ?? []].flat().some(mixes)
  }
  const sinks = nodes.filter(({ op, from }) => op === 'to' && [from ?? []].flat().some(mixes))
  return new Set(sinks.map(({ topic, topicFrom }) => (topicFrom === undefined ? (topic ?? '') : '*')))
}

function sortedWhere(outputs: Outputs, topics: ReadonlySet<string>): Outputs {
  const isOne = (id: string): boolean => topics.has('*') || topics.has(id.split(' ')[0] ?? '')
  return Object.fromEntries(Object.entries(outputs).map(([id, list]) => [id, isOne(id) ? list.toSorted() : list]))
}

/** The first of what differs. */
function firstOf(found: Outputs, wanted: Outputs): string | undefined {
  const ids = [...new Set([...Object.keys(found), ...Object.keys(wanted)])].sort()
  const wrong = ids.filter((id) => JSON.stringify(found[id]) !== JSON.stringify(wanted[id]))
  const [id] = wrong
  if (id === undefined) return undefined
  const [a, b] = [found[id] ?? [], wanted[id] ?? []]
  const at = a.findIndex((item, i) => item !== b[i])
  const place = at < 0 ? a.length : at
  return `${wrong.length} of ${ids.length} differ; ${id} at ${place}: found ${a[place]} of ${a.length}, expected ${b[place]} of ${b.length}`
}

export async function difference(
  engine: Running,
  { scenario, input }: Surrounded,
  { outputs, stores, modelled }: Wanted,
  lanes: number,
  by: number,
): Promise<string | undefined> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const build = (topology: Topology): void => {
    kinds = buildBundle(topology, [scenario])[0] ?? kinds
  }
  defineApp({ applicationId, build }).compile()
  const placed = { scenario: moved(scenario, -by), index: 0, kinds, lanes, by }
  const results = await found(engine, placed, Object.keys(stores))
  const inputs = new Set(input.map(({ topic }) => topic))
  for (const id of Object.keys(results.outputs)) if (inputs.has(id.split(' ')[0] ?? '')) delete results.outputs[id]
  const open = lanes > 1 ? unordered(scenario) : new Set<string>()
  const wrong =
    modelled === undefined
      ? firstOf(sortedWhere(results.outputs, open), sortedWhere(outputs, open))
      : firstOf(sortedWhere(withoutHeaders(results.outputs), open), sortedWhere(modelled, open))
  if (wrong !== undefined) return `${modelled ? 'model' : 'tasks'}: ${wrong}`
  // What a store forgets is forgotten with its next change, also where a changelog still has it.
  if (scenario.tags?.includes('retention')) return undefined
  const known = Object.fromEntries(Object.keys(results.stores).map((name) => [name, stores[name] ?? []]))
  return firstOf(sortedRows(results.stores, by), sortedRows(known, by))
}
