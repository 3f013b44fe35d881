/** Bringing the state back at start, from the journal and the logs. */
import type { Clock } from '../../../base/clock.ts'
import type { FeedMarks } from './feed-marks.ts'
import type { Offsets } from './offsets.ts'
import type { JournalEntry, Storage } from './storage.ts'
import type { Topics } from './topics.ts'
import type { Transactions } from './transactions.ts'

interface State {
  readonly topics: Topics
  readonly transactions: Transactions
  readonly offsets: Offsets
  readonly feeds: FeedMarks
}

/** Fills the empty state, takes back a fed write that did not get to its end, and finishes decided transactions. */
export function recover(entries: readonly JournalEntry[], state: State, clock: Clock, storage: Storage): void {
  // The logs of topics that were deleted are not opened at all.
  state.topics.restore(livingTopics(entries))
  for (const entry of entries) replay(entry, state)
  if (storage.endsUnknown) refuseLostEnds(entries, state, storage)
  state.feeds.undoTornWrite(state.topics)
  finishTransactions(state, clock)
}

function replay(entry: JournalEntry, { transactions, offsets, feeds }: State): void {
  switch (entry.kind) {
    case 'topic':
      return
    case 'topic-deleted':
      offsets.dropTopic(entry.topic)
      feeds.dropTopic(entry.topic)
      return
    case 'producer-ids':
      transactions.restoreProducerIds(BigInt(entry.next))
      return
    case 'producer':
      transactions.restore(entry)
      // The decision of a transaction takes the offsets with it that wait for it.
      if (entry.ended !== null) offsets.end(BigInt(entry.ended.producerId), entry.ended.commit)
      return
    case 'pending-offsets':
      offsets.addPending(BigInt(entry.producerId), entry.epoch, entry.groupId, entry.offsets)
      return
    case 'offsets':
      offsets.commit(entry.groupId, entry.offsets)
      return
    case 'feed':
      feeds.restore(entry)
  }
}

/**
 * In a folder whose journal does not name the segments, offsets and feed marks tell how far these went. The last fed write
 * alone may have been cut short.
 */
function refuseLostEnds(entries: readonly JournalEntry[], { topics, offsets }: State, storage: Storage): void {
  const reached = (topic: string, partition: number, end: number, who: string): void => {
    const found = topics.find({ topic, partition })
    const actual = found?.log.highWatermark ?? end
    if (found === undefined || actual >= end) return
    const why = `its records of ${topic}:${partition} end at offset ${actual}, but ${who} went up to ${end}`
    throw storage.lost(found.topic.id, partition, actual, why)
  }
  for (const groupId of offsets.groupIds()) {
    for (const { topic, partition, offset } of offsets.committed(groupId, null)) {
      reached(topic, partition, offset, `the group ${groupId}`)
    }
  }
  const lastFeed = entries.findLast((entry) => entry.kind === 'feed')
  for (const entry of entries) {
    if (entry.kind !== 'feed' || entry === lastFeed || topics.get(entry.topic) === undefined) continue
    for (const { partition, to } of entry.writes) reached(entry.topic, partition, to, `the feed of ${entry.file}`)
  }
}

/** Writes the markers that the end of the process cut off, and takes up the transactions that are still open. */
function finishTransactions({ topics, transactions, offsets }: State, clock: Clock): void {
  const now = clock.monotonic()
  for (const topic of topics.all()) {
    for (const { log } of topic.partitions) {
      for (const [producerId, { epoch }] of [...log.open]) {
        const outcome = transactions.outcomeOf(producerId, epoch, now)
        if (outcome !== 'open') log.endTransaction(producerId, epoch + 1, outcome === 'committed', clock.now())
      }
    }
  }
  for (const [producerId, epoch] of offsets.openTransactions()) {
    const outcome = transactions.outcomeOf(producerId, epoch, now)
    if (outcome !== 'open') offsets.end(producerId, outcome === 'committed')
  }
}

function livingTopics(entries: readonly JournalEntry[]): Array<Extract<JournalEntry, { kind: 'topic' }>> {
  const living = new Map<string, Extract<JournalEntry, { kind: 'topic' }>>()
  for (const entry of entries) {
    if (entry.kind === 'topic') living.set(entry.topic, entry)
    else if (entry.kind === 'topic-deleted') living.delete(entry.topic)
  }
  return [...living.values()]
}
