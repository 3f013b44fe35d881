/**
 * Topics between sub-topologies that somebody has deleted. What lay in one and was not read is in no store and no result, and its
 * input is behind the offsets of the group: nothing brings it back.
 */
import type { CommittedOffset } from '../../broker/port.ts'
import { ReadTopics } from '../commit/read-topics.ts'
import type { EngineSettings } from '../settings.ts'
import { idsIn, isOfAnother, isOfThis, refuseUnread } from './made-anew.ts'
import type { ResolvedTopics } from './topics.ts'

/**
 * Those that are others than the group has committed of, by what is noted of the whole group: whoever starts next to one that
 * reads them would write to the new one, and note that.
 *
 * @throws EngineError `OFFSETS_MISSING` where that is not accepted.
 */
export function lostBetween(
  settings: EngineSettings,
  { topics, boundaries }: Pick<ResolvedTopics, 'topics' | 'boundaries'>,
  committed: readonly CommittedOffset[],
): string[] {
  if (boundaries.length === 0) return []
  const idOf = idsIn(topics)
  const read = new ReadTopics(committed)
  const lost = boundaries.filter(({ topic, topicId }) => {
    const of = committed.filter((each) => each.topic === topic && each.offset >= 0)
    // Somebody has begun with this one, and was asked about the other.
    if (of.some((each) => isOfThis(each, idOf))) return false
    return of.some((each) => isOfAnother(each, idOf)) || (of.length === 0 && read.hadAnother(topic, topicId))
  })
  for (const { topic } of lost) refuseUnread(settings, topic)
  return lost.map(({ topic }) => topic)
}
