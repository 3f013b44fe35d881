/** Standstills in functions of the application. */
import type { Facts, LaneFacts, RecordPlace, SchemaFacts } from '../facts.ts'
import type { Evidence, Found, Place } from '../finding.ts'
import { isMeantToRun, type StandstillRow, waitedMs } from '../row.ts'
import {
  isEmbedded,
  isInMemory,
  readCommand,
  restartCosts,
  restartWarning,
  saveThreads,
  setting,
  time,
  toRead,
} from '../wording/advice.ts'
import { clockTime, lasting, perSecond, recordName } from '../words.ts'

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
  // What it has not passed on yet may be older than what others wait with, and this process may be the one that writes it.
  'ORDER_HELD',
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

/** `matchBags (app.ts:31), step match-bags,`; the name alone where the thread could not tell the line. */
function functionOf(lane: LaneFacts, node: string | null): string {
  const name = lane.function ?? lane.nodeFunction ?? null
  return name === null || node === null ? (name ?? stepOf(node)) : `${name}, step ${node},`
}

const stepOf = (node: string | null): string =>
  node === null ? 'a function of the application' : `a function of the step ${node}`

const atRecord = (at: RecordPlace | null): string => (at === null ? '' : `, at the record ${recordName(at)}`)

function commitWaits({ commit }: Facts, lane: string): string {
  const waits = commit?.outstandingLanes.includes(lane) ?? false
  if (!waits || commit === null) return ''
  return ` The commit that began at ${clockTime(commit.phaseSinceMs)} waits for it, and no results are published until it ends.`
}

/** What becomes of it by itself; `meanwhile`: of a function that does not return even then. */
function byItself({ commit, settings }: Facts, meanwhile = '', sinceMs?: number): string {
  if (commit === null) return ''
  const { used, max, windowMs } = commit.restarts
  const after = setting('commit-barrier.timeout-ms', time(settings?.laneTimeoutMs))
  const earliest =
    sinceMs === undefined || settings?.laneTimeoutMs === undefined
      ? ''
      : ` (at ${clockTime(sinceMs + settings.laneTimeoutMs)} at the earliest)`
  return `By itself the engine restarts in place once the call has lasted longer than ${after} while a commit waits for it${earliest}, and reads the record again.${meanwhile} ${used} of ${max} restarts in place within ${lasting(windowMs)} ${used === 1 ? 'is' : 'are'} used; after the last one the engine fails, or a standby takes over.`
}

/** `offset`: of the record whose call has not ended. A lane with nothing but calls out is at no step. */
function laneEvidence(facts: Facts, lane: LaneFacts, offset?: number): Evidence[] {
  const entry = `lanes[${facts.lanes.findIndex((each) => each.lane === lane.lane)}]`
  const outstanding = facts.commit?.outstandingLanes ?? []
  return [
    offset === undefined
      ? { at: '/debug/barriers', field: `${entry}.node`, value: lane.node }
      : { at: '/debug/barriers', field: `${entry}.at.offset`, value: offset },
    ...(outstanding.length > 0
      ? [{ at: '/debug/barriers', field: 'outstandingLanes', value: outstanding.slice(0, 8) }]
      : []),
    ...(lane.function === null ? [] : [{ at: '/debug/threads', field: `${lane.lane} stack`, value: lane.function }]),
  ]
}

/** Whether it is still at work on a step that never took so long before. */
function isStuck(facts: Facts, { stepSinceMs, longestStepMs }: LaneFacts, now: number): boolean {
  if (stepSinceMs === null) return false
  return waitedMs(facts, stepSinceMs, now) >= Math.max(patienceMs, unusual * longestStepMs)
}

/** The engine has failed of this very call, which is what its failure says. */
function isTold({ failure }: Facts, { call }: LaneFacts): boolean {
  const [record, at] = [failure?.record, call?.at]
  if (record === undefined || at === undefined || at === null) return false
  return record.topic === at.topic && record.partition === at.partition && record.offset === at.offset
}

/** Once the engine has failed nobody hears of an answer any more. */
function isUnanswered(facts: Facts, { call, longestCallMs }: LaneFacts, now: number): boolean {
  const { state, stateSinceMs } = facts
  const heardUpTo = state === 'FAILED' ? Math.min(now, stateSinceMs) : now
  return call !== null && waitedMs(facts, call.sinceMs, heardUpTo) >= Math.max(patienceMs, unusual * longestCallMs)
}

const lagOf = (facts: Facts): number => facts.partitions.reduce((sum, { lag }) => sum + lag, 0)

const rollBack = 'Where it began with a new release, roll that back.'
const correctWait =
  'The developers have to correct the function: add a timeout, and use asynchronous calls to wait for processes, locks or files.'
const correctLoop = 'The developers have to correct the function: end the loop, or split the work up.'

const doesNotReturn: StandstillRow = {
  code: 'LANE_DOES_NOT_RETURN',
  severity: 'STANDING',
  title: 'A function does not return',
  when: 'A lane has been in one call of a synchronous function for 6 s, and for twice as long as any call before.',
  explains: behindALane,
  next: `${saveThreads('the lane')} ${rollBack} Where it waits: ${correctWait.replace('The', 'the')} Where it computes: ${correctLoop.replace('The', 'the')} Until then a restart helps only where the function waited for something that is there again.`,
  nextBehind: 'The function goes on when that is done.',
  guide:
    'A lane is a thread that runs the functions of the application. It can do nothing else until the function returns: no other record of its keys, no commit. An endless loop and a synchronous wait look the same to the data; the sentence tells which of them it is.',
  find: (facts, now) =>
    facts.lanes
      .filter((lane) => isStuck(facts, lane, now))
      .map((lane, _, all): Found => {
        const sinceMs = lane.stepSinceMs as number
        return {
          sentence: `${lane.lane} has been in one call of ${functionOf(lane, lane.node)} for ${lasting(now - sinceMs)}${atRecord(lane.at)}.${doing(lane)}${commitWaits(facts, lane.lane)}`,
          sinceMs,
          place: whereOf(lane, lane.node, lane.at),
          evidence: laneEvidence(facts, lane),
          next:
            asAbove(
              lane,
              all.find(({ blocked }) => blocked === lane.blocked),
            ) ?? stuckNext(facts, lane),
        }
      }),
}

/** Of many lanes the first has the advice: an answer about all of them stays small. */
function asAbove({ lane }: LaneFacts, first: LaneFacts | undefined): string | undefined {
  return first === undefined || first.lane === lane ? undefined : `Do what is advised for ${first.lane} above.`
}

/** Seen from outside: a thread that tells its stack runs code. */
function doing({ blocked, function: name }: LaneFacts): string {
  if (blocked) return ' The thread waits outside of JavaScript, as for a lock, another process or native code.'
  return name === null ? '' : ' It runs JavaScript: a loop without an end, or very long work.'
}

const onceMore =
  'To go on before that, the process can be restarted. It reads the record again, and if that hangs again, only a corrected program helps.'

function stuckNext(facts: Facts, { lane, blocked, stepSinceMs }: LaneFacts): string {
  const told = blocked ? ' (the stack of a blocked thread may be incomplete)' : ''
  const save = saveThreads(lane).replace(/\.$/, `${told}.`)
  const look = blocked
    ? ' Then look at what this process may wait for: a child process (`ps --ppid` with the number of this one), a locked file, a device. Once that ends, the function goes on. Ask the developers before you end it: the function may then fail, or return half a result.'
    : ''
  const isLost = isInMemory(facts.broker.address)
  const instead = blocked
    ? ' If no developer can be reached in time, and this process has exactly one child process, which serves this call alone, end that one (`kill` with its number): half a result of one record harms less than the loss of all topics. End nothing else: locks and devices serve others, too.'
    : ' Nothing but the end of the call keeps the topics. Once they are lost, whoever writes them has to write again.'
  const loss = isLost ? ': the topics of its embedded broker are in memory, and are lost then.' : '.'
  const ends = ` If the function has still not returned some seconds later, the process exits with code 70, so that its supervisor restarts it${loss}`
  const correct = blocked ? correctWait : correctLoop
  const way = isLost
    ? `${restartCosts(facts)} Where it began with a new release, tell them: to roll that back is a restart too. ${correct}`
    : `${rollBack} ${correct} ${onceMore} ${restartCosts(facts)}`
  const own = byItself(facts, ends, stepSinceMs ?? undefined)
  if (!isLost || own === '') return `${save}${look} ${way} ${own}`.trimEnd()
  // That all topics are about to go is said before what takes time.
  return `${own} Until then, s${save.slice(1)}${look}${instead} ${way}`
}

const promisePending: StandstillRow = {
  code: 'PROMISE_PENDING',
  severity: 'STANDING',
  withoutRestart: true,
  title: 'A promise does not settle',
  when: 'An asynchronous function was called 6 s ago, twice as long as any call before, and its promise is still pending.',
  explains: behindALane,
  next: 'Check the system that this step calls (a database, a web service; its developers know which): does it run, does it answer, can it be reached from this host? On the host, `ss -tnp` lists the connections of this process. (`/debug/threads` does not show such a call: the lane itself is free.) The developers have to put a timeout on the call, as in `fetch(url, { signal: AbortSignal.timeout(5000) })`.',
  nextBehind: 'The call is made anew when that is done.',
  guide:
    'The lane is free and works on other keys, so it looks idle. Records of the same key wait, behind many of them their whole partition, and the next commit waits for this call. A record whose schema the registry has not given yet waits in the same way; the sentence says so, and what to do is to check the registry.',
  find: (facts, now) =>
    facts.lanes
      // A thread that is in a function cannot hear of the promise.
      .filter((lane) => isUnanswered(facts, lane, now) && !isStuck(facts, lane, now) && !isTold(facts, lane))
      .map((lane, _, all): Found => {
        const call = lane.call as NonNullable<LaneFacts['call']>
        const step = call.node === null ? 'a step of the application' : `the step ${nodeOf(call)}`
        const schemas = schemasFor(facts, call)
        return {
          sentence: schemas
            ? schemaPending(facts, lane, schemas, now)
            : `An asynchronous call that ${step} made in ${lane.lane} has not ended for ${lasting(now - call.sinceMs)}${atRecord(call.at)}: its promise is pending.${call.isAgain === true ? madeAnew : ''}${commitWaits(facts, lane.lane)}`,
          sinceMs: call.sinceMs,
          place: {
            lane: lane.lane,
            ...(call.node !== null && { node: call.node }),
            ...functionPlace(call),
            ...call.at,
          },
          evidence: laneEvidence(facts, { ...lane, function: null }, call.at?.offset),
          next: asAbove(lane, all[0]) ?? (schemas ? schemaNext(schemas) : pendingNext(facts, call)),
        }
      }),
}

const madeAnew = ' The engine has restarted in place because of it, and the call was made anew for the same record.'

type Call = NonNullable<LaneFacts['call']>

/** `ask-customs (function askCustoms)` */
function nodeOf({ node, nodeFunction = null }: Pick<Call, 'node' | 'nodeFunction'>): string {
  return nodeFunction === null ? (node ?? '') : `${node} (function ${nodeFunction})`
}

function functionPlace({ nodeFunction = null }: Pick<Call, 'nodeFunction'>): Place {
  return nodeFunction === null ? {} : { function: nodeFunction }
}

/** A record that is not decoded yet is at no step: what it waits for is its schema. */
function schemasFor({ schemas }: Facts, { node }: Call): SchemaFacts | undefined {
  return node === null ? (schemas ?? undefined) : undefined
}

function schemaPending(
  facts: Facts,
  { lane, call }: LaneFacts,
  { ids, registry, trouble }: SchemaFacts,
  now: number,
): string {
  const { sinceMs, at } = call as Call
  const which = ids.length === 1 ? `the schema ${ids[0]}` : `one of the schemas ${ids.slice(0, 8).join(', ')}`
  const why = trouble === null ? 'has not given yet' : `does not give: ${trouble}`
  return `A record has waited in ${lane} for ${lasting(now - sinceMs)}${atRecord(at)}: it cannot be decoded without ${which}, which the schema registry ${registry} ${why}.${commitWaits(facts, lane)}`
}

function schemaNext({ giveUpAfterMs }: SchemaFacts): string {
  return `Check the schema registry: does it run, does it answer, can it be reached from this host, and does it have the schema? It is asked again and again; once it gives the schema, the record and those of its key behind it go on by themselves, in their order, and no restart is needed. After ${setting('schema-registry.give-up-after', time(giveUpAfterMs))} the record counts as one that cannot be decoded, and ${setting('errors.decoding')} decides: \`fail\` keeps it, \`skip\` and \`dead-letter\` go on without it.`
}

function pendingNext(facts: Facts, call: Call): string {
  const what = call.nodeFunction ?? call.node
  const next = what === null ? promisePending.next : promisePending.next.replace('this step', what)
  const own = byItself(facts)
  return own === '' ? next : `${next} ${own} If the call hangs again, only that system or a corrected program helps.`
}

const callsFail: StandstillRow = {
  code: 'CALLS_FAIL',
  severity: 'STANDING',
  withoutRestart: true,
  title: 'Calls fail and are made again',
  when: 'A call of a function that has a `breaker` failed for the first time 6 s ago, is made again with pauses, and has failed ever since.',
  explains: behindALane,
  next: `Look up the error in the log of this process: it says \`is made again\` there. ${whetherItAnswers('this step')}`,
  nextBehind: 'The calls come through when that is done.',
  guide:
    'While such a call fails, the record waits, and so does the next commit: nothing is published, and nothing is lost. It ends as soon as the call comes through. A record that alone fails while later ones come through goes the way of `errors.processing` after the number of failures that the breaker sets (`after`). Where no other record comes, nobody can tell which of the two it is, and the engine waits.',
  find: (facts, now) =>
    facts.lanes
      .filter(({ failing }) => failing !== undefined && now - failing.sinceMs >= patienceMs)
      .map((lane, _, all): Found => {
        const failing = lane.failing as NonNullable<LaneFacts['failing']>
        const { sinceMs, at, node } = failing
        return {
          sentence: `${failingCalls(lane.lane, failing, now)}${commitWaits(facts, lane.lane)}`,
          sinceMs,
          place: { lane: lane.lane, ...(node !== null && { node }), ...functionPlace(failing), ...at },
          evidence: [{ at: '/debug/barriers', field: 'outstandingLanes', value: facts.commit?.outstandingLanes ?? [] }],
          next: asAbove(lane, all[0]) ?? failingNext(facts, failing),
        }
      }),
}

function failingCalls(lane: string, failing: NonNullable<LaneFacts['failing']>, now: number): string {
  const { calls, sinceMs, at, node } = failing
  const name = node === null ? 'a step of the application' : `the step ${nodeOf(failing)}`
  const again = 'made again, with pauses of up to 5 s.'
  if (calls === 1)
    return `A call that ${name} made in ${lane} has failed again and again for ${lasting(now - sinceMs)}${atRecord(at)}. It is ${again}`
  return `${calls} calls in ${lane} fail again and again. The oldest was made by ${name}, and has failed for ${lasting(now - sinceMs)}${atRecord(at)}; whose the others are is not known here. They are ${again}`
}

/** `callee`: the step, or its function, that calls. */
function whetherItAnswers(callee: string): string {
  return `Then check the system that ${callee} calls (a database, a web service; its developers know which): does it run, does it answer, can it be reached from this host? Once it answers, the calls come through by themselves within some seconds: nothing is lost, and no restart is needed.`
}

/** Whether it is the service or the record, only other records can tell. */
function failingNext(facts: Facts, { node, nodeFunction, at }: NonNullable<LaneFacts['failing']>): string {
  const next = callsFail.next.replace('this step', nodeFunction ?? node ?? 'this step')
  if (at === null) return next
  const { processing } = facts.settings ?? {}
  const becomes = processing === undefined ? '' : `: ${fates[processing] ?? processing}`
  return `${next} If it answers everybody else, it may be refusing this very record. ${toRead(facts, at)}Once later records have come through, the engine itself does with this one what ${setting('errors.processing', processing)} says${becomes}. If no others come, this one waits: call the developers with the place of the record.`
}

/** What `errors.processing` makes of a record. */
const fates: Readonly<Record<string, string>> = {
  fail: 'the engine ends with FAILED, and names the record',
  'dead-letter': 'the record is set aside in the dead letters',
  skip: 'the record is dropped',
}

const hotKey: StandstillRow = {
  code: 'HOT_KEY',
  severity: 'SLOW',
  title: 'One key with an asynchronous function',
  when: 'For 5 s records of one and the same key have waited for each other’s asynchronous call, more of its partition wait behind them, and the lane finishes little else.',
  explains: ['LANE_SLOW', 'ORDER_HELD', 'BUFFER_FULL', 'COMMITS_SLOW'],
  next: 'Check whether the system that this step calls (a database, a web service; the developers know which) is slower than usual: the only immediate remedy is to make it answer faster. More lanes or processes do not help, because all records of one key go through one lane. The developers can make the call quicker, or spread what comes under this key over several keys.',
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
      const from = topic === null ? '' : ` of ${topic}/${partition}`
      return [
        {
          sentence: `Records of one and the same key${from} follow each other (its hash is ${hash}). ${lane.lane} processes them one after the other, and each waits ${duration(callMs)} for an asynchronous call${node === null ? '' : ` of the step ${node}`}. That makes ${perSecond(rate)}. ${hot.waiting} of them wait in ${lane.lane}. The partition is read in order, so all of it waits behind them: ${behind} records, of this key and of others.`,
          sinceMs: hot.sinceMs,
          place: {
            lane: lane.lane,
            ...(node !== null && { node }),
            keyHash: hash,
            ...(topic !== null && { topic, partition }),
          },
          evidence: [{ at: '/offsets', field: 'sources[].partitions[].lag', value: behind }],
          ...(topic !== null && {
            next: keyNext(facts, node, { topic, partition, offset: here?.committedOffset ?? 0 }, behind),
          }),
        },
      ]
    }),
}

/** With the way to find the key, which is not told here. */
function keyNext(facts: Facts, node: string | null, from: RecordPlace, waiting: number): string {
  const advice = node === null ? hotKey.next : hotKey.next.replace('this step', node)
  if (isEmbedded(facts.broker.address)) return advice
  const command = readCommand(facts, from, Math.min(1000, waiting))
  return `${advice} To find the key, see which one comes most among the records that wait (their keys and contents are then on the screen): ${command}.`
}

function duration(ms: number): string {
  if (ms < 1) return 'less than 1 ms'
  return ms < 1000 ? `about ${Math.round(ms)} ms` : `about ${(ms / 1000).toFixed(1)} s`
}

const laneSlow: StandstillRow = {
  code: 'LANE_SLOW',
  severity: 'SLOW',
  title: 'A slow function',
  when: 'A lane has been at work for 5 s without a pause of 3 s, finishes fewer than 50 records in a second of work, and more wait.',
  explains: ['ORDER_HELD', 'BUFFER_FULL', 'COMMITS_SLOW'],
  next: 'Look at what the function spends its time with. If it calls another system, check whether that one is slower than usual; where it computes, whether this host is short of processor time. The developers can make it quicker. More lanes (`engine.lanes.count`) help only where the records that wait have different keys.',
  nextBehind: 'The lane is as quick as before when that is done.',
  guide:
    'It moves: records are finished, and commits come. Where none was finished within the last seconds, the sentence says how long the function took at most before. Once a call takes 6 s, and twice as long as ever before, it is told as `LANE_DOES_NOT_RETURN` or `PROMISE_PENDING` instead.',
  find: (facts, now) =>
    !isMeantToRun(facts)
      ? []
      : facts.lanes.flatMap((lane): Found[] => {
          const { rate, busySinceMs, busyShare = 1 } = lane
          if (rate === null || busySinceMs === null || now - busySinceMs < slowForMs) return []
          // One that is about at the limit is not told anew with each look.
          const slack = facts.slowBefore?.has(lane.lane) === true ? 1.5 : 1
          // Time in which it had nothing to do is not its own.
          if (rate > slowRate * busyShare * slack) return []
          // A call or step that is out of the ordinary has a finding of its own.
          if (rate === 0 && (isStuck(facts, lane, now) || isUnanswered(facts, lane, now))) return []
          const waiting = lagOf(facts)
          if (waiting < 10 || (waiting / Math.max(rate, 0.01)) * 1000 < backlogMs / slack) return []
          // Calls that are over in a small part of the time that a record takes are not what it goes to.
          const asynchronous = lane.callMs > 0 && (rate === 0 || lane.callMs * rate >= 200)
          const node = asynchronous ? (lane.call?.node ?? lane.hotKey?.node ?? lane.node) : lane.node
          // Of a call the thread's stack tells nothing: it is at something else by now.
          const caller = { ...lane, function: null, nodeFunction: lane.call?.nodeFunction ?? null }
          const where = functionOf(asynchronous ? caller : lane, node)
          const each = asynchronous
            ? ` A call of ${where} takes ${duration(lane.callMs)} until it is answered.`
            : rate > 0
              ? ` A record takes ${duration((1000 * busyShare) / rate)} in ${where.replace(/,$/, '')}.`
              : ` It is in ${where.replace(/,$/, '')}.`
          return [
            {
              sentence: `${lane.lane} ${pace(lane, asynchronous)}.${each} ${waiting} records wait in all partitions of this process.`,
              next: slowNext(facts, lane.lane, asynchronous ? (caller.nodeFunction ?? node) : undefined),
              sinceMs: busySinceMs,
              place: whereOf(lane, node, null),
              evidence: [{ at: '/offsets', field: 'totalLag', value: waiting }, ...laneEvidence(facts, lane)],
            },
          ]
        }),
}

/** Of a lane that finished nothing within the last seconds nobody knows yet whether it is stuck. */
function pace({ rate, longestCallMs, longestStepMs }: LaneFacts, asynchronous: boolean): string {
  if (rate !== null && rate > 0) return `is slow, not stuck: it finishes ${perSecond(rate)}`
  const longestMs = asynchronous ? longestCallMs : longestStepMs
  const still = asynchronous ? 'PROMISE_PENDING' : 'LANE_DOES_NOT_RETURN'
  const dueMs = Math.max(patienceMs, unusual * longestMs)
  const before =
    longestMs >= 1000
      ? ` (the longest call before took ${lasting(longestMs)})`
      : ', and no call has taken as long before: whether this one is slow or hangs is not known yet'
  return `is slow: it has finished no record within the last seconds${before}. Ask again soon: a call that has not ended after ${lasting(dueMs)} is told as ${still}`
}

/** `called`: the step whose calls take the time; undefined where the lane itself computes. */
function slowNext(facts: Facts, lane: string, called: string | null | undefined): string {
  const { lanes } = facts
  const first =
    called === undefined
      ? `Check whether this host is short of processor time (\`top\`, the CPU limit of the container). If it is not, the function itself takes that long: GET \`/debug/threads\`, asked a few times, shows in the stack of ${lane} what it is at. The developers have to make it quicker, or asynchronous where it waits.`
      : `Check the system that ${called === null ? 'this step' : called} calls (a database, a web service): is it slower than usual? The developers can make the call quicker.`
  return `${first} More lanes help only where the records that wait have different keys: ${setting('engine.lanes.count', `${lanes.length}: ${lanes.length === 1 ? 'lane-0' : `lane-0 to lane-${lanes.length - 1}`}`)}.${restartWarning(facts, 'Another number of lanes, or another CPU limit of the container, mostly')}`
}

export const laneRows: readonly StandstillRow[] = [doesNotReturn, promisePending, callsFail, hotKey, laneSlow]
