/**
 * Counters in shared memory. Every lane and the engine thread own one block and are its only writer, but for the slots that
 * say so; the control thread reads them at any moment, also while the owner loops for ever. Plain stores of doubles: a reader may see a
 * value that is one step old, never a torn one.
 */

import { durationBounds, eventTimeBounds, histogramSlots, pollBounds, processBounds } from './histograms.ts'

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
  'currentTopic',
  'currentPartition',
  'currentOffset',
  'lastProgressMs',
  'heapUsedBytes',
  'cpuMs',
  'eventTimersFired',
  'wallClockTimersFired',
  'timersPending',
  'failures',
  'handedOff',
  'uncommittedBytes',
  'loopUtilization',
  'handedOverBytes',
  'takenOverBytes',
  'unwrittenBytes',
  'turnsBegun',
  'turnsEnded',
  'finishedRecords',
  'occupiedMs',
  'arrivedRecords',
  'givenRecords',
  'callMs',
  'slowestMs',
  'longestChain',
  'oldestCall',
  'oldestTopic',
  'oldestPartition',
  'oldestOffset',
  'oldestNode',
  'oldestSinceMs',
  'failingCalls',
  'failingTopic',
  'failingPartition',
  'failingOffset',
  'failingNode',
  'failingSinceMs',
  'hotKeyHash',
  'hotKeyTopic',
  'hotKeyPartition',
  'waitingMs',
  'doing',
  'doingSinceMs',
  'foldedUpdates',
  'steps',
  'storesMs',
  /** Set by the control thread: the runtime has ended, and the lane's stores may be another one's. */
  'abandoned',
] as const
export type LaneSlot = (typeof laneSlots)[number]

/** What a lane may be doing, by its number in `doing`; each with the slot of the time that is over. */
export const laneDoings = ['idleMs', 'busyMs', 'waitingMs', 'backpressuredMs'] as const
export type LaneDoing = (typeof laneDoings)[number]

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
  'bufferedBytes',
  'bufferedBytesPeak',
  'bufferedBytesLimit',
  'queuedOutputBytes',
] as const
export type EngineSlot = (typeof engineSlots)[number]

/** What a restart in place may be due to: codes of errors, and all others together. */
export const restartCauses = [
  'BROKER_UNREACHABLE',
  'TRANSACTION_ABORTED',
  'BARRIER_TIMEOUT',
  'LANE_FAILED',
  'STORE_CORRUPT',
  'FENCED',
  'OTHER',
] as const

/** A commit as a whole, then its phases, in their order. */
export const commitTimings = ['total', 'align', 'flush', 'offsets', 'endTransaction', 'apply'] as const

export const dropReasons = [
  'late',
  'null_key',
  'null_value',
  'deserialize',
  'handler',
  'negative_timestamp',
  'expired',
  'late_window',
  'out_of_order',
] as const
export const storeSlots = ['entries', 'bytes', 'gets', 'puts', 'restored'] as const

/** How many of each the topology has, and hence where things lie; the same on every thread. */
export interface CounterLayout {
  readonly nodes: number
  readonly subtopologies: number
  readonly stores: readonly string[]
  /** Topics that are known from the start, with a slot pair (records, bytes) in the engine's block. */
  readonly sourceTopics: readonly string[]
  readonly sinkTopics: readonly string[]
}

export const laneIndex = Object.fromEntries(laneSlots.map((name, i) => [name, i])) as Readonly<Record<LaneSlot, number>>
export const engineIndex = Object.fromEntries(engineSlots.map((name, i) => [name, i])) as Readonly<
  Record<EngineSlot, number>
>

export function laneBlockLength(layout: CounterLayout): number {
  return functionSlot(layout, layout.nodes, 'calls')
}
/** Records taken in, records done, drops by reason, what is known of the input. */
const subtopologySlots = 5 + dropReasons.length
export const nodeSlot = (_layout: CounterLayout, node: number): number => laneSlots.length + node
/** Of a node whose windows close in quiet: the earliest event time of what was held back above it then. The engine sets it. */
export const heldSlot = (layout: CounterLayout, node: number): number => laneSlots.length + layout.nodes + node
export const subtopologySlot = (layout: CounterLayout, subtopology: number): number =>
  laneSlots.length + 2 * layout.nodes + subtopology * subtopologySlots
/** Records that a sub-topology is done with, in this run. */
export const finishedSlot = (layout: CounterLayout, subtopology: number): number =>
  subtopologySlot(layout, subtopology) + 1
export const dropSlot = (layout: CounterLayout, subtopology: number, reason: number): number =>
  subtopologySlot(layout, subtopology) + 2 + reason
/**
 * Up to when it is known what came for a sub-topology. The next slots have for how long nobody could know, and how long one
 * look proves that nothing comes. The engine sets them.
 */
export const knownInputSlot = (layout: CounterLayout, subtopology: number): number =>
  dropSlot(layout, subtopology, dropReasons.length)
export const storeSlot = (layout: CounterLayout, store: number, slot: number): number =>
  subtopologySlot(layout, layout.subtopologies) + store * storeSlots.length + slot

/** First slots of a lane's histograms: time per record by sub-topology, … */
export const processHistogram = (layout: CounterLayout, subtopology: number): number =>
  storeSlot(layout, layout.stores.length, 0) + subtopology * histogramSlots(processBounds)
/** … age of records as they come in, by source topic, … */
export const sourceLatencyHistogram = (layout: CounterLayout, topic: number): number =>
  processHistogram(layout, layout.subtopologies) + topic * histogramSlots(eventTimeBounds)
/** … how far they lie behind the watermark, … */
export const latenessHistogram = (layout: CounterLayout, topic: number): number =>
  sourceLatencyHistogram(layout, layout.sourceTopics.length + topic)
/** … age of records as they go out, by sink topic, … */
export const sinkLatencyHistogram = (layout: CounterLayout, topic: number): number =>
  latenessHistogram(layout, layout.sourceTopics.length + topic)
/** … and how long reads (0) and writes (1) of a store take. */
export const storeDurationHistogram = (layout: CounterLayout, store: number, operation: 0 | 1): number =>
  sinkLatencyHistogram(layout, layout.sinkTopics.length) + (store * 2 + operation) * histogramSlots(processBounds)
/** Dead letters by the reason for which records became one. */
export const deadLetterSlot = (layout: CounterLayout, reason: number): number =>
  storeDurationHistogram(layout, layout.stores.length, 0) + reason

/** Of the function of a node: calls that are out, records that wait for their call, and how many may be out. */
export const functionSlots = ['calls', 'waiting', 'limit'] as const
export const functionSlot = (layout: CounterLayout, node: number, slot: (typeof functionSlots)[number]): number =>
  deadLetterSlot(layout, dropReasons.length) + node * functionSlots.length + functionSlots.indexOf(slot)

export function engineBlockLength(layout: CounterLayout): number {
  return lateTopicSlot(layout, 'sink', lateTopics)
}
/** Restarts by cause. */
export const restartCauseSlot = (layout: CounterLayout, cause: number): number =>
  sinkTopicSlot(layout, layout.sinkTopics.length) + cause
/** First slots of the engine's histograms. */
export const pollSecondsHistogram = (layout: CounterLayout): number => restartCauseSlot(layout, restartCauses.length)
export const pollRecordsHistogram = (layout: CounterLayout): number =>
  pollSecondsHistogram(layout) + histogramSlots(durationBounds)
export const commitHistogram = (layout: CounterLayout, timing: number): number =>
  pollRecordsHistogram(layout) + histogramSlots(pollBounds) + timing * histogramSlots(durationBounds)
/** Slot of a source topic's record count; the next one counts its bytes. */
export const sourceTopicSlot = (_layout: CounterLayout, topic: number): number => engineSlots.length + topic * 2
export const sinkTopicSlot = (layout: CounterLayout, topic: number): number =>
  engineSlots.length + layout.sourceTopics.length * 2 + topic * 2

/** Which topics are counted: those that are read, and those that are written. */
export type TopicKind = 'source' | 'sink'

/** Slots for topics that are known only as records come, of each kind. */
const lateTopics = 64
/** In the last of them. No topic can have this name. */
export const otherTopics = '(others)'
/** 249 characters, the most that a topic may have, behind their number. */
const nameBytes = 256
const lateTopicSlots = 2 + nameBytes / 8
/** Records, bytes, and then the name: whoever reads the block needs no other word of it. */
const lateTopicSlot = (layout: CounterLayout, kind: TopicKind, late: number): number =>
  commitHistogram(layout, commitTimings.length) + ((kind === 'source' ? 0 : lateTopics) + late) * lateTopicSlots

/** The number of its characters is written last and read first: a name is there as a whole or not at all. */
function nameOf(engine: Float64Array, slot: number): { length: Int32Array; text: Uint8Array } {
  const at = engine.byteOffset + (slot + 2) * 8
  return {
    length: new Int32Array(engine.buffer, at, 1),
    text: new Uint8Array(engine.buffer, at + 4, nameBytes - 4),
  }
}

function lateTopicsOf(layout: CounterLayout, engine: Float64Array, kind: TopicKind): string[] {
  const names: string[] = []
  while (names.length < lateTopics) {
    const { length, text } = nameOf(engine, lateTopicSlot(layout, kind, names.length))
    const characters = Atomics.load(length, 0)
    if (characters === 0) break
    names.push(Buffer.from(text.subarray(0, characters)).toString('latin1'))
  }
  return names
}

/**
 * Where the engine counts records of a topic; the next slot has their bytes. A topic that is news gets the next slot that is
 * free, and shares the last one with all that come later.
 */
export function topicSlot(layout: CounterLayout, engine: Float64Array, kind: TopicKind, topic: string): number {
  const known = (kind === 'source' ? layout.sourceTopics : layout.sinkTopics).indexOf(topic)
  if (known >= 0) return kind === 'source' ? sourceTopicSlot(layout, known) : sinkTopicSlot(layout, known)
  const names = lateTopicsOf(layout, engine, kind)
  const before = names.indexOf(topic)
  const late = before >= 0 ? before : Math.min(names.length, lateTopics - 1)
  const slot = lateTopicSlot(layout, kind, late)
  if (late === names.length) {
    const { length, text } = nameOf(engine, slot)
    const name = Buffer.from(late === lateTopics - 1 ? otherTopics : topic, 'latin1').subarray(0, text.length)
    text.set(name)
    Atomics.store(length, 0, name.length)
  }
  return slot
}

/** All topics of a kind that are counted by now. Their number only grows, and each keeps its place. */
export function countedTopics(
  { layout, engine }: Pick<CountersView, 'layout' | 'engine'>,
  kind: TopicKind,
): Array<{ readonly topic: string; readonly slot: number }> {
  const isSource = kind === 'source'
  const named = isSource ? layout.sourceTopics : layout.sinkTopics
  return [
    ...named.map((topic, i) => ({ topic, slot: isSource ? sourceTopicSlot(layout, i) : sinkTopicSlot(layout, i) })),
    ...lateTopicsOf(layout, engine, kind).map((topic, i) => ({ topic, slot: lateTopicSlot(layout, kind, i) })),
  ]
}

export function newBlock(length: number): Float64Array {
  return new Float64Array(new SharedArrayBuffer(length * 8))
}

/** What lanes have handed over to one another and not worked off: each counts what it gives and what it has done. */
export function handedOverBytes(lanes: readonly Float64Array[]): number {
  let bytes = 0
  for (const block of lanes) {
    bytes += (block[laneIndex.handedOverBytes] as number) - (block[laneIndex.takenOverBytes] as number)
  }
  return bytes
}

/** What the metrics read: one block a thread. */
export interface CountersView {
  readonly layout: CounterLayout
  readonly engine: Float64Array
  readonly lanes: readonly Float64Array[]
}
