/**
 * Counters in shared memory. Every lane and the engine thread own one block and are its only writer; the control
 * thread reads them at any moment, also while the owner loops for ever. Plain stores of doubles: a reader may see a
 * value that is one step old, never a torn one.
 */

/** Fixed slots of a lane's block; the per-node, per-sub-topology and per-store slots follow them. */
export const laneSlots = [
  'recordsReceived',
  'recordsProcessed',
  'queuedRecords',
  'inFlightAsync',
  'busyMs',
  'idleMs',
  'backpressuredMs',
  'heartbeats',
  'currentNode',
  'currentSource',
  'currentPartition',
  'currentOffset',
  'lastProgressMs',
  'heapUsedBytes',
  'cpuMs',
  'eventTimersFired',
  'wallClockTimersFired',
  'timersPending',
  'deadLetters',
  'failures',
  'handedOff',
  'uncommittedBytes',
] as const
export type LaneSlot = (typeof laneSlots)[number]

export const engineSlots = [
  'heartbeats',
  'lastTickMs',
  'recordsDispatched',
  'polls',
  'pollRecords',
  'rebalances',
  'commitsCommitted',
  'commitsAborted',
  'restarts',
  'sinkErrors',
  'scheduledRuns',
  'cpuMs',
  'heapUsedBytes',
] as const
export type EngineSlot = (typeof engineSlots)[number]

export const dropReasons = [
  'late',
  'null_key',
  'null_value',
  'deserialize',
  'handler',
  'negative_timestamp',
  'expired',
] as const
export const storeSlots = ['entries', 'bytes', 'gets', 'puts', 'restored'] as const

/** How many of each the topology has, and hence where things lie; the same on every thread. */
export interface CounterLayout {
  readonly nodes: number
  readonly subtopologies: number
  readonly stores: readonly string[]
  /** Topics with a slot pair (records, bytes) in the engine's block. */
  readonly sourceTopics: readonly string[]
  readonly sinkTopics: readonly string[]
}

export const laneIndex = Object.fromEntries(laneSlots.map((name, i) => [name, i])) as Readonly<Record<LaneSlot, number>>
export const engineIndex = Object.fromEntries(engineSlots.map((name, i) => [name, i])) as Readonly<
  Record<EngineSlot, number>
>

export function laneBlockLength(layout: CounterLayout): number {
  return (
    laneSlots.length +
    layout.nodes +
    layout.subtopologies * (1 + dropReasons.length) +
    layout.stores.length * storeSlots.length
  )
}
export const nodeSlot = (_layout: CounterLayout, node: number): number => laneSlots.length + node
export const subtopologySlot = (layout: CounterLayout, subtopology: number): number =>
  laneSlots.length + layout.nodes + subtopology * (1 + dropReasons.length)
export const dropSlot = (layout: CounterLayout, subtopology: number, reason: number): number =>
  subtopologySlot(layout, subtopology) + 1 + reason
export const storeSlot = (layout: CounterLayout, store: number, slot: number): number =>
  laneSlots.length + layout.nodes + layout.subtopologies * (1 + dropReasons.length) + store * storeSlots.length + slot

export function engineBlockLength(layout: CounterLayout): number {
  return engineSlots.length + (layout.sourceTopics.length + layout.sinkTopics.length) * 2
}
/** Slot of a source topic's record count; the next one counts its bytes. */
export const sourceTopicSlot = (_layout: CounterLayout, topic: number): number => engineSlots.length + topic * 2
export const sinkTopicSlot = (layout: CounterLayout, topic: number): number =>
  engineSlots.length + layout.sourceTopics.length * 2 + topic * 2

export function newBlock(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * 8))
}

/** What the metrics read: one block a thread. */
export interface CountersView {
  readonly layout: CounterLayout
  readonly engine: Float64Array
  readonly lanes: readonly Float64Array[]
}
