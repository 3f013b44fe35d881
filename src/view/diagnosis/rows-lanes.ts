/** Standstills in functions of the application. */
import type { Facts, LaneFacts, RecordPlace } from './facts.ts'
import type { Evidence, Found, Place } from './finding.ts'
import { isMeantToRun, type StandstillRow } from './row.ts'
import { lasting, perSecond, recordName } from './words.ts'

/** What may take a while in any application, and how much longer than usual something has to take. */
const patienceMs = 6000
const unusual = 2
/** How slow a lane has to be, for how long, to be called slow. */
const slowRate = 50
export const slowForMs = 5000
/** Records that wait have to need longer than this at the rate they go. */
const backlogMs = 5000

/** All that a lane's own trouble can bring about. */
const behindALane = [
  'HOT_KEY',
  'LANE_SLOW',
  'BUFFER_FULL',
  'COMMITS_SLOW',
  'RESTARTS',
  'RESTORING',
  'FAILED',
  'PAUSED',
  'STOPPING',
]

function whereOf(lane: LaneFacts, node: string | null, at: RecordPlace | null): Place {
  return {
    lane: lane.lane,
    ...(node !== null && { node }),
    ...(lane.function !== null && { function: lane.function }),
    ...at,
  }
}

function functionOf(lane: LaneFacts, node: string | null): string {
  const inNode = node === null ? '' : `node ${node}`
  if (lane.function === null) return inNode === '' ? 'a function of the application' : `a function of the ${inNode}`
  return inNode === '' ? lane.function : `${lane.function} of the ${inNode}`
}

const atRecord = (at: RecordPlace | null): string => (at === null ? '' : `, at the record ${recordName(at)}`)

function commitWaits({ commit }: Facts, lane: string): string {
  const waits = commit?.outstandingLanes.includes(lane) ?? false
  return waits ? '; the commit waits for it, so nothing is committed meanwhile' : ''
}

/** What becomes of it by itself. */
function restartNext({ commit }: Facts, advice: string): string {
  if (commit === null) return advice
  const { used, max, windowMs } = commit.restarts
  return `The engine goes back to the last commit by itself once it has waited for longer than commit-barrier.timeout-ms (${used} of ${max} such restarts within ${lasting(windowMs)} are used). ${advice}`
}

function laneEvidence(facts: Facts, lane: LaneFacts): Evidence[] {
  const index = facts.lanes.indexOf(lane)
  const outstanding = facts.commit?.outstandingLanes ?? []
  return [
    { at: '/debug/barriers', field: `lanes[${index}].node`, value: lane.node },
    ...(outstanding.length > 0
      ? [{ at: '/debug/barriers', field: 'outstandingLanes', value: outstanding.slice(0, 8) }]
      : []),
    ...(lane.function === null ? [] : [{ at: '/debug/threads', field: `${lane.lane} stack`, value: lane.function }]),
  ]
}

/** Whether it is still at work on a step that never took so long before. */
function isStuck({ stepSinceMs, longestStepMs }: LaneFacts, now: number): boolean {
  return stepSinceMs !== null && now - stepSinceMs >= Math.max(patienceMs, unusual * longestStepMs)
}

function isUnanswered({ call, longestCallMs }: LaneFacts, now: number): boolean {
  return call !== null && now - call.sinceMs >= Math.max(patienceMs, unusual * longestCallMs)
}

const lagOf = (facts: Facts): number => facts.partitions.reduce((sum, { lag }) => sum + lag, 0)

const doesNotReturn: StandstillRow = {
  code: 'LANE_DOES_NOT_RETURN',
  severity: 'STANDING',
  title: 'A function does not return',
  when: 'A lane has been in one call of a synchronous function for 6 s, and for twice as long as any call before.',
  explains: behindALane,
  next: 'Correct the function, or let it end by itself after a time of its own. What waits (for a process, a lock, a file) is better asynchronous.',
  guide:
    'A lane is a thread that runs the functions of the application. It can do nothing else until the function returns: no other record of its keys, no commit. An endless loop and a synchronous wait look the same to the data; the sentence tells which of them it is.',
  find: (facts, now) =>
    facts.lanes
      .filter((lane) => isStuck(lane, now))
      .map((lane): Found => {
        const sinceMs = lane.stepSinceMs as number
        const blocked = lane.blocked ? '; it waits outside of JavaScript (a lock, a process, native code)' : ''
        return {
          sentence: `${lane.lane} has been in ${functionOf(lane, lane.node)} for ${lasting(now - sinceMs)}${atRecord(lane.at)}${blocked}${commitWaits(facts, lane.lane)}.`,
          sinceMs,
          place: whereOf(lane, lane.node, lane.at),
          evidence: laneEvidence(facts, lane),
          next: restartNext(facts, doesNotReturn.next),
        }
      }),
}

const promisePending: StandstillRow = {
  code: 'PROMISE_PENDING',
  severity: 'STANDING',
  title: 'A promise does not settle',
  when: 'An asynchronous function was called 6 s ago, twice as long as any call before, and its promise is still pending.',
  explains: behindALane,
  next: 'Give what the function waits for a time-out of its own, as in `fetch(url, { signal: AbortSignal.timeout(5000) })`.',
  guide:
    'The lane is free and works on other keys, so it looks idle; records of the same key wait, and the next commit waits for this one.',
  find: (facts, now) =>
    facts.lanes
      .filter((lane) => isUnanswered(lane, now))
      .map((lane): Found => {
        const call = lane.call as NonNullable<LaneFacts['call']>
        const node =
          call.node === null ? 'an asynchronous function' : `the asynchronous function of the node ${call.node}`
        return {
          sentence: `The promise of ${node} in ${lane.lane} has been pending for ${lasting(now - call.sinceMs)}${atRecord(call.at)}${commitWaits(facts, lane.lane)}.`,
          sinceMs: call.sinceMs,
          place: { lane: lane.lane, ...(call.node !== null && { node: call.node }), ...call.at },
          evidence: laneEvidence(facts, { ...lane, node: call.node, function: null }),
          next: restartNext(facts, promisePending.next),
        }
      }),
}

const hotKey: StandstillRow = {
  code: 'HOT_KEY',
  severity: 'SLOW',
  title: 'One key with an asynchronous function',
  when: 'For 5 s records of one and the same key have waited for each other’s asynchronous call, more of its partition wait behind them, and the lane finishes little else.',
  explains: ['LANE_SLOW', 'BUFFER_FULL', 'COMMITS_SLOW'],
  next: 'Records of one key go one after the other. Make the call quicker, or spread what comes under this key over several keys.',
  guide:
    'The key is told as a hash that is the same on all pods; `murmur2` of its bytes, as Kafka’s partitioner has it.',
  find: (facts, now) =>
    facts.lanes.flatMap((lane): Found[] => {
      const { hotKey: hot, callMs } = lane
      if (hot === null || now - hot.sinceMs < slowForMs || callMs <= 0) return []
      const rate = 1000 / callMs
      // Where the lane finishes many more, other keys go on beside it: this one is not what holds it up.
      if (lane.rate !== null && lane.rate > 10 * rate) return []
      const here = facts.partitions.find((each) => each.topic === hot.topic && each.partition === hot.partition)
      const behind = here?.lag ?? 0
      if ((behind / rate) * 1000 < backlogMs) return []
      const { hash, node, topic, partition } = hot
      const from = topic === null ? '' : `, of ${topic}/${partition},`
      return [
        {
          sentence: `Records of one key (hash ${hash})${from} go one after the other in ${lane.lane}, through the asynchronous function${node === null ? '' : ` of the node ${node}`}: ${perSecond(rate)}. ${hot.waiting} of this key wait in the lane, ${behind} records in the partition.`,
          sinceMs: hot.sinceMs,
          place: {
            lane: lane.lane,
            ...(node !== null && { node }),
            keyHash: hash,
            ...(topic !== null && { topic, partition }),
          },
          evidence: [{ at: '/offsets', field: 'sources[].partitions[].lag', value: behind }],
        },
      ]
    }),
}

const laneSlow: StandstillRow = {
  code: 'LANE_SLOW',
  severity: 'SLOW',
  title: 'A slow function',
  when: 'A lane has been at work without a pause for 5 s, finishes fewer than 50 records a second, and more wait.',
  explains: ['BUFFER_FULL', 'COMMITS_SLOW'],
  next: 'The function named here takes the time. Make it quicker or asynchronous, or spread the work over more lanes (engine.lanes.count) and processes.',
  guide: 'It moves: each record is finished, and commits come. This is never told of a function that does not return.',
  find: (facts, now) =>
    !isMeantToRun(facts)
      ? []
      : facts.lanes.flatMap((lane): Found[] => {
          const { rate, busySinceMs } = lane
          if (rate === null || busySinceMs === null || now - busySinceMs < slowForMs || rate > slowRate) return []
          // A call or step that is out of the ordinary has a finding of its own.
          if (rate === 0 && (isStuck(lane, now) || isUnanswered(lane, now))) return []
          const waiting = lagOf(facts)
          if (waiting < 10 || (waiting / Math.max(rate, 0.01)) * 1000 < backlogMs) return []
          const asynchronous = lane.callMs > 0
          const node = lane.call?.node ?? lane.node
          const each = asynchronous
            ? `; a call takes ${Math.round(lane.callMs)} ms`
            : rate > 0
              ? `; a record takes ${Math.round(1000 / rate)} ms`
              : ''
          return [
            {
              sentence: `${lane.lane} is slow, not stuck: it finishes ${perSecond(rate)} in ${functionOf(lane, node)}${each}, and ${waiting} records wait.`,
              sinceMs: busySinceMs,
              place: whereOf(lane, node, null),
              evidence: [{ at: '/offsets', field: 'totalLag', value: waiting }, ...laneEvidence(facts, lane)],
            },
          ]
        }),
}

export const laneRows: readonly StandstillRow[] = [doesNotReturn, promisePending, hotKey, laneSlow]
