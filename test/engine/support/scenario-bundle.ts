/**
 * Many scenarios in one application: each in sub-topologies of its own, with topics, stores and names of its own. So
 * that one running engine can do them all.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { contentOf } from '../../../conformance/run.ts'
import { type NamedStore, ScenarioBuilder } from '../../../conformance/build.ts'
import type { Json } from '../../../conformance/expr.ts'
import type { Scenario, ScenarioInput, ScenarioNode, ScenarioOutput } from '../../../conformance/scenario.ts'
import type { Topology } from '../../../src/index.ts'

export { contentOf, type NamedStore }

export interface Recorded extends Scenario {
  readonly tags?: readonly string[]
  readonly input: readonly ScenarioInput[]
  readonly expect: {
    readonly error?: string
    readonly output?: readonly ScenarioOutput[]
    readonly stores?: Readonly<Record<string, readonly Json[]>>
  }
}

export type InputRecord = Extract<ScenarioInput, { topic: string }>

export function recordsOf({ input }: Recorded): readonly InputRecord[] {
  return input.filter((item) => 'topic' in item)
}

/** Where the order of what is read does not depend on anything but the input: one topic, or timestamps in order. */
function hasOneOrder(scenario: Recorded): boolean {
  const { input } = scenario
  if (scenario.describeOnly || scenario.expect.error !== undefined) return false
  if (input.some((item) => 'advanceWallClockMs' in item)) return false
  const records = recordsOf(scenario)
  if (new Set(records.map((record) => record.topic)).size <= 1) return true
  return records.every((record, i) => i === 0 || record.timestamp >= (records[i - 1]?.timestamp ?? 0))
}

const timed = new Set(['windowedBy', 'suppress'])
const timedProcessors = new Set(['snapshot', 'expire', 'countdown', 'meta'])
const rekeying = new Set(['map', 'flatMap', 'selectKey', 'process', 'repartition', 'groupBy'])

/** Whether its results depend on event time: an application has one, so such a scenario needs one of its own. */
export function goesByTime({ topology }: Recorded): boolean {
  return topology.nodes.some(
    ({ op, window, grace, store, processor }) =>
      timed.has(op) ||
      window !== undefined ||
      grace !== undefined ||
      store?.type === 'versioned' ||
      timedProcessors.has(processor?.type ?? ''),
  )
}

/**
 * Whether records of one key come together from records of several: between those, lanes keep no order. Kafka Streams
 * has one in a single partition; there the next record is fed when all that follows from the one before is done.
 */
export function mixesKeys({ topology }: Recorded): boolean {
  return topology.nodes.some(
    (node) =>
      rekeying.has(node.op) || node.foreignKey !== undefined || (node.op === 'toStream' && node.key !== undefined),
  )
}

const folder = new URL('../../conformance-streams/scenarios/', import.meta.url)

export function eligibleScenarios(optimize: boolean): Recorded[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as readonly Recorded[])
    .filter((scenario) => hasOneOrder(scenario) && (scenario.optimize === true) === optimize)
}

/** Those that one application can hold together. */
export function timelessScenarios(optimize: boolean): Recorded[] {
  return eligibleScenarios(optimize).filter((scenario) => !goesByTime(scenario))
}

export function prefixOf(index: number): string {
  return `s${index}-`
}

/** The scenario with everything that must be unique in an application under the prefix. */
export function prefixed(scenario: Recorded, prefix: string): Recorded {
  const nodes = scenario.topology.nodes.map((node) => prefixedNode(node, prefix))
  const input = scenario.input.map((item) => ('topic' in item ? { ...item, topic: prefix + item.topic } : item))
  return { ...scenario, topology: { nodes }, input }
}

function prefixedNode(node: ScenarioNode, prefix: string): ScenarioNode {
  const { topicFrom, store, branches, processor, pattern, topics } = node
  const named = <T extends { readonly name?: string }>(item: T): T =>
    item.name === undefined ? item : { ...item, name: prefix + item.name }
  const concat = (expr: unknown): unknown => ({ fn: 'concat', parts: [{ fn: 'const', value: prefix }, expr] })
  return {
    ...named(node),
    ...(node.topic !== undefined && { topic: prefix + node.topic }),
    ...(topics && { topics: topics.map((topic) => prefix + topic) }),
    ...(pattern !== undefined && { pattern: `^${prefix}${pattern.replace(/^\^/, '')}` }),
    ...(topicFrom && { topicFrom: concat(topicFrom) as typeof topicFrom }),
    ...(store && { store: named(store) }),
    ...(node.storeName !== undefined && { storeName: prefix + node.storeName }),
    ...(processor && {
      processor: processor.store === undefined ? processor : { ...processor, store: prefix + processor.store },
    }),
    ...(branches && { branches: branches.map(named) }),
    ...(node.default && { default: named(node.default) }),
  }
}

/** Adds the scenarios to a topology; answers how each one's stores are to be read, by their name. */
export function buildBundle(topology: Topology, scenarios: readonly Recorded[]): Array<Map<string, NamedStore>> {
  return scenarios.map((scenario, i) => {
    const builder = new ScenarioBuilder(prefixed(scenario, prefixOf(i)))
    builder.build(topology)
    return builder.stores
  })
}
