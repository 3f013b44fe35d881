/** What a source says of its partitions' event time: disorder, idleness, alignment. */
import type { PartitionTiming } from '../../time/partition-watermarks.ts'
import { neverWait } from '../../time/task-inputs.ts'
import { isAnnounced, isSorted } from './repartition/upstream.ts'
import type { EngineSettings } from '../settings.ts'

/** What goes in shows with the next commit: a partition is idle when several of them brought nothing. */
const boundaryIdlenessMs = (commitIntervalMs: number): number => Math.max(1000, 10 * commitIntervalMs)

export function timingOf(
  { plan, split, idlenessMs, commitIntervalMs, maxTaskIdleMs }: EngineSettings,
  source: number,
): PartitionTiming {
  const { watermark, kind } = plan.sources[source] ?? {}
  // It is told how far it has come also where it is empty: it never holds anybody back for want of records.
  if (split === 'repartition-topics' && isAnnounced(plan, plan.sources[source]))
    return { maxOutOfOrdernessMs: watermark?.maxOutOfOrdernessMs ?? 0, idlenessMs: 0, alignment: undefined }
  // Nobody can say of a topic between sub-topologies that it will get a record: without an end to waiting, a
  // partition that no key falls into would hold the application's time for ever.
  const idleness = kind === 'boundary' && idlenessMs === 0 ? boundaryIdlenessMs(commitIntervalMs) : idlenessMs
  return {
    maxOutOfOrdernessMs: watermark?.maxOutOfOrdernessMs ?? 0,
    idlenessMs: watermark?.idlenessMs ?? idleness,
    alignment: watermark?.alignment,
    isUntold: split === 'repartition-topics' && maxTaskIdleMs !== neverWait && isSorted(plan, plan.sources[source]),
  }
}
