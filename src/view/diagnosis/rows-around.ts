/** Standstills around the engine: what it was told to do, the broker, the stores, what failed. */
import type { BrokerNode } from '../../broker/port.ts'
import type { EarlierFailure, Facts } from './facts.ts'
import type { Found } from './finding.ts'
import { isMeantToRun, type StandstillRow } from './row.ts'
import { clockTime, lasting, listed, nodeName, recordName } from './words.ts'

const patienceMs = 5000
/** An exchange goes through several threads, and each of them may wait as long for a processor as this one does. */
export const hopsOfACommit = 10
export const hourMs = 3_600_000
export const everythingBehind = [
  'BUFFER_FULL',
  'WATERMARK_HELD',
  'ALIGNMENT_HELD',
  'COMMITS_SLOW',
  'COMMIT_UNANSWERED',
  'RESTARTS',
]

/** Failures of the last hour at this very record, this one included. */
function attemptsAt(facts: Facts, record: EarlierFailure['record'], now: number): readonly EarlierFailure[] {
  return facts.earlier.filter((failure) => {
    const { record: at, atMs } = failure
    if (now - atMs > hourMs || at === undefined || record === undefined) return false
    return at.topic === record.topic && at.partition === record.partition && at.offset === record.offset
  })
}

function isPassed({ partitions }: Facts, record: NonNullable<EarlierFailure['record']>): boolean {
  const { topic, partition, offset } = record
  const here = partitions.find((each) => each.topic === topic && each.partition === partition)
  return here !== undefined && here.committedOffset !== null && here.committedOffset > offset
}

const poisonRecord: StandstillRow = {
  code: 'POISON_RECORD',
  severity: 'FAILED',
  title: 'A record that cannot be processed',
  when: 'The engine failed at a record; or an earlier run did within the hour, and nothing behind that record is committed yet.',
  explains: ['FAILED', ...everythingBehind],
  next: 'Correct the function and start again, or let such records go to the dead letters (errors.processing, errors.decoding: dead-letter).',
  guide:
    'What earlier runs left is kept in the state folder, so that it is also told where a supervisor starts the process again and again. With stores in memory there is no such folder: then only the run at hand is known.',
  find: (facts, now) => {
    const current = facts.failure?.record
    const last = facts.earlier[0]
    const record = current ?? last?.record
    if (record === undefined || (facts.failure !== null && current === undefined)) return []
    const before = attemptsAt(facts, record, now)
    if (current === undefined && (before.length === 0 || isPassed(facts, record))) return []
    const message = (current === undefined ? last?.message : facts.failure?.message) ?? ''
    const sinceMs = Math.min(facts.failure === null ? now : facts.stateSinceMs, ...before.map(({ atMs }) => atMs))
    const again =
      before.length > 1
        ? ` ${before.length} attempts within the hour ended there, the first at ${clockTime(sinceMs)}.`
        : ''
    const running =
      current === undefined ? ` This is attempt ${before.length + 1}; it has not come past the record yet.` : ''
    return [
      {
        sentence: `The record ${recordName(record)} cannot be processed: ${message.replace(/\.?$/, '.')}${again}${running}`,
        sinceMs,
        place: { ...record },
        evidence: [
          { at: '/state', field: 'failure', value: current === undefined ? null : (facts.failure?.code ?? null) },
        ],
        severity: current === undefined ? 'STANDING' : 'FAILED',
      },
    ]
  },
}

const failed: StandstillRow = {
  code: 'FAILED',
  severity: 'FAILED',
  title: 'The engine has failed',
  when: 'The lifecycle state is FAILED.',
  explains: ['RESTARTS', ...everythingBehind],
  next: 'Look up the code in docs/errors.md, which says who has to act; then start the process again.',
  find: ({ state, failure, stateSinceMs }) => {
    if (state !== 'FAILED') return []
    const { code, message, restartHelps } = failure ?? {
      code: 'UNKNOWN',
      message: 'the reason is not known',
      restartHelps: false,
    }
    return [
      {
        sentence: `The engine has failed (${code}): ${message.replace(/\.?$/, '.')}`,
        sinceMs: stateSinceMs,
        place: { ...failure?.record },
        evidence: [{ at: '/state', field: 'failure.code', value: code }],
        next: restartHelps
          ? 'Start the process again. If it fails again, look up the code in docs/errors.md.'
          : failed.next,
      },
    ]
  },
}

const paused: StandstillRow = {
  code: 'PAUSED',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'Paused by an operator',
  when: 'Somebody asked for it with POST /pause: while it finishes what is under way, and from then on.',
  explains: everythingBehind,
  next: 'Send POST /unpause to go on; ask whoever is named here why it was paused.',
  find: ({ state, pausedBy, stateSinceMs }, now) => {
    if (state !== 'PAUSED' && state !== 'DRAINING') return []
    const sinceMs = pausedBy?.sinceMs ?? stateSinceMs
    return [
      {
        sentence: `The application ${state === 'PAUSED' ? 'is paused' : 'finishes what is under way and pauses then'}: ${pausedBy?.who ?? 'an operator'} asked for it ${lasting(now - sinceMs)} ago (${clockTime(sinceMs)}).`,
        sinceMs,
        place: {},
        evidence: [{ at: '/state', field: 'current', value: state }],
      },
    ]
  },
}

const standby: StandstillRow = {
  code: 'STANDBY',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'A standby',
  when: 'This pod (a process of an application with `ha.mode: hot-standby`) waits to take over; another one is to process.',
  explains: everythingBehind,
  next: 'Nothing, if another pod is active: ask that one. If none is, `millrace ha status` shows all pods and why none takes over.',
  find: ({ state, ha, stateSinceMs }, now) => {
    if (state !== 'STANDBY') return []
    const active = ha?.active ?? null
    const who =
      active === null
        ? 'no active pod is heard of'
        : `pod ${active.podId} is active (${active.state}, heard ${lasting(active.heardMs)} ago)`
    const ready = ha?.notReady ? ` It could not take over now: ${ha.notReady.replace(/\.?$/, '.')}` : ''
    return [
      {
        sentence: `This pod has been a standby for ${lasting(now - stateSinceMs)}: ${who}.${ready}`,
        sinceMs: stateSinceMs,
        place: { ...(active !== null && { pod: active.podId }) },
        evidence: [{ at: '/ha/status', field: 'selfState', value: ha?.state ?? null }],
      },
    ]
  },
}

const stopping: StandstillRow = {
  code: 'STOPPING',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'It stops',
  when: 'The process was told to end.',
  explains: everythingBehind,
  next: 'Nothing, if that was meant. Else start it again, and look for what ended it: a signal, its supervisor, a deployment.',
  find: ({ state, stateSinceMs }, now) =>
    state !== 'STOPPING' && state !== 'STOPPED'
      ? []
      : [
          {
            sentence: `The process was told to end ${lasting(now - stateSinceMs)} ago${state === 'STOPPING' ? ' and commits what it has done' : ''}.`,
            sinceMs: stateSinceMs,
            place: {},
            evidence: [{ at: '/state', field: 'current', value: state }],
          },
        ],
}

const license: StandstillRow = {
  code: 'LICENSE_REFUSED',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'The license does not count',
  when: 'The license is EXPIRED, REVOKED or INVALID.',
  explains: [],
  next: 'Look at `/license` and the log, which say what is wrong with it, and set a license that counts (license.key). A restart alone does not help.',
  guide:
    'The readiness probe is DOWN, so the process is taken out of service. Records that it has are processed all the same.',
  find: ({ license: { status, counts, sinceMs } }, now) =>
    counts
      ? []
      : [
          {
            sentence: `The license has been ${status} for ${lasting(now - sinceMs)}: it keeps this process from being ready (/health/ready is DOWN).`,
            sinceMs,
            place: {},
            evidence: [{ at: '/license', field: 'status', value: status }],
          },
        ],
}

const brokerGone: StandstillRow = {
  code: 'BROKER_GONE',
  severity: 'STANDING',
  title: 'The broker does not answer',
  when: 'For 5 s no call to the broker has gone well, and one has failed or has waited so long. On a machine short of processors it takes more.',
  explains: ['RESTORING', ...everythingBehind],
  next: 'Look at the broker and the network between. The engine tries again by itself and uses up none of its restarts.',
  find: ({ broker, state, lateMs }, now) => {
    const dueMs = patienceMs + hopsOfACommit * lateMs
    if (broker.connected || now - broker.sinceMs < dueMs || state === 'CREATED' || state === 'STOPPED') return []
    // A process that starts is not connected either: whoever was not asked yet owes no answer.
    const asked = broker.nodes.filter(
      (node) => !node.connected && (node.lastError !== null || waitsFor(node, now, dueMs)),
    )
    const { sinceMs } = broker
    const lastError = asked.find((node) => node.lastError !== null)?.lastError ?? broker.lastError
    if (asked.length === 0 && lastError === null) return []
    const names = asked.length === 0 ? `at ${broker.address}` : listed(asked.map(nodeName), 3)
    return [
      {
        sentence: `The broker ${names} has not answered for ${lasting(now - sinceMs)}${lastError === null ? '' : `; last error: ${lastError.replace(/\.$/, '')}`}.`,
        sinceMs,
        place: { broker: asked[0]?.address ?? broker.address },
        evidence: [{ at: '/health/ready', field: 'components[name=broker].details.connected', value: false }],
      },
    ]
  },
}

function waitsFor({ calls }: BrokerNode, now: number, dueMs: number): boolean {
  return calls.some(({ sinceMs }) => now - sinceMs >= dueMs)
}

/** In which the engine's thread is there and gives signs of life; before that it waits for the broker. */
const tickingStates: ReadonlySet<string> = new Set([
  'RESTORING',
  'STANDBY',
  'RUNNING',
  'DRAINING',
  'PAUSED',
  'RESTARTING',
])

const engineSilent: StandstillRow = {
  code: 'ENGINE_SILENT',
  severity: 'STANDING',
  title: 'The engine’s own thread is silent',
  when: 'The engine’s thread has given no sign of life for 5 s in which this process was let run. On a machine short of processors it takes more.',
  explains: everythingBehind,
  next: 'A timestamp extractor of the application runs there: look whether it returns. `/debug/threads` shows what the thread `engine` is at.',
  find: (facts, now) => {
    // While the process waits for processors its threads are silent in turns, and whoever looks sees little of it.
    const dueMs = facts.missedMs + patienceMs + hopsOfACommit * facts.lateMs
    if (facts.engineSilentMs < dueMs || !tickingStates.has(facts.state)) return []
    return [
      {
        sentence: `The thread \`engine\`, which reads the topics, hands records to the lanes and commits, has given no sign of life for ${lasting(facts.engineSilentMs)}: nothing moves.`,
        sinceMs: now - facts.engineSilentMs,
        place: {},
        evidence: [
          { at: '/health/live', field: 'components[name=engine].details', value: Math.round(facts.engineSilentMs) },
        ],
      },
    ]
  },
}

/** The store as the lane's sentence names it. */
function storeIn(sentence: string): { store?: string } {
  const store = /\bstores? ([^\s,]+)/.exec(sentence)?.[1]
  return store === undefined ? {} : { store }
}

const diskFull: StandstillRow = {
  code: 'STORE_DISK_FULL',
  severity: 'STANDING',
  title: 'The disk of the stores is full',
  when: 'Stores wait for room on the disk.',
  explains: ['LANE_DOES_NOT_RETURN', 'LANE_SLOW', ...everythingBehind],
  next: 'Make room in the folder of the stores (engine.state.dir). The engine goes on by itself.',
  find: (facts) =>
    facts.diskFull === null
      ? []
      : [
          {
            sentence: facts.diskFull.sentence.replace(/\.?$/, '.'),
            sinceMs: facts.diskFull.sinceMs,
            place: storeIn(facts.diskFull.sentence),
            evidence: [{ at: '/health/ready', field: 'components[name=engine].details', value: 'STORE_DISK_FULL' }],
          },
        ],
}

const restoring: StandstillRow = {
  code: 'RESTORING',
  severity: 'SLOW',
  title: 'State is restored',
  when: 'Stores are filled from their changelogs before records are processed, for more than 2 s.',
  explains: everythingBehind,
  next: 'Wait. Stores on disk (engine.state.store: lmdb) that outlive the process, or a standby, make it short.',
  find: ({ state, restore, restoreRate, stateSinceMs }, now) => {
    if (state !== 'RESTORING' || now - stateSinceMs < 2000) return []
    const left = restore.reduce((sum, { remainingRecords }) => sum + remainingRecords, 0)
    const done = restore.reduce((sum, { restoredRecords }) => sum + restoredRecords, 0)
    const slowest = restore.toSorted((a, b) => b.remainingRecords - a.remainingRecords)[0]
    const time =
      restoreRate === null || restoreRate <= 0
        ? ''
        : ` at ${Math.round(restoreRate)} a second, about ${lasting((left / restoreRate) * 1000)} left`
    const where =
      slowest === undefined ? '' : ` Most is left of the store ${slowest.store}, partition ${slowest.partition}.`
    return [
      {
        sentence: `Stores have been filled from their changelogs for ${lasting(now - stateSinceMs)}: ${done} records of ${done + left} are restored${time}.${where}`,
        sinceMs: stateSinceMs,
        place: slowest === undefined ? {} : { store: slowest.store, partition: slowest.partition },
        evidence: [{ at: '/state', field: 'restore[].remainingRecords', value: left }],
      },
    ]
  },
}

const restarts: StandstillRow = {
  code: 'RESTARTS',
  severity: 'STANDING',
  title: 'The engine restarts again and again',
  when: 'Two restarts in place or more count within their window, or one has been under way for 5 s.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'ALIGNMENT_HELD', 'COMMITS_SLOW'],
  next: 'Cure what is named in brackets; the newest cause comes first. When all restarts are used up, the engine fails, or a standby takes over.',
  find: (facts, now): Found[] => {
    const { commit, state, stateSinceMs } = facts
    if (commit === null || !isMeantToRun(facts)) return []
    const { used, max, windowMs, causes } = commit.restarts
    const underWay = state === 'RESTARTING' && now - stateSinceMs >= patienceMs
    if (used < 2 && !underWay) return []
    return [
      {
        sentence: `The engine ${underWay ? `has been restarting in place for ${lasting(now - stateSinceMs)}` : 'restarts in place again and again'}: ${used} of ${max} restarts within ${lasting(windowMs)} are used${causes.length === 0 ? '' : ` (${listed(causes, 3)})`}.`,
        sinceMs: commit.restartsSinceMs ?? stateSinceMs,
        place: {},
        evidence: [{ at: '/debug/barriers', field: 'restarts.used', value: used }],
        severity: underWay ? 'STANDING' : 'SLOW',
      },
    ]
  },
}

export const failureRows: readonly StandstillRow[] = [poisonRecord]
export const orderedRows: readonly StandstillRow[] = [stopping, paused, standby, license]
export const aroundRows: readonly StandstillRow[] = [diskFull, brokerGone, engineSilent, restoring]
export const lateRows: readonly StandstillRow[] = [restarts, failed]
