/** Announcements of a run: what they look up, and what they let go. */
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { EngineOptions } from '../../engine-options.ts'
import type { ResolvedTopics } from '../../group/topics.ts'
import type { Route } from '../dispatcher.ts'
import type { KnownInput } from '../../commit/known-input.ts'
import { Announcements } from './announcements.ts'
import type { Lead } from './lead.ts'
import type { SortedInput } from './sorted-input.ts'
import { isTold, tellsOfInput } from './upstream.ts'

export interface AnnouncingHost {
  readonly routes: ReadonlyMap<PartitionKey, Route>
  readonly sorted: SortedInput
  readonly known: KnownInput
  readonly lead: Lead | undefined
  topics(): ResolvedTopics
  wake(): void
  failed(error: unknown): void
}

/** Undefined where nobody tells how far those who write to a topic have come. */
export function announcementsOf(options: EngineOptions, host: AnnouncingHost): Announcements | undefined {
  const { settings, broker, clock, timers } = options
  const { plan, split, applicationId: groupId, commitIntervalMs, maxTaskIdleMs } = settings
  if (split !== 'repartition-topics') return undefined
  if (!plan.sources.some((source) => isTold(plan, source) || tellsOfInput(plan, source))) return undefined
  const { routes, sorted, lead } = host
  const routeOf = ({ topic, partition }: TopicPartition) => routes.get(partitionKey(topic, partition))
  const everyMs = Math.max(50, commitIntervalMs)
  return new Announcements(
    { broker, clock, timers, groupId, plan, everyMs, maxTaskIdleMs, writers: [...(lead?.writers ?? [])] },
    {
      partitions: () => [...routes.values()],
      topics: () => host.topics(),
      position: (tp) => routeOf(tp)?.buffer.position ?? 0,
      reached: (tp, offset) => sorted.reached(routeOf(tp), offset),
      endsAtLeast: (tp, offset) => sorted.endsAtLeast(routeOf(tp), offset),
      shows: (tp, epochMs) => {
        sorted.shows(routeOf(tp), epochMs)
        host.wake()
      },
      cameTo: (tp, gate, known) => {
        sorted.cameTo(routeOf(tp), gate, known)
        host.wake()
      },
      othersAt: (subtopology, slowest) => {
        lead?.othersAt(subtopology, slowest, clock.monotonic())
        host.wake()
      },
      knows: (subtopology, through) => host.known.cameThrough(subtopology, through),
      failed: (error) => host.failed(error),
    },
  )
}
