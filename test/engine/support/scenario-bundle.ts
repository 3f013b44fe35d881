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
  if (scenario.describeOnly || scenario.expect.error !== undefined) return false
  const records = recordsOf(scenario)
  if (new Set(records.map((record) => record.topic)).size <= 1) return true
  return records.every((record, i) => i === 0 || record.timestamp >= (records[i - 1]?.timestamp ?? 0))
}

/** Such a scenario needs a clock that moves only when told to. */
export function turnsWallClock({ input }: Recorded): boolean {
  return input.some((item) => 'advanceWallClockMs' in item)
}

const timed = new Set(['windowedBy', 'suppress'])
const timedProcessors = new Set(['snapshot', 'expire', 'countdown', 'meta'])

/** Whether its results depend on event time: an application has one, so such scenarios go one after the other. */
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

const folder = new URL('../../conformance-streams/scenarios/', import.meta.url)

export function eligibleScenarios(optimize: boolean): Recorded[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as readonly Recorded[])
    .filter((scenario) => hasOneOrder(scenario) && (scenario.optimize === true) === optimize)
}

/** Those that one application can do at the same time. */
export function timelessScenarios(optimize: boolean): Recorded[] {
  return eligibleScenarios(optimize).filter((scenario) => !goesByTime(scenario) && !turnsWallClock(scenario))
}

/**
 * Those that one application can do one after the other, each in a time of its own. A timer that counts comes first, for
 * it counts from the beginning of the application; what has times of today comes last.
 */
export function timedScenarios(optimize: boolean): Recorded[] {
  const rank = ({ name }: Recorded): number => (countsTimers.has(name) ? -1 : timesOfToday.has(name) ? 1 : 0)
  return eligibleScenarios(optimize)
    .filter((scenario) => goesByTime(scenario) && !turnsWallClock(scenario))
    .sort((a, b) => rank(a) - rank(b))
    .map((scenario, index) => beginningLater(scenario, moveOf(scenario, index)))
}

/** An endless window that begins at an instant begins as much later as the times are moved. */
export function beginningLater(scenario: Recorded, by: number): Recorded {
  const nodes = scenario.topology.nodes.map((node) => {
    const { window } = node
    if (!window || !('type' in window) || window.start === undefined) return node
    return { ...node, window: { ...window, start: window.start + by } }
  })
  return { ...scenario, topology: { nodes } }
}

/** A processor without a store has one instance a lane, each with its own schedule: it ticks once for each of them. */
export const countsTimers = new Set(['punctuators/countdown'])

const timesOfToday = new Set(['tumbling/epoch'])

/** A multiple of every window and interval in use, so that moved windows are the same windows. */
const spacing = 1_163_962_800

/** By how much the times of a scenario are moved where others run before it in one application. */
export function moveOf(scenario: Recorded, index: number): number {
  return timesOfToday.has(scenario.name) ? 0 : (800 + index) * spacing
}

export function moved<S extends Recorded>(scenario: S, by: number): S {
  const input = scenario.input.map((item) => ('topic' in item ? { ...item, timestamp: item.timestamp + by } : item))
  return { ...scenario, input }
}

/** What was made of moved times, as if they had not been moved. */
export function movedBack(value: Json, by: number): Json {
  if (by === 0) return value
  const back = (text: string): string => {
    const time = Number(text)
    return Math.abs(time - by) < spacing / 2 ? `${time - by}` : text
  }
  return JSON.parse(JSON.stringify(value).replace(/\d{12,}/g, back)) as Json
}

/** Whether a window would begin below zero: there is none, but with moved times there is. */
export function beginsBelowZero(scenario: Recorded): boolean {
  const first = Math.min(...recordsOf(scenario).map((record) => record.timestamp))
  return scenario.topology.nodes.some(({ window }) => {
    if (!window || !('type' in window)) return false
    const length = window.type === 'hopping' ? window.size : window.type === 'sliding' ? window.diff : undefined
    return length !== undefined && first < length
  })
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
