/** The end of the input, and how far it was read: asked by those who wait for all of it. */
import { type PartitionKey, partitionKey } from '../../base/ids.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { ResolvedTopics } from '../group/topics.ts'
import type { EngineSettings } from '../settings.ts'
import type { PartitionProgress } from '../snapshots.ts'
import type { ConsumerSnapshot } from '../../view/view.ts'
import type { Dispatcher, Route } from './dispatcher.ts'
import type { Positions } from './positions.ts'
import { EndOfTime, type Ending } from './repartition/end-of-time.ts'
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

/** Records that were fetched and not dispatched. */
export function recordsAtHand(routes: Routes): number {
  let records = 0
  for (const { buffer, sorted } of routes.values()) records += buffer.buffered + (sorted?.size ?? 0)
  return records
}

/** What lies in memory of each partition. */
export function buffersOf(
  routes: Routes,
  bufferCapacity: number,
  isPaused: (route: Route) => boolean,
): ConsumerSnapshot['assignment'] {
  const entries = [...routes].map(([key, route]) => {
    const sorted = route.sorted && { sorted: route.sorted.size }
    return [key, { buffered: route.buffer.buffered, ...sorted, bufferCapacity, paused: isPaused(route) }] as const
  })
  return Object.fromEntries(entries)
}

/** True if the watermark rose. */
function closeInput(settings: EngineSettings, watermarks: Watermarks, routes: Routes): boolean {
  const highest = highestWatermark(settings, watermarks, routes)
  if (highest <= watermarks.global()) return false
  watermarks.restoreGlobal(highest)
  return true
}

/** How the input of a run is closed: event time goes on to the newest record, of the process or of the group. */
export class InputEnd {
  readonly #close: (topics: ResolvedTopics) => Promise<Ending>
  readonly #dispatcher: Dispatcher

  constructor(
    options: EngineOptions,
    watermarks: Watermarks,
    routes: Routes,
    positions: Positions,
    dispatcher: Dispatcher,
  ) {
    const { settings } = options
    const ofGroup = new EndOfTime(options, watermarks, routes, (key) => positions.owes(key))
    this.#dispatcher = dispatcher
    this.#close = watermarks.areByTask
      ? (topics) => ofGroup.close(topics)
      : async () => (closeInput(settings, watermarks, routes) ? 'rose' : 'ended')
  }

  async close(topics: ResolvedTopics): Promise<Ending> {
    const ending = await this.#close(topics)
    if (ending === 'rose') this.#dispatcher.flush()
    return ending
  }
}
