/** Standstills of what comes in: watermarks, alignment, buffers, clocks. */
import { clockToleranceMs } from '../../time/watermark-report.ts'
import type { Facts, PartitionFacts, TransactionHolder } from './facts.ts'
import type { Found } from './finding.ts'
import type { StandstillRow } from './row.ts'
import { lasting, listed, partitionName, partitionPlace } from './words.ts'

const patienceMs = 5000
/** Nothing moves at all for so long where no other row knows why. */
const stillMs = 10_000
const stillNext =
  'Look at `/watermarks` (`headHeldSinceMs`, `alignmentBinding`) and `/debug/threads`, and report what they show: no other row of this page knows why.'
const nameOf = ({ topic, partition }: { topic: string; partition: number }): string => `${topic}/${partition}`
const keyOf = ({ topic, partition }: PartitionFacts): string => `${topic}:${partition}`

function timeoutText(idlenessTimeoutMs: number): string {
  return idlenessTimeoutMs === 0 ? 'it is off' : `it is ${lasting(idlenessTimeoutMs)}`
}

const alignmentHeld: StandstillRow = {
  code: 'ALIGNMENT_HELD',
  severity: 'STANDING',
  title: 'An alignment group waits for a partition without records',
  when: 'A record has been held for 5 s because partitions of its alignment group are further behind than the drift allows, and have nothing to read.',
  explains: ['WATERMARK_HELD', 'BUFFER_FULL', 'LANE_SLOW', 'HOT_KEY'],
  next: 'Bring records into the partitions that are waited for, or give their source an idleness time-out (watermark.idleness-timeout), or a larger drift.',
  guide:
    'All sources wait, not only those of the group: records go in the order of their event time over all partitions.',
  find: ({ alignment, partitions }, now) => {
    if (alignment === null || now - alignment.sinceMs < patienceMs) return []
    const { group, partition, emptyLaggards, sinceMs } = alignment
    const first = partitions.find((each) => keyOf(each) === emptyLaggards[0])
    const idleness = first === undefined ? '' : ` (their idleness time-out: ${timeoutText(first.idlenessTimeoutMs)})`
    return [
      {
        sentence: `The alignment group ${group} has held ${partitionName(partition)} for ${lasting(now - sinceMs)}: it waits for ${listed(emptyLaggards.map(partitionName))}, which ${emptyLaggards.length === 1 ? 'has' : 'have'} no records and ${emptyLaggards.length === 1 ? 'is' : 'are'} not idle${idleness}.`,
        sinceMs,
        place: { group, ...partitionPlace(partition) },
        evidence: [
          { at: '/watermarks', field: 'alignmentBinding.partition', value: partition },
          { at: '/watermarks', field: 'alignmentBinding.emptyLaggards', value: emptyLaggards.slice(0, 20) },
        ],
      },
    ]
  },
}

/** What the others have reached, that this partition holds. */
function heldBackMs(partition: PartitionFacts, newestMs: number): number {
  return partition.watermarkMs === null ? Number.POSITIVE_INFINITY : newestMs - partition.watermarkMs
}

const watermarkHeld: StandstillRow = {
  code: 'WATERMARK_HELD',
  severity: 'STANDING',
  title: 'A partition without records holds the watermark',
  when: 'The application has windows or timers in event time; a partition has had no record for 5 s and for twice as long as ever before, is not idle, and others have gone ahead of it, with records that came after its last.',
  explains: [],
  next: 'Give the source an idleness time-out (watermark.idleness-timeout, or `watermark: { idleness }` of the source), or bring records into the partition.',
  guide:
    'The watermark says up to which event time everything has come. It is the least of all partitions that are not idle, so one that never has a record keeps every window open. `watermark.idleness-timeout` is off by default, because an engine cannot know whether a quiet partition is late or empty.',
  find: (facts, now) => {
    if (!facts.usesEventTime || facts.state !== 'RUNNING') return []
    const known = facts.partitions.filter(({ watermarkMs, idle }) => watermarkMs !== null && !idle)
    const newest = Math.max(Number.NEGATIVE_INFINITY, ...known.map(({ watermarkMs }) => watermarkMs as number))
    if (newest === Number.NEGATIVE_INFINITY) return []
    const holding = facts.partitions.filter((each) => {
      const { idle, lag, buffered, quietSinceMs, longestQuietMs, idlenessTimeoutMs } = each
      // Of what goes from task to task those who write tell the time: whom they wait for is found among their own.
      if (each.isAnnounced || idle || lag > 0 || buffered > 0 || heldBackMs(each, newest) <= clockToleranceMs)
        return false
      const quietMs = now - quietSinceMs
      const dueMs = idlenessTimeoutMs === 0 ? 0 : idlenessTimeoutMs + patienceMs
      return quietMs >= Math.max(patienceMs, 2 * longestQuietMs, dueMs)
    })
    const [first] = holding
    if (first === undefined) return []
    const sinceMs = Math.min(...holding.map(({ quietSinceMs }) => quietSinceMs))
    // Where all went quiet together nobody waits for anybody: it is night, or the end of what was fed.
    const lastCameMs = sinceMs + patienceMs
    const goesOn = facts.partitions.some((each) => {
      const { idle, quietSinceMs } = each
      return !holding.includes(each) && !idle && quietSinceMs >= lastCameMs && now - quietSinceMs < 60_000
    })
    if (!goesOn) return []
    const names = listed(holding.map(nameOf))
    const behind =
      first.watermarkMs === null
        ? 'has not begun'
        : `is ${lasting(heldBackMs(first, newest))} behind the other partitions`
    return [
      {
        sentence: `The watermark ${behind} because of ${names}: no records for ${lasting(now - sinceMs)}, and the idleness time-out (watermark.idleness-timeout) is ${first.idlenessTimeoutMs === 0 ? 'off' : lasting(first.idlenessTimeoutMs)}. Windows stay open and timers wait meanwhile.`,
        sinceMs,
        place: { topic: first.topic, partition: first.partition },
        evidence: [
          { at: '/watermarks', field: `partitions.${keyOf(first)}.watermarkMs`, value: first.watermarkMs },
          { at: '/watermarks', field: `partitions.${keyOf(first)}.idle`, value: false },
          { at: '/watermarks', field: `partitions.${keyOf(first)}.idlenessTimeoutMs`, value: first.idlenessTimeoutMs },
        ],
      },
    ]
  },
}

function holderText(holder: PartitionFacts['withheldBy']): string {
  if (holder === null) return 'another producer'
  const { producerId, transactionalId } = holder
  return transactionalId === null ? `the producer ${producerId}` : `${transactionalId} (producer ${producerId})`
}

function holderNext(partition: PartitionFacts, holder: TransactionHolder, offset: number): string {
  const { topic, partition: number } = partition
  const who = holder.transactionalId ?? `the producer ${holder.producerId}`
  return `End ${who}, or have its transaction aborted: kafka-transactions.sh abort --topic ${topic} --partition ${number} --start-offset ${offset}. The broker does so by itself after the producer’s \`transaction.timeout.ms\`.`
}

const transactionOpen: StandstillRow = {
  code: 'TRANSACTION_OPEN',
  severity: 'STANDING',
  title: 'An open transaction of another producer holds records back',
  when: 'For 5 s records have lain behind a transaction that whoever writes the topic has neither committed nor aborted.',
  explains: ['WATERMARK_HELD', 'ALIGNMENT_HELD'],
  next: 'Find the producer with `kafka-transactions.sh find-hanging --broker-id …`, and end it or abort its transaction. The broker does so by itself after the producer’s `transaction.timeout.ms`.',
  guide:
    'Records behind the first open transaction of a partition may not be read: nobody knows yet whether those before them count. `lag` in `/offsets` counts them, `withheld` tells them apart.',
  find: ({ partitions }, now) =>
    partitions
      .filter(({ withheldSinceMs }) => withheldSinceMs !== null && now - withheldSinceMs >= patienceMs)
      .slice(0, 20)
      .map((each): Found => {
        const { topic, partition, withheld, lag, committedOffset, withheldSinceMs, withheldBy } = each
        const offset = (committedOffset ?? 0) + lag - withheld
        return {
          sentence: `A transaction of ${holderText(withheldBy)} has been open at ${nameOf(each)} from offset ${offset} for ${lasting(now - (withheldSinceMs as number))}: ${withheld} records behind it may not be read.`,
          sinceMs: withheldSinceMs as number,
          place: { topic, partition, offset },
          evidence: [{ at: '/offsets', field: 'sources[].partitions[].withheld', value: withheld }],
          ...(withheldBy !== null && { next: holderNext(each, withheldBy, offset) }),
        }
      }),
}

const timestampAhead: StandstillRow = {
  code: 'TIMESTAMP_AHEAD',
  severity: 'STANDING',
  title: 'Timestamps ahead of the clock',
  when: 'A record’s event time is more than a minute ahead of this machine’s clock, it took the application’s watermark with it, and later records were dropped as late.',
  explains: [],
  next: 'Correct the clock or the timestamps of whoever writes the record named here. The watermark does not go back: windows up to its time stay closed.',
  guide:
    'Until the clock has reached the watermark, every record with a true timestamp is late. If the record is right, this machine’s clock is wrong.',
  find: (facts, now) => {
    const { globalWatermarkMs, lateRecords, partitions } = facts
    if (globalWatermarkMs === null || globalWatermarkMs <= now + clockToleranceMs || lateRecords === 0) return []
    const ahead = partitions.filter((each) => each.ahead !== null)
    const farthest = ahead.toSorted((a, b) => (b.ahead?.timestampMs ?? 0) - (a.ahead?.timestampMs ?? 0))[0]
    const { ahead: record, topic, partition } = farthest ?? { ahead: null, topic: '', partition: 0 }
    if (record === null) return []
    return [
      {
        sentence: `The record ${topic}/${partition} at offset ${record.offset} has a timestamp ${lasting(record.timestampMs - now)} ahead of the clock of this machine, and the watermark with it: ${lateRecords} records were dropped as late since.`,
        sinceMs: record.sinceMs,
        place: { topic, partition, offset: record.offset },
        evidence: [
          { at: '/watermarks', field: 'globalMs', value: globalWatermarkMs },
          { at: '/metrics', field: 'engine_records_dropped_total{reason="late"}', value: lateRecords },
        ],
      },
    ]
  },
}

/** While any record is let in or finished, a full buffer is how full load looks. */
function nothingMoves({ state, stateSinceMs, dispatchedAtMs, lanes }: Facts, now: number): boolean {
  if (state !== 'RUNNING' || lanes.some(({ rate }) => rate !== 0)) return false
  return now - Math.max(stateSinceMs, dispatchedAtMs) >= stillMs
}

const bufferFull: StandstillRow = {
  code: 'BUFFER_FULL',
  severity: 'SLOW',
  title: 'The buffer of a partition is full',
  when: 'A partition has not been fetched for 3 s because its buffer is full, and what it is full behind was found, or for 10 s no record was taken out of any buffer and none was finished. A full buffer alone is full load, and no finding.',
  explains: [],
  next: 'Nothing at the partition itself: the buffer empties once its cause is gone, which is told before it.',
  find: (facts, now, behind) => {
    const isStill = nothingMoves(facts, now)
    if (!behind && !isStill) return []
    const still = isStill ? ' Nothing is taken out of any buffer, and no record is finished.' : ''
    return facts.partitions
      .filter(({ fullSinceMs }) => fullSinceMs !== null && now - fullSinceMs >= 3000)
      .slice(0, 20)
      .map((each): Found => {
        const { topic, partition, buffered, bufferCapacity, fullSinceMs } = each
        return {
          sentence: `${nameOf(each)} is not fetched: its buffer has been full for ${lasting(now - (fullSinceMs as number))} (${buffered} records of ${bufferCapacity}).${still}`,
          sinceMs: fullSinceMs as number,
          place: { topic, partition },
          evidence: [{ at: '/consumer', field: `assignment.${keyOf(each)}.buffered`, value: buffered }],
          ...(isStill && !behind && { severity: 'STANDING' as const, next: stillNext }),
        }
      })
  },
}

export const inputRows: readonly StandstillRow[] = [transactionOpen, alignmentHeld, watermarkHeld, timestampAhead]
export const effectRows: readonly StandstillRow[] = [bufferFull]
