import type { ConsumerBuffer, OffsetsSnapshot, PartitionWatermark } from '../view/view.ts'
import { flag, type MetricRow, type Moment, partitionLabels, type Sample, single } from './table-types.ts'

/** Beyond so many partitions, per-partition series are left out for the rest; the totals stay whole. */
export const maxPartitionSeries = 2000

type SourcePartition = OffsetsSnapshot['sources'][number]['partitions'][number]

function sourceSamples({ offsets }: Moment, value: (partition: SourcePartition) => number): Sample[] {
  const samples: Sample[] = []
  for (const { topic, partitions } of offsets?.sources ?? []) {
    for (const partition of partitions) {
      if (samples.length >= maxPartitionSeries) return samples
      samples.push({ labels: { topic, partition: String(partition.partition) }, value: value(partition) })
    }
  }
  return samples
}

function watermarkSamples({ watermarks }: Moment, value: (partition: PartitionWatermark) => number | null): Sample[] {
  const samples: Sample[] = []
  for (const [key, partition] of Object.entries(watermarks?.partitions ?? {})) {
    const shown = value(partition)
    if (samples.length >= maxPartitionSeries) return samples
    if (shown !== null) samples.push({ labels: partitionLabels(key), value: shown })
  }
  return samples
}

function bufferSamples({ consumer }: Moment, readingOf: (buffer: ConsumerBuffer) => number): Sample[] {
  const entries = Object.entries(consumer?.assignment ?? {}).slice(0, maxPartitionSeries)
  return entries.map(([key, buffer]) => ({ labels: partitionLabels(key), value: readingOf(buffer) }))
}

const seconds = (ms: number | null): number | null => (ms === null ? null : ms / 1000)

function groupsOf({ watermarks }: Moment): string[] {
  const named = Object.keys(watermarks?.alignmentGroupMins ?? {})
  const assigned = Object.values(watermarks?.partitions ?? {}).flatMap((partition) => partition.alignmentGroup ?? [])
  return [...new Set([...named, ...assigned])].sort()
}

const perPartition = (
  name: string,
  help: string,
  samples: MetricRow['samples'],
  type: MetricRow['type'] = 'gauge',
): MetricRow => ({ name, type, labels: ['topic', 'partition'], help, source: 'snapshot', samples })

/** Offsets, buffers, watermarks. */
export const progressRows: readonly MetricRow[] = [
  {
    name: 'engine_lag_records',
    type: 'gauge',
    labels: [],
    help: 'Records behind the ends of all source partitions.',
    source: 'snapshot',
    samples: ({ offsets }) => {
      if (offsets === null) return []
      const partitions = offsets.sources.flatMap((source) => source.partitions)
      return single(partitions.reduce((sum, at) => sum + at.logEndOffset - at.committedOffset, 0))
    },
  },
  perPartition('engine_source_lag_records', 'End of the log minus the committed offset.', (moment) =>
    sourceSamples(moment, (at) => at.logEndOffset - at.committedOffset),
  ),
  perPartition(
    'engine_source_withheld_records',
    'Part of the lag that open transactions of producers hold back: it cannot be read before they are decided.',
    (moment) => sourceSamples(moment, (at) => at.withheld),
  ),
  perPartition('engine_source_committed_offset', 'Committed offset, from cached values.', (moment) =>
    sourceSamples(moment, (at) => at.committedOffset),
  ),
  perPartition('engine_source_log_end_offset', 'End of the log, from cached values.', (moment) =>
    sourceSamples(moment, (at) => at.logEndOffset),
  ),
  perPartition(
    'engine_source_buffered_records',
    'Records fetched and not yet dispatched; of a repartition topic with those that wait for their place in the order of event time.',
    (moment) => bufferSamples(moment, ({ buffered, sorted = 0 }) => buffered + sorted),
  ),
  perPartition(
    'engine_source_buffer_capacity_records',
    'Threshold at which the partition is no longer fetched.',
    (moment) => bufferSamples(moment, ({ bufferCapacity }) => bufferCapacity),
  ),
  perPartition(
    'engine_source_paused',
    'Whether the partition is not fetched: buffer full, application paused, or stores restoring.',
    (moment) => bufferSamples(moment, ({ paused }) => Number(paused)),
  ),
  {
    name: 'engine_watermark_timestamp_seconds',
    type: 'gauge',
    labels: [],
    help: 'Global watermark; absent while unknown.',
    source: 'snapshot',
    samples: ({ watermarks }) => {
      const at = seconds(watermarks?.globalMs ?? null)
      return at === null ? [] : single(at)
    },
  },
  {
    name: 'engine_watermark_delay_seconds',
    type: 'gauge',
    labels: [],
    help: 'Now minus the global watermark; absent while unknown.',
    source: 'snapshot',
    samples: ({ watermarks, nowMs }) => {
      const at = watermarks?.globalMs ?? null
      return at === null ? [] : single((nowMs - at) / 1000)
    },
  },
  perPartition(
    'engine_partition_watermark_timestamp_seconds',
    "The partition's own watermark; absent while unknown.",
    (moment) => watermarkSamples(moment, (at) => seconds(at.watermarkMs)),
  ),
  perPartition(
    'engine_partition_idle',
    'Whether the partition is idle and does not hold back the watermark.',
    (moment) => watermarkSamples(moment, (at) => flag(at.idle)),
  ),
  perPartition(
    'engine_partition_idle_seconds_total',
    'Time for which the partition was idle since it was assigned.',
    (moment) => watermarkSamples(moment, (at) => at.idleTotalMs / 1000),
    'counter',
  ),
  perPartition('engine_partition_alignment_held', 'Whether alignment holds the partition at the moment.', (moment) =>
    watermarkSamples(moment, (at) => flag(at.alignmentHeld)),
  ),
  perPartition(
    'engine_partition_alignment_held_seconds_total',
    "Time for which alignment held the partition's head, and all dispatch with it, since it was assigned.",
    (moment) => watermarkSamples(moment, (at) => at.alignmentHeldTotalMs / 1000),
    'counter',
  ),
  {
    name: 'engine_alignment_drift_seconds',
    type: 'gauge',
    labels: ['topic', 'partition', 'group'],
    help: "The partition's watermark minus the least of its alignment group.",
    source: 'snapshot',
    samples: ({ watermarks }) =>
      Object.entries(watermarks?.partitions ?? {})
        .slice(0, maxPartitionSeries)
        .flatMap(([key, { driftFromGroupMinMs: drift, alignmentGroup: group }]) =>
          drift === null || group === null ? [] : [{ labels: { ...partitionLabels(key), group }, value: drift / 1000 }],
        ),
  },
  {
    name: 'engine_alignment_binding',
    type: 'gauge',
    labels: ['group'],
    help: 'Whether a hold of this alignment group stops all dispatch now.',
    source: 'snapshot',
    samples: (moment) =>
      groupsOf(moment).map((group) => ({
        labels: { group },
        value: flag(moment.watermarks?.alignmentBinding?.group === group),
      })),
  },
  {
    name: 'engine_store_restore_remaining_records',
    type: 'gauge',
    labels: ['store', 'partition'],
    help: 'Changelog records still to be restored.',
    source: 'snapshot',
    samples: ({ state }) =>
      state.restore.slice(0, maxPartitionSeries).map(({ store, partition, remainingRecords }) => ({
        labels: { store, partition: String(partition) },
        value: remainingRecords,
      })),
  },
]
