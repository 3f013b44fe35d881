/** Standstills of what comes in: watermarks, alignment, buffers, clocks. */
import { clockToleranceMs } from '../../../time/watermark-report.ts'
import {
  bootstrap,
  isEmbedded,
  isInMemory,
  thenRestart,
  safeRestart,
  setting,
  time,
  toRead,
} from '../wording/advice.ts'
import type { Facts, PartitionFacts, RecordPlace, TransactionHolder } from '../facts.ts'
import type { Found } from '../finding.ts'
import type { CommitPhase } from '../owing.ts'
import { hasEnded, hopsOfACommit, type StandstillRow } from '../row.ts'
import { clockTime, lasting, listed, partitionName, partitionPlace } from '../words.ts'

const patienceMs = 5000
/** Nothing moves at all for so long where no other row knows why. */
const stillMs = 10_000
const stillNext =
  'Where another cause is named before this one, do what is advised there, and do not restart. Otherwise the engine does not know the cause: save the answers of GET `/debug/threads`, `/debug/barriers` and `/watermarks` (`millrace threads -o json`, `barriers`, `watermarks`) for the developers, who can send them to the maintainers of Millrace. '
const nameOf = ({ topic, partition }: { topic: string; partition: number }): string => `${topic}/${partition}`
const keyOf = ({ topic, partition }: PartitionFacts): string => `${topic}:${partition}`

function topicsNamed(topics: readonly string[]): string {
  const different = [...new Set(topics)].map((topic) => `\`${topic}\``)
  return `the ${different.length === 1 ? 'topic' : 'topics'} ${listed(different)}`
}

/** What to look at first where nothing comes into partitions, by their topics and names. */
const askProducers = (topics: readonly string[], names: readonly string[]): string =>
  `Check first whether the programs that write to ${topicsNamed(topics)} run, and whether they still write to ${listed(names)}.`

/** The one source first: what is set for all of them has more of their records dropped. */
function setIdleness(timeoutMs: number | undefined): string {
  const forAll = setting('watermark.idleness-timeout', timeoutMs === undefined ? undefined : time(timeoutMs))
  return `If the quiet is on purpose, the developers can set \`idleness\` for its source, to more than the longest pause that is normal there. In the configuration ${forAll} does it for all sources at once: it has to be more than the longest pause of any of them. After that time the engine stops waiting for a partition. Records that arrive on it afterwards may be dropped as late.`
}

/** Found only where the time-out has passed, and more. */
const overdueIdleness = (names: string): string =>
  `The idleness time-out has passed, so the engine should have left ${names} out by now. To set it again does not help: send the answer of GET \`/watermarks\` to the maintainers of Millrace. Records that the usual programs write there let event time go on; write none by hand. If all of it is quiet on purpose, restart the process: it looks anew, and leaves ${names} out. Records that arrive there afterwards may be dropped as late, so do not while a writer is down or behind.`

const alignmentHeld: StandstillRow = {
  code: 'ALIGNMENT_HELD',
  severity: 'STANDING',
  title: 'An alignment group waits for a partition without records',
  when: 'A record has been held for 5 s because partitions of its alignment group are further behind in event time than the group’s `maxDrift` allows, and have nothing to read.',
  explains: ['WATERMARK_HELD', 'BUFFER_FULL', 'LANE_SLOW', 'HOT_KEY'],
  next: 'Check first whether the programs that write the topics that are waited for run. If these are quiet on purpose, the developers can set `idleness` for their sources, or allow the group a larger `maxDrift`; `watermark.idleness-timeout` does it for all sources. After that time the engine stops waiting for such a partition, and records that arrive on it afterwards may be dropped as late.',
  nextBehind: 'The partition is read again when that is done.',
  guide:
    'All sources wait, not only those of the group: records go in the order of their event time over all partitions.',
  find: ({ alignment, partitions }, now) => {
    if (alignment === null || now - alignment.sinceMs < patienceMs) return []
    const { group, partition, emptyLaggards, sinceMs } = alignment
    const first = partitions.find((each) => keyOf(each) === emptyLaggards[0])
    const [has, is, its] = emptyLaggards.length === 1 ? ['has', 'is', 'its'] : ['have', 'are', 'their']
    const timeoutMs = first?.idlenessTimeoutMs
    const idleness =
      timeoutMs === undefined
        ? ''
        : timeoutMs === 0
          ? `, because ${its} idleness time-out is off`
          : `; ${its} idleness time-out is ${lasting(timeoutMs)}`
    const topics = emptyLaggards.map((key) => partitionPlace(key).topic)
    const names = emptyLaggards.map(partitionName)
    return [
      {
        sentence: `${partitionName(partition)} has not been read for ${lasting(now - sinceMs)}. The alignment group '${group}' makes it wait for ${listed(names)}, which ${is} behind it in event time and ${has} no more records; all other sources of this process wait with it. The engine does not take ${emptyLaggards.length === 1 ? 'it' : 'them'} for idle${idleness}.`,
        next: `${askProducers(topics, names)} ${setIdleness(timeoutMs)} Or the developers can allow the group a larger \`maxDrift\`.`,
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

/**
 * Which of those that are behind hold the others. Where all went quiet together nobody waits for anybody: it is night, or
 * the end of what was fed. But one that never had a record keeps all that was fed from giving results.
 */
function holdingOf(behind: readonly PartitionFacts[], all: readonly PartitionFacts[], now: number): PartitionFacts[] {
  const others = all.filter((each) => !behind.includes(each) && !each.idle && now - each.quietSinceMs < 60_000)
  const lastCameMs = Math.max(...others.map(({ quietSinceMs }) => quietSinceMs))
  return behind.filter(
    ({ watermarkMs, quietSinceMs }) => watermarkMs === null || lastCameMs >= quietSinceMs + patienceMs,
  )
}

const watermarkHeld: StandstillRow = {
  code: 'WATERMARK_HELD',
  severity: 'STANDING',
  title: 'A partition without records holds the watermark',
  when: 'The application has windows or timers in event time; a partition has had no record for 5 s and for twice as long as ever before, is not idle, and others have gone ahead of it, with records that came after its last. Or it has had none at all, and others have: then event time has not begun. Where an idleness time-out is set, it has to have passed 5 s ago; on a machine short of processors it takes more.',
  explains: [],
  next: 'Check first whether the programs that write this topic run, and whether they still write to this partition. If it is quiet on purpose, the developers can set `idleness` for this source; `watermark.idleness-timeout` does it for all sources. After that time the engine stops waiting for the partition, and records that arrive on it afterwards may be dropped as late.',
  nextBehind: 'Event time goes on when that is done.',
  guide:
    'The watermark says up to which event time everything has come. It is the least of all partitions that are not idle, so one that never has a record keeps every window open. `watermark.idleness-timeout` is off by default, because an engine cannot know whether a quiet partition is late or empty.',
  find: (facts, now) => {
    if (!facts.usesEventTime || facts.state !== 'RUNNING') return []
    const known = facts.partitions.filter(({ watermarkMs, idle }) => watermarkMs !== null && !idle)
    const newest = Math.max(Number.NEGATIVE_INFINITY, ...known.map(({ watermarkMs }) => watermarkMs as number))
    if (newest === Number.NEGATIVE_INFINITY) return []
    // An engine that hangs reads nothing and leaves nothing out: what holds then is as of its last sign of life.
    const seenMs = now - facts.engineSilentMs
    const behind = facts.partitions.filter((each) => {
      const { idle, lag, buffered, quietSinceMs, longestQuietMs, doneSinceMs, idlenessTimeoutMs } = each
      // Of what goes from task to task those who write tell the time: whom they wait for is found among their own.
      if (each.isAnnounced || idle || lag > 0 || buffered > 0 || heldBackMs(each, newest) <= clockToleranceMs)
        return false
      if (seenMs - quietSinceMs < Math.max(patienceMs, 2 * longestQuietMs)) return false
      // To be idle it has to be read to its end and asked since, from a start on: that takes its time where processors are short.
      const idleDueMs = idlenessTimeoutMs + patienceMs + hopsOfACommit * facts.lateMs
      return idlenessTimeoutMs === 0 || seenMs - Math.max(quietSinceMs, doneSinceMs, facts.stateSinceMs) >= idleDueMs
    })
    const holding = holdingOf(behind, facts.partitions, now)
    const [first] = holding
    if (first === undefined) return []
    const sinceMs = Math.min(...holding.map(({ quietSinceMs }) => quietSinceMs))
    const names = holding.map(nameOf)
    const listedNames = listed(names)
    const ago = lasting(now - sinceMs)
    const these = holding.length === 1 ? listedNames : 'these partitions'
    const all = holding.length > 5 ? ' (GET `/watermarks` lists all of them)' : ''
    const what =
      first.watermarkMs === null
        ? `Event time (the watermark) has not begun, because no record of ${listedNames}${all} has been read yet: the engine has waited for one for ${ago}`
        : `Event time (the watermark) stands still, because ${listedNames}${all} ${holding.length === 1 ? 'has' : 'have'} had no record for ${ago}. By their timestamps, the other partitions have come ${lasting(heldBackMs(first, newest))} further`
    const { idlenessTimeoutMs: timeoutMs } = first
    const idleness =
      timeoutMs === 0
        ? ': the idleness time-out (watermark.idleness-timeout) is off'
        : `, although the idleness time-out (watermark.idleness-timeout), ${lasting(timeoutMs)}, has passed`
    return [
      {
        sentence: `${what}. The engine does not leave ${these} out as idle${idleness}. Until records come there, windows give no results and timers do not fire. Nothing is lost meanwhile.`,
        next: `${askProducers(
          holding.map(({ topic }) => topic),
          holding.length === 1 ? names : ['each of these partitions'],
        )} ${first.idlenessTimeoutMs > 0 ? overdueIdleness(these) : setIdleness(first.idlenessTimeoutMs)}`,
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

const byItself =
  'If it does not run any more, Kafka should abort the transaction by itself after the `transaction.timeout.ms` of that producer (1 min for most; 15 min at most unless configured otherwise). One that is older is stuck and does not end by itself:'
const ownMarker =
  'This discards what the transaction wrote to this partition; its other partitions have to be ended one by one.'
const begins = 'when it starts again, Kafka aborts its open transaction and discards what it wrote.'

const isOfApplication = ({ applicationId }: Facts, id: string): boolean => id.startsWith(`${applicationId}-`)

function holderText(facts: Facts, holder: PartitionFacts['withheldBy']): string {
  if (holder === null) return 'A producer that is not known'
  const { producerId, transactionalId } = holder
  if (transactionalId === null) return `The producer with the producer id ${producerId}`
  const name = `with the transactional id '${transactionalId}' (producer id ${producerId})`
  return isOfApplication(facts, transactionalId)
    ? `Another process of this application, ${name},`
    : `The producer ${name}`
}

/** What ends it, the gentlest first. */
function holderNext(
  facts: Facts,
  { topic, partition }: PartitionFacts,
  holder: TransactionHolder | null,
  offset: number,
) {
  const tool = `kafka-transactions.sh ${bootstrap(facts)}`
  const at = `--topic ${topic} --partition ${partition}`
  const id = holder?.transactionalId ?? null
  const find =
    id !== null
      ? `${isOfApplication(facts, id) ? 'That is another process of this application: ask it first, with `millrace why --url` and its address, and do what is advised there. If it gives no answer, restart it' : `Ask the owner of the program that writes as '${id}' whether so long a transaction is meant, and if not, to restart it`}: ${begins}`
      : holder !== null
        ? `Find out who it is: \`${tool} list\` shows the transactional id beside the producer id ${holder.producerId}. Then ask its owner whether so long a transaction is meant, and if not, to restart it: ${begins}`
        : `Find out who it is: \`${tool} describe-producers ${at}\` shows the producer id with an open transaction, and \`${tool} list\` the transactional id beside it. Then ask its owner whether so long a transaction is meant, and if not, to restart it: ${begins}`
  if (isEmbedded(facts.broker.address))
    return `${find.replace(/, and if not, .*/, '.')} This is an embedded broker, which Kafka’s own tools cannot ask, and whoever writes to it may run within this process: call the developers, and restart neither this process nor the writer before they agree.${isInMemory(facts.broker.address) ? ' (The topics of the embedded broker are in memory, and a restart of its process loses them.)' : ''} The broker ends the transaction by itself after the time-out that the writer has set for it (1 min for most): nothing is lost meanwhile.`
  return `${find} ${byItself} \`${tool} find-hanging ${at}\` lists it. Only then, and if its owner agrees: \`${tool} abort ${at} --start-offset ${offset}\`. ${ownMarker}`
}

/** Steps of a commit with results in an open transaction. */
const writing: ReadonlySet<CommitPhase> = new Set([
  'FLUSHING',
  'SENDING_OFFSETS',
  'IN_TX_COMMIT',
  'RESOLVING_OUTCOME',
  'ABORTING',
])

/** What the engine writes into topics between its own tasks waits for its own commit, which has findings of its own. */
function isOwn({ transactionalId, commit }: Facts, { isAnnounced, withheldBy }: PartitionFacts): boolean {
  if (transactionalId === undefined) return false
  if (withheldBy !== null) return withheldBy.transactionalId === transactionalId
  return isAnnounced === true && commit !== null && writing.has(commit.phase)
}

const transactionOpen: StandstillRow = {
  code: 'TRANSACTION_OPEN',
  severity: 'STANDING',
  withoutRestart: true,
  title: 'An open transaction of another producer holds records back',
  when: 'For 5 s records have lain behind a transaction that whoever writes the topic has neither committed nor aborted.',
  explains: ['WATERMARK_HELD', 'ALIGNMENT_HELD'],
  next: `Find out which program holds it open: \`kafka-transactions.sh --bootstrap-server <broker> describe-producers --topic <topic> --partition <partition>\` shows its producer id, and \`list\` in place of \`describe-producers\` the transactional id beside it. Ask its owner whether so long a transaction is meant, and if not, to restart it. ${byItself} \`kafka-transactions.sh find-hanging\` lists it. Only then, and if its owner agrees, end it with \`kafka-transactions.sh abort\`. ${ownMarker}`,
  guide:
    'Records after the first open transaction of a partition may not be read: nobody knows yet whether those before them count. `lag` in `/offsets` counts them, `withheld` tells them apart.',
  find: (facts, now) =>
    (hasEnded(facts) ? [] : facts.partitions)
      .filter(({ withheldSinceMs }) => withheldSinceMs !== null && now - withheldSinceMs >= patienceMs)
      .filter((each) => !isOwn(facts, each))
      .slice(0, 20)
      .map((each): Found => {
        const { topic, partition, withheld, lag, committedOffset, withheldSinceMs, withheldBy } = each
        const offset = (committedOffset ?? 0) + lag - withheld
        return {
          sentence: `${holderText(facts, withheldBy)} has had a transaction open on ${nameOf(each)} for at least ${lasting(now - (withheldSinceMs as number))}. It begins at offset ${offset}. The engine cannot read the ${withheld} records from there on until the transaction ends. Other partitions are still read.`,
          sinceMs: withheldSinceMs as number,
          place: { topic, partition, offset },
          evidence: [{ at: '/offsets', field: 'sources[].partitions[].withheld', value: withheld }],
          next: holderNext(facts, each, withheldBy, offset),
        }
      }),
}

const pauseFirst =
  'First stop the loss: `millrace pause` with the same `--url`, or POST /pause. Records wait in their topics meanwhile, for as long as these keep them.'
const mendClock =
  'Then look at the clock of this machine (`date -u`). Only if it is behind the true time by about as much as the record is ahead of it, the record is right: set the clock right, and then `millrace resume`. Otherwise do not resume yet. Find the program that wrote the record, and correct its clock or its timestamps.'
/** Neither the source's correction nor a restart takes the jump back. */
const afterwards =
  'When the timestamps are right again, the watermark still stays ahead: it never goes back, not by a restart either. Leave it paused until the developers have chosen: (1) Let the developers begin anew under another `applicationId`, with a timestamp extractor that refuses times ahead of the clock, and stop this process for good. The new one starts without state and reads its topics from the beginning, as far as they are kept. So the dropped records count as well, and whoever reads the results gets them a second time. (2) Or go on as it is (`millrace resume`): every record with a timestamp before the time of the jump is dropped as late, those that waited included. That is right where the jump is short or the dropped records do not matter.'

const timestampAhead: StandstillRow = {
  code: 'TIMESTAMP_AHEAD',
  severity: 'STANDING',
  title: 'Timestamps ahead of the clock',
  when: 'A record’s event time is more than a minute ahead of this machine’s clock, it took the application’s watermark with it, and later records were dropped as late.',
  explains: [],
  next: `${pauseFirst} ${mendClock} \`errors.dropped: dead-letter\` keeps late records as dead letters from the next start on, which ends the pause. ${afterwards}`,
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
        sentence: `The record ${topic}/${partition} at offset ${record.offset} has a timestamp that is ${lasting(record.timestampMs - now)} ahead of the clock of this machine. It moved event time (the watermark) forward to ${clockTime(globalWatermarkMs)}. Since then ${lateRecords} ${lateRecords === 1 ? 'record with a right timestamp was' : 'records with right timestamps were'} dropped as late.`,
        next: aheadNext(facts, { topic, partition, offset: record.offset }, globalWatermarkMs),
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

const inMemoryChoice =
  '(1) Let the developers begin anew, with a timestamp extractor that refuses times ahead of the clock: the topics of this embedded broker are gone then, with the records that wait in them, and have to be written again.'

function aheadNext(facts: Facts, record: RecordPlace, watermarkMs: number): string {
  const dropped = facts.settings?.dropped
  const keep =
    dropped === 'dead-letter'
      ? 'Late records are kept as dead letters. '
      : isInMemory(facts.broker.address)
        ? ''
        : `To keep late records as dead letters from now on, set ${setting('errors.dropped', dropped)} to \`dead-letter\` and start the process again${facts.ha === null ? ', which ends the pause' : ''}. Put back under this \`applicationId\`, they are late again. `
  const then = afterwards
    .replace('the time of the jump', clockTime(watermarkMs))
    .replace('another `applicationId`', `another ${setting('applicationId', facts.applicationId)}`)
  const choices = isInMemory(facts.broker.address) ? then.replace(/\(1\) .+ \(2\)/, `${inMemoryChoice} (2)`) : then
  return `${pauseFirst} ${mendClock} ${toRead(facts, record)}${keep}${choices}`
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
  next: `${stillNext}${safeRestart}`,
  nextBehind: 'The buffer then empties by itself; nothing is to be done about the partition.',
  find: (facts, now, behind) => {
    const isStill = nothingMoves(facts, now)
    if (!behind && !isStill) return []
    const still = isStill ? ' No record of any partition is being processed.' : ''
    return facts.partitions
      .filter(({ fullSinceMs }) => fullSinceMs !== null && now - fullSinceMs >= 3000)
      .slice(0, 20)
      .map((each): Found => {
        const { topic, partition, buffered, bufferCapacity, fullSinceMs } = each
        return {
          sentence: `${nameOf(each)} is not fetched any further: its buffer has been full for ${lasting(now - (fullSinceMs as number))} (${buffered} records of ${bufferCapacity}).${still}`,
          sinceMs: fullSinceMs as number,
          place: { topic, partition },
          evidence: [{ at: '/consumer', field: `assignment.${keyOf(each)}.buffered`, value: buffered }],
          next: bufferFull.next.replace(safeRestart, thenRestart(facts)),
          ...(isStill && !behind && { severity: 'STANDING' as const }),
        }
      })
  },
}

export const inputRows: readonly StandstillRow[] = [transactionOpen, alignmentHeld, watermarkHeld, timestampAhead]
export const effectRows: readonly StandstillRow[] = [bufferFull]
