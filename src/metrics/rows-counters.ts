import {
  countedTopics,
  type CountersView,
  deadLetterSlot,
  functionSlot,
  type functionSlots,
  dropReasons,
  dropSlot,
  type EngineSlot,
  engineIndex,
  type LaneDoing,
  laneDoings,
  type LaneSlot,
  laneIndex,
  nodeSlot,
  otherTopics,
  restartCauseSlot,
  restartCauses,
  storeSlot,
  storeSlots,
  subtopologySlot,
  type TopicKind,
  handedOverBytes,
} from '../base/counters.ts'
import { type MetricRow, type Moment, type Sample, single } from './table-types.ts'

/** Larger topologies show their first nodes only. */
export const maxNodeSeries = 500

const read = (block: Float64Array | undefined, slot: number): number => block?.[slot] ?? 0

function engineValue({ counters }: Moment, slot: EngineSlot): Sample[] {
  return counters === null ? [] : single(read(counters.engine, engineIndex[slot]))
}

function perLane({ counters }: Moment, slot: LaneSlot, divisor = 1): Sample[] {
  return (counters?.lanes ?? []).map((block, lane) => ({
    labels: { lane: `lane-${lane}` },
    value: read(block, laneIndex[slot]) / divisor,
  }))
}

function laneTimeMs(block: Float64Array, doing: LaneDoing, now: number): number {
  const sinceMs = read(block, laneIndex.doingSinceMs)
  const goesOn = sinceMs > 0 && laneDoings[read(block, laneIndex.doing)] === doing
  return read(block, laneIndex[doing]) + (goesOn ? Math.max(0, now - sinceMs) : 0)
}

function sumOfLanes(counters: CountersView, slot: number): number {
  return counters.lanes.reduce((sum, block) => sum + read(block, slot), 0)
}

function perStore({ counters }: Moment, slot: (typeof storeSlots)[number]): Sample[] {
  if (counters === null) return []
  const index = storeSlots.indexOf(slot)
  return counters.layout.stores.map((store, i) => ({
    labels: { store },
    value: sumOfLanes(counters, storeSlot(counters.layout, i, index)),
  }))
}

function perTopic({ counters }: Moment, kind: TopicKind, offset: 0 | 1): Sample[] {
  if (counters === null) return []
  const { engine } = counters
  return countedTopics(counters, kind).map(({ topic, slot }) => ({
    labels: { topic },
    value: read(engine, slot + offset),
  }))
}

const engineCounter = (name: string, slot: EngineSlot, help: string): MetricRow => ({
  name,
  type: 'counter',
  labels: [],
  help,
  source: 'shared counters',
  samples: (moment) => engineValue(moment, slot),
})
const engineGauge = (name: string, slot: EngineSlot, help: string): MetricRow => ({
  ...engineCounter(name, slot, help),
  type: 'gauge',
})
const laneMetric = (name: string, type: MetricRow['type'], slot: LaneSlot, help: string, divisor = 1): MetricRow => ({
  name,
  type,
  labels: ['lane'],
  help,
  source: 'shared counters',
  samples: (moment) => perLane(moment, slot, divisor),
})
/** The four times of a lane are the wall clock's together, also while it is stuck: what goes on counts up to now. */
const laneTime = (name: string, doing: LaneDoing, help: string): MetricRow => ({
  ...laneMetric(name, 'counter', doing, help, 1000),
  samples: ({ counters, nowMs }) =>
    (counters?.lanes ?? []).map((block, lane) => ({
      labels: { lane: `lane-${lane}` },
      value: laneTimeMs(block, doing, nowMs) / 1000,
    })),
})
const topicCounter = (name: string, kind: TopicKind, offset: 0 | 1, help: string): MetricRow => ({
  name,
  type: 'counter',
  labels: ['topic'],
  help,
  source: 'shared counters',
  samples: (moment) => perTopic(moment, kind, offset),
})
const storeMetric = (
  name: string,
  type: MetricRow['type'],
  slot: (typeof storeSlots)[number],
  help: string,
): MetricRow => ({
  name,
  type,
  labels: ['store'],
  help,
  source: 'shared counters',
  samples: (moment) => perStore(moment, slot),
})

const engineCounters: readonly MetricRow[] = [
  engineCounter('engine_records_dispatched_total', 'recordsDispatched', 'Records dispatched to lanes.'),
  engineCounter('engine_polls_total', 'polls', 'Fetch answers taken from the broker.'),
  engineCounter('engine_poll_records_total', 'pollRecords', 'Records in those answers.'),
  engineCounter('engine_rebalances_total', 'rebalances', 'Rebalances of the consumer group.'),
  {
    name: 'engine_restarts_total',
    type: 'counter',
    labels: ['cause'],
    help: 'Restarts of the engine in place, by the code of their cause.',
    source: 'shared counters',
    samples: ({ counters }) =>
      counters === null
        ? []
        : restartCauses.map((cause, i) => ({
            labels: { cause: cause.toLowerCase() },
            value: read(counters.engine, restartCauseSlot(counters.layout, i)),
          })),
  },
  engineCounter('engine_sink_errors_total', 'sinkErrors', 'Writes that the broker refused.'),
  engineCounter('engine_scheduled_runs_total', 'scheduledRuns', 'Firings of scheduled sources.'),
  {
    name: 'engine_commits_total',
    type: 'counter',
    labels: ['outcome'],
    help: 'Commits by outcome.',
    source: 'shared counters',
    samples: ({ counters }) =>
      counters === null
        ? []
        : [
            { labels: { outcome: 'committed' }, value: read(counters.engine, engineIndex.commitsCommitted) },
            { labels: { outcome: 'aborted' }, value: read(counters.engine, engineIndex.commitsAborted) },
          ],
  },
  {
    name: 'engine_thread_cpu_seconds_total',
    type: 'counter',
    labels: [],
    help: 'Processor time of the engine thread.',
    source: 'shared counters',
    samples: ({ counters }) => (counters === null ? [] : single(read(counters.engine, engineIndex.cpuMs) / 1000)),
  },
  {
    name: 'engine_thread_heap_used_bytes',
    type: 'gauge',
    labels: [],
    help: 'Heap in use by the engine thread.',
    source: 'shared counters',
    samples: (moment) => engineValue(moment, 'heapUsedBytes'),
  },
  engineGauge('engine_output_queued_bytes', 'queuedOutputBytes', 'Bytes of output that the broker does not have yet.'),
  engineGauge('engine_source_buffered_bytes', 'bufferedBytes', 'Bytes fetched and not yet dispatched, all partitions.'),
  engineGauge(
    'engine_source_buffered_peak_bytes',
    'bufferedBytesPeak',
    'The most that they have been since the start.',
  ),
  engineGauge(
    'engine_source_buffered_limit_bytes',
    'bufferedBytesLimit',
    'What they may be: engine.processing.buffered-max-bytes.',
  ),
]

const laneCounters: readonly MetricRow[] = [
  laneMetric('engine_lane_records_received_total', 'counter', 'recordsReceived', 'Records received by the lane.'),
  laneMetric(
    'engine_lane_handed_off_records_total',
    'counter',
    'handedOff',
    'Records handed to the lane of a new key.',
  ),
  laneMetric('engine_lane_queue_records', 'gauge', 'queuedRecords', 'Records that wait for the lane.'),
  laneMetric('engine_lane_async_in_flight_records', 'gauge', 'inFlightAsync', 'Records whose promise is pending.'),
  laneTime('engine_lane_busy_seconds_total', 'busyMs', 'Time the lane spent processing.'),
  laneTime('engine_lane_idle_seconds_total', 'idleMs', 'Time the lane had nothing to do.'),
  laneTime('engine_lane_waiting_seconds_total', 'waitingMs', 'Time the lane only waited for asynchronous functions.'),
  laneTime(
    'engine_lane_backpressured_seconds_total',
    'backpressuredMs',
    'Time the lane had records and could not go on with them: it waited for other lanes, or for its disk.',
  ),
  laneMetric('engine_lane_cpu_seconds_total', 'counter', 'cpuMs', 'Processor time of the lane.', 1000),
  laneMetric('engine_lane_heap_used_bytes', 'gauge', 'heapUsedBytes', 'Heap in use by the lane.'),
  laneMetric(
    'engine_lane_eventloop_utilization_ratio',
    'gauge',
    'loopUtilization',
    'Part of the last second in which the lane was not waiting for something to do.',
  ),
  laneMetric('engine_lane_uncommitted_bytes', 'gauge', 'uncommittedBytes', 'State changes not yet committed.'),
  laneMetric(
    'engine_lane_unwritten_bytes',
    'gauge',
    'unwrittenBytes',
    'Memory of committed state that is not yet written to the durable stores, about.',
  ),
  {
    name: 'engine_handed_over_bytes',
    type: 'gauge',
    labels: [],
    help: 'Bytes of records that lanes have handed over to one another and not worked off.',
    source: 'shared counters',
    samples: ({ counters }) => (counters === null ? [] : single(handedOverBytes(counters.lanes))),
  },
  laneMetric(
    'engine_lane_failures_total',
    'counter',
    'failures',
    'Failures of the lane, each of which had the engine restart or end. Records that a policy lets go no further are counted as dropped.',
  ),
  {
    name: 'engine_dead_letter_records_total',
    type: 'counter',
    labels: ['lane', 'reason'],
    help: 'Records sent to the dead-letter topic, and why.',
    source: 'shared counters',
    samples: ({ counters }) =>
      (counters?.lanes ?? []).flatMap((block, lane) =>
        dropReasons.map((reason, i) => ({
          labels: { lane: `lane-${lane}`, reason },
          value: counters === null ? 0 : read(block, deadLetterSlot(counters.layout, i)),
        })),
      ),
  },
  laneMetric(
    'engine_folded_updates_total',
    'counter',
    'foldedUpdates',
    'Updates of rows that were told with a later one of their row, once per commit.',
  ),
  laneMetric('engine_timers_pending', 'gauge', 'timersPending', 'Timers that wait for their time.'),
  {
    name: 'engine_timers_fired_total',
    type: 'counter',
    labels: ['lane', 'type'],
    help: 'Timers fired, by what drives them.',
    source: 'shared counters',
    samples: (moment) =>
      (
        [
          ['event_time', 'eventTimersFired'],
          ['wall_clock', 'wallClockTimersFired'],
        ] as const
      ).flatMap(([type, slot]) =>
        perLane(moment, slot).map(({ labels, value }) => ({ labels: { ...labels, type }, value })),
      ),
  },
]

const graphCounters: readonly MetricRow[] = [
  {
    name: 'engine_records_processed_total',
    type: 'counter',
    labels: ['subtopology', 'lane'],
    help: 'Records processed by a sub-topology in a lane.',
    source: 'shared counters',
    samples: ({ counters }) => {
      if (counters === null) return []
      const { layout, lanes } = counters
      return Array.from({ length: layout.subtopologies }, (_, subtopology) =>
        lanes.map((block, lane) => ({
          labels: { subtopology: String(subtopology), lane: `lane-${lane}` },
          value: read(block, subtopologySlot(layout, subtopology)),
        })),
      ).flat()
    },
  },
  {
    name: 'engine_records_dropped_total',
    type: 'counter',
    labels: ['subtopology', 'reason'],
    help: 'Records left out, and why.',
    source: 'shared counters',
    samples: ({ counters }) => {
      if (counters === null) return []
      return Array.from({ length: counters.layout.subtopologies }, (_, subtopology) =>
        dropReasons.map((reason, i) => ({
          labels: { subtopology: String(subtopology), reason },
          value: sumOfLanes(counters, dropSlot(counters.layout, subtopology, i)),
        })),
      ).flat()
    },
  },
  {
    name: 'engine_node_records_total',
    type: 'counter',
    labels: ['subtopology', 'node'],
    help: `Records that reached a node; the first ${maxNodeSeries} nodes only.`,
    source: 'shared counters',
    samples: ({ counters, topology }) =>
      counters === null || topology === null
        ? []
        : topology.nodes.slice(0, Math.min(maxNodeSeries, counters.layout.nodes)).map((node) => ({
            labels: { subtopology: String(node.subtopology), node: node.name },
            value: sumOfLanes(counters, nodeSlot(counters.layout, node.index)),
          })),
  },
]

const functionMetric = (name: string, slot: (typeof functionSlots)[number], help: string): MetricRow => ({
  name,
  type: 'gauge',
  labels: ['subtopology', 'node'],
  help,
  source: 'shared counters',
  samples: ({ counters, topology }) =>
    counters === null || topology === null
      ? []
      : topology.nodes
          .slice(0, Math.min(maxNodeSeries, counters.layout.nodes))
          .map((node) => ({
            labels: { subtopology: String(node.subtopology), node: node.name },
            value: sumOfLanes(counters, functionSlot(counters.layout, node.index, slot)),
            limit: sumOfLanes(counters, functionSlot(counters.layout, node.index, 'limit')),
          }))
          // Only functions that were asynchronous have a limit.
          .filter(({ limit }) => limit > 0)
          .map(({ labels, value }) => ({ labels, value })),
})

const functionCounters: readonly MetricRow[] = [
  functionMetric('engine_function_calls', 'calls', 'Calls of an asynchronous function that have not answered.'),
  functionMetric('engine_function_waiting_records', 'waiting', 'Records that wait for their call of the function.'),
  functionMetric('engine_function_calls_limit', 'limit', 'Calls of the function that may be out at once.'),
  laneMetric('engine_lane_slowest_call_seconds', 'gauge', 'slowestMs', 'The slowest call of a function of late.', 1000),
]

const lateTopicsHelp = `Of topics that the topology does not name, the first 63; others as ${otherTopics}.`
const topicAndStoreCounters: readonly MetricRow[] = [
  topicCounter('engine_source_records_total', 'source', 0, `Records read from a topic. ${lateTopicsHelp}`),
  topicCounter('engine_source_bytes_total', 'source', 1, `Bytes read from a topic. ${lateTopicsHelp}`),
  topicCounter(
    'engine_sink_records_total',
    'sink',
    0,
    `Records written to a topic, dead letters included, and those of a commit that was aborted, which are written again. ${lateTopicsHelp}`,
  ),
  topicCounter(
    'engine_sink_bytes_total',
    'sink',
    1,
    `Bytes written to a topic, dead letters included. ${lateTopicsHelp}`,
  ),
  storeMetric('engine_store_entries', 'gauge', 'entries', 'Entries in a state store, exact or estimated.'),
  storeMetric(
    'engine_store_size_bytes',
    'gauge',
    'bytes',
    'Bytes of the keys and values in a state store: estimated from some rows in memory, by pages on disk.',
  ),
  storeMetric('engine_store_restored_records_total', 'counter', 'restored', 'Changelog records restored.'),
  {
    name: 'engine_store_operations_total',
    type: 'counter',
    labels: ['store', 'op'],
    help: 'Reads and writes of a state store.',
    source: 'shared counters',
    samples: (moment) =>
      (
        [
          ['get', 'gets'],
          ['put', 'puts'],
        ] as const
      ).flatMap(([op, slot]) =>
        perStore(moment, slot).map(({ labels, value }) => ({ labels: { ...labels, op }, value })),
      ),
  },
]

/** What lanes and the engine thread count in shared memory: a stuck lane still shows its last figures. */
export const counterRows: readonly MetricRow[] = [
  ...engineCounters,
  ...laneCounters,
  ...graphCounters,
  ...functionCounters,
  ...topicAndStoreCounters,
]
