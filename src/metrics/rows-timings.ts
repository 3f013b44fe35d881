import {
  commitHistogram,
  commitTimings,
  type CountersView,
  latenessHistogram,
  pollRecordsHistogram,
  pollSecondsHistogram,
  processHistogram,
  sinkLatencyHistogram,
  sourceLatencyHistogram,
  storeDurationHistogram,
} from '../base/counters.ts'
import {
  durationBounds,
  eventTimeBounds,
  type HistogramValue,
  pollBounds,
  processBounds,
  readHistogram,
} from '../base/histograms.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { type HistogramRow, type HistogramSample, noLabels } from './table-types.ts'

const ofEngine = ({ engine }: CountersView, at: number, bounds: readonly number[]): HistogramSample[] => [
  { labels: noLabels, value: readHistogram([engine], at, bounds) },
]

/** Names of the phases as `engine_commit_phase` spells such things in labels. */
const phaseLabel = (timing: string): string => timing.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function sourceNode(topology: CompiledTopology | null, topic: string): string {
  return topology?.sources.find((source) => source.topics.includes(topic))?.name ?? topic
}

function sinkNode(topology: CompiledTopology | null, topic: string): string {
  return topology?.nodes.find(({ spec }) => spec.op === 'sink' && spec.topic === topic)?.name ?? topic
}

function added(a: HistogramValue, b: HistogramValue): HistogramValue {
  return { cumulative: a.cumulative.map((count, i) => count + (b.cumulative[i] ?? 0)), sum: a.sum + b.sum }
}

/** A source may read several topics: under the name of its node they are one series, which must not come twice. */
function latencyByNode(
  { lanes }: CountersView,
  topics: readonly string[],
  kind: 'source' | 'sink',
  nodeOf: (topic: string) => string,
  slotOf: (topic: number) => number,
): HistogramSample[] {
  const byNode = new Map<string, HistogramValue>()
  topics.forEach((topic, i) => {
    const node = nodeOf(topic)
    const own = readHistogram(lanes, slotOf(i), eventTimeBounds)
    const before = byNode.get(node)
    byNode.set(node, before === undefined ? own : added(before, own))
  })
  return [...byNode].map(([node, value]) => ({ labels: { node, kind }, value }))
}

/** Distributions that lanes and the engine thread keep in shared memory. */
export const timingRows: readonly HistogramRow[] = [
  {
    name: 'engine_process_duration_seconds',
    labels: ['subtopology'],
    help: 'Time per record in a lane, from batches: the mean of a batch counts for each of its records.',
    bounds: processBounds,
    samples: ({ layout, lanes }) =>
      Array.from({ length: layout.subtopologies }, (_, subtopology) => ({
        labels: { subtopology: String(subtopology) },
        value: readHistogram(lanes, processHistogram(layout, subtopology), processBounds),
      })),
  },
  {
    name: 'engine_record_e2e_latency_seconds',
    labels: ['node', 'kind'],
    help: 'Age of records by their event time, when a lane takes them in (source) and when they leave for the broker (sink); of topics that the topology names.',
    bounds: eventTimeBounds,
    samples: (counters, topology) => {
      const { layout } = counters
      const { sourceTopics, sinkTopics } = layout
      const source = (topic: string): string => sourceNode(topology, topic)
      const sink = (topic: string): string => sinkNode(topology, topic)
      return [
        ...latencyByNode(counters, sourceTopics, 'source', source, (i) => sourceLatencyHistogram(layout, i)),
        ...latencyByNode(counters, sinkTopics, 'sink', sink, (i) => sinkLatencyHistogram(layout, i)),
      ]
    },
  },
  {
    name: 'engine_record_lateness_seconds',
    labels: ['topic'],
    help: 'How far the event time of records lies behind the watermark; 0 where it does not. Of topics that the topology names.',
    bounds: eventTimeBounds,
    samples: ({ layout, lanes }) =>
      layout.sourceTopics.map((topic, i) => ({
        labels: { topic },
        value: readHistogram(lanes, latenessHistogram(layout, i), eventTimeBounds),
      })),
  },
  {
    name: 'engine_store_operation_duration_seconds',
    labels: ['store', 'op'],
    help: 'Time that a read or write of one row takes in a state store; one operation of 127 is measured.',
    bounds: processBounds,
    samples: ({ layout, lanes }) =>
      layout.stores.flatMap((store, i) =>
        (['get', 'put'] as const).map((op, kind) => ({
          labels: { store, op },
          value: readHistogram(lanes, storeDurationHistogram(layout, i, kind as 0 | 1), processBounds),
        })),
      ),
  },
  {
    name: 'engine_poll_duration_seconds',
    labels: [],
    help: 'Duration of a fetch, the wait for records at the broker included.',
    bounds: durationBounds,
    samples: (counters) => ofEngine(counters, pollSecondsHistogram(counters.layout), durationBounds),
  },
  {
    name: 'engine_poll_records',
    labels: [],
    help: 'Records that one poll lets into the buffer of a partition.',
    bounds: pollBounds,
    samples: (counters) => ofEngine(counters, pollRecordsHistogram(counters.layout), pollBounds),
  },
  {
    name: 'engine_commit_duration_seconds',
    labels: [],
    help: 'Duration of a commit from its barrier to its end.',
    bounds: durationBounds,
    samples: (counters) => ofEngine(counters, commitHistogram(counters.layout, 0), durationBounds),
  },
  {
    name: 'engine_commit_phase_duration_seconds',
    labels: ['phase'],
    help: 'Duration of a phase of a commit.',
    bounds: durationBounds,
    samples: ({ layout, engine }) =>
      commitTimings.slice(1).map((timing, i) => ({
        labels: { phase: phaseLabel(timing) },
        value: readHistogram([engine], commitHistogram(layout, i + 1), durationBounds),
      })),
  },
]
