/** The end of the input, and how far it was read: asked by those who wait for all of it. */
import { type PartitionKey, partitionKey } from '../../base/ids.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { EngineSettings } from '../settings.ts'
import type { TopologyPlan } from '../../topology/plan.ts'
import type { PartitionProgress } from '../snapshots.ts'
import type { Route } from './dispatcher.ts'
import type { Positions } from './positions.ts'
import { timingOf } from './source-timing.ts'

type Routes = ReadonlyMap<PartitionKey, Route>

/** True when every partition is read and dispatched to the end that it has at this moment. */
export async function isExhausted(broker: BrokerPort, routes: Routes): Promise<boolean> {
  const all = [...routes.values()]
  if (all.length === 0) return true
  // What is known to be left need not be asked for.
  if (all.some(({ buffer, sorted }) => buffer.hasHead || buffer.lag > 0 || (sorted?.size ?? 0) > 0)) return false
  const ends = await broker.listOffsets(
    all.map(({ topic, partition }) => ({ topic, partition })),
    'stable',
  )
  for (const { topic, partition, offset } of ends) {
    const buffer = routes.get(partitionKey(topic, partition))?.buffer
    if (buffer && (buffer.position < offset || buffer.hasHead)) return false
  }
  return true
}

/** The watermark that the partition that is furthest has by itself. */
function highestWatermark(settings: EngineSettings, watermarks: Watermarks, routes: Routes): number {
  let highest = Number.NEGATIVE_INFINITY
  for (const { handle, source } of routes.values()) {
    const { maxOutOfOrdernessMs } = timingOf(settings, source)
    highest = Math.max(highest, watermarks.maxTs(handle) - maxOutOfOrdernessMs)
  }
  return highest
}

export function progressOf(positions: Positions, routes: Routes): PartitionProgress[] {
  return [...routes.values()].map(({ topic, partition, buffer }) => ({
    topic,
    partition,
    committedOffset: positions.of({ topic, partition }) ?? 0,
    logEndOffset: buffer.highWatermark,
    withheld: Math.max(0, buffer.highWatermark - buffer.logEndOffset),
  }))
}

/** True if the watermark rose, or that of some task. */
export function closeInput(settings: EngineSettings, watermarks: Watermarks, routes: Routes): boolean {
  const highest = highestWatermark(settings, watermarks, routes)
  if (watermarks.areByTask) return closeTasks(settings, watermarks, routes, highest)
  if (highest <= watermarks.global()) return false
  watermarks.restoreGlobal(highest)
  return true
}

/**
 * Tasks that have their own watermarks come to this one, those of one depth at a time: what they tell at the end is input of
 * the next. True if some rose.
 */
function closeTasks({ plan }: EngineSettings, watermarks: Watermarks, routes: Routes, highest: number): boolean {
  const depths = depthsOf(plan)
  const behind = [...routes.values()].filter(({ handle }) => watermarks.inForce(handle) < highest)
  const depth = Math.min(...behind.map(({ subtopology }) => depths[subtopology] as number))
  for (const { handle, subtopology } of behind) if (depths[subtopology] === depth) watermarks.raiseTask(handle, highest)
  return behind.length > 0
}

/** Of each sub-topology, how many topics between sub-topologies lie before it at most; circles are not counted. */
function depthsOf({ subtopologies, boundaries }: TopologyPlan): number[] {
  const depths = subtopologies.map(() => 0)
  const ways = boundaries.filter(({ isCircular }) => isCircular !== true)
  for (let round = 0; round < ways.length; round++) {
    for (const { fromSubtopology, toSubtopology } of ways)
      depths[toSubtopology] = Math.max(depths[toSubtopology] as number, (depths[fromSubtopology] as number) + 1)
  }
  return depths
}
