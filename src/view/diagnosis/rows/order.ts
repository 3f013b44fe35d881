/** Standstills behind others of the application: what they have not written yet may be older than what is here. */
import { isMeantToRun, type StandstillRow, waitedMs } from '../row.ts'
import type { PartitionKey } from '../../../base/ids.ts'
import type { Found } from '../finding.ts'
import { lasting, partitionName, partitionPlace } from '../words.ts'

const patienceMs = 10_000

const orderHeld: StandstillRow = {
  code: 'ORDER_HELD',
  severity: 'STANDING',
  title: 'Records wait for another process of the application',
  when: 'The oldest record of a partition that is fed through a topic has waited for 10 s: those who write to that topic have not told that they have come as far, or a partition of the same task cannot be fetched. Or the process is so far ahead of another one of its group that no more is written before that one has come further.',
  explains: ['WATERMARK_HELD', 'BUFFER_FULL'],
  next: 'Ask the other processes of the application the same (`millrace why` with the `--url` of each): one of them is paused, slow, stands still, or does not commit. This process goes on by itself once that one does.',
  nextBehind: 'The records go on when that is done.',
  guide:
    'With `repartition-topics` the records of several processes meet in the order of event time. What a process has read and not yet passed on may be older than what is here, so it is waited for: a process that is paused holds up those behind it. After a minute without a word from it the oldest record goes all the same.',
  find: (facts, now) => {
    const { orderWait } = facts
    if (orderWait === null || !isMeantToRun(facts) || waitedMs(facts, orderWait.sinceMs, now) < patienceMs) return []
    const { held, awaited, byWriters, sinceMs } = orderWait
    if (held === null) return [ahead(awaited, now - sinceMs, sinceMs)]
    const { topic, partition } = partitionPlace(held)
    const why = byWriters
      ? `not all processes that write to ${partitionPlace(awaited).topic} have told that they have come as far in event time`
      : `${partitionName(awaited)}, which feeds the same task, cannot be fetched, or nobody can say whether it has more`
    const atBroker = 'See whether the broker that leads that partition runs and can be reached.'
    return [
      {
        sentence: `The records of ${partitionName(held)} have waited for their turn for ${lasting(now - sinceMs)}: ${why}.`,
        ...(!byWriters && { next: atBroker }),
        sinceMs,
        place: { topic, partition },
        evidence: [{ at: '/watermarks', field: `partitions.${held}.headHeldSinceMs`, value: sinceMs }],
      },
    ]
  },
}

/** What it has written waits in the memory of others, who have not got what the one behind has still to write. */
function ahead(awaited: PartitionKey, waitedMs: number, sinceMs: number): Found {
  return {
    sentence: `The process is ahead of others of its group, and has waited for ${lasting(waitedMs)} for the one that reads ${partitionName(awaited)}.`,
    sinceMs,
    place: partitionPlace(awaited),
    evidence: [],
  }
}

export const orderRows: readonly StandstillRow[] = [orderHeld]
