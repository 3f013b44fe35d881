/** Standstills around the engine: what it was told to do, the broker, the stores, what failed. */
import type { BrokerNode } from '../../broker/port.ts'
import type { EarlierFailure, Facts } from './facts.ts'
import type { Found } from './finding.ts'
import { isMeantToRun, type StandstillRow } from './row.ts'
import { failureAdvice, readCommand, setting } from './wording/advice.ts'
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
  next: 'A restart alone does not help: the same record fails again. The developers have to correct the function, or whoever writes the topic the record. Or have such records set aside: `dead-letter` for `errors.processing`, `errors.decoding` or `errors.producing` writes them to a topic of their own, `skip` drops them. Then start the process.',
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
        ? ` ${before.length} attempts of the last hour ended at this record, the first at ${clockTime(sinceMs)}; each start of the process is one.`
        : ''
    const running =
      current === undefined
        ? ` This is attempt ${before.length + 1}. It has committed nothing behind that record yet.`
        : ' This process processes nothing any more.'
    const code = current === undefined ? last?.code : facts.failure?.code
    return [
      {
        sentence: `One record cannot be processed, ${recordName(record)}: ${message.replace(/\.?$/, '.')}${again}${running}`,
        next: poisonNext(facts, code, record),
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

/** The setting that decides on such a failure, and whose work it is. */
const policies = {
  PROCESSING_FAILED: { key: 'processing', cure: 'The developers have to correct the function; give them this text.' },
  DECODE_FAILED: { key: 'decoding', cure: 'Whoever writes the topic has to correct what is written.' },
  PRODUCE_FAILED: { key: 'producing', cure: 'The developers have to correct what the application writes.' },
} as const

function poisonNext(facts: Facts, code: string | undefined, record: NonNullable<EarlierFailure['record']>) {
  const policy = policies[code as keyof typeof policies]
  const command = readCommand(facts, record)
  if (policy === undefined) return `${poisonRecord.next} To read the record: ${command}.`
  const { key, cure } = policy
  const topic = facts.settings?.deadLetterTopic
  const where = topic === undefined ? 'a topic of their own' : `the topic ${topic}`
  const set = setting(`errors.${key}`, facts.settings?.[key])
  return `A restart alone does not help: the same record fails again. ${cure} To read the record: ${command}. Or have all such records set aside: set ${set} to \`dead-letter\`, which writes them to ${where}, or to \`skip\`, which drops them. Then start the process again.`
}

const failed: StandstillRow = {
  code: 'FAILED',
  severity: 'FAILED',
  title: 'The engine has failed',
  when: 'The lifecycle state is FAILED.',
  explains: ['RESTARTS', ...everythingBehind],
  next: 'Do what belongs to the code that the sentence names (docs/errors.md); then start the process again.',
  nextBehind: 'Start this process again only if that advice says so.',
  find: ({ state, failure, stateSinceMs, settings }) => {
    if (state !== 'FAILED') return []
    const { code, message, restartHelps } = failure ?? {
      code: 'UNKNOWN',
      message: 'the reason is not known',
      restartHelps: false,
    }
    return [
      {
        sentence: `The engine of this process has given up, with the error ${code}: ${message.replace(/\.?$/, '.')}`,
        sinceMs: stateSinceMs,
        place: { ...failure?.record },
        evidence: [{ at: '/state', field: 'failure.code', value: code }],
        next: failureAdvice(code, restartHelps, settings),
      },
    ]
  },
}

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const paused: StandstillRow = {
  code: 'PAUSED',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'Paused by an operator',
  when: 'Somebody asked for it with POST /pause: while it finishes what is under way, and from then on.',
  explains: everythingBehind,
  next: 'Find out first why it was paused: ask whoever the sentence names, or has that address. Then `millrace resume` with the same `--url`, or POST /unpause, lets it go on. Records wait in Kafka meanwhile, for as long as their topics keep them.',
  find: ({ state, pausedBy, stateSinceMs }, now) => {
    if (state !== 'PAUSED' && state !== 'DRAINING') return []
    const sinceMs = pausedBy?.sinceMs ?? stateSinceMs
    return [
      {
        sentence: `${state === 'PAUSED' ? 'This process is paused and reads no records' : 'This process is about to pause: it still finishes what it has begun'}. ${upper(pausedBy?.who ?? 'an operator')} asked for it ${lasting(now - sinceMs)} ago (${clockTime(sinceMs)}).`,
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
  next: 'A standby is no fault. Ask the pod that is active, with `millrace why --url` and its address. If none is active, `millrace ha status` shows all pods, and for each why it does not take over.',
  find: ({ state, ha, stateSinceMs }, now) => {
    if (state !== 'STANDBY') return []
    const active = ha?.active ?? null
    const who =
      active === null
        ? 'It hears of no pod that is active, so probably nothing is processed'
        : `The pod ${active.podId} is active: it said ${active.state} ${lasting(active.heardMs)} ago`
    const notReady = ha?.notReady ?? null
    const ready = notReady === null ? '' : ` This pod could not take over now: ${notReady.replace(/\.?$/, '.')}`
    return [
      {
        sentence: `This pod has been a standby for ${lasting(now - stateSinceMs)} and processes nothing. ${who}.${ready}`,
        next: standbyNext(active?.podId ?? null, notReady !== null),
        sinceMs: stateSinceMs,
        place: { ...(active !== null && { pod: active.podId }) },
        evidence: [{ at: '/ha/status', field: 'selfState', value: ha?.state ?? null }],
      },
    ]
  },
}

function standbyNext(active: string | null, isBehind: boolean): string {
  if (active === null) {
    return '`millrace ha status --url` with the address of this pod shows all pods, and for each why it does not take over. Start those that are missing. `millrace ha promote <pod>` gives the role to one by name.'
  }
  const ready = isBehind
    ? ' That this pod is not ready is no reason why results have stopped. Should the figures not fall, look at its processor, its disk and its network.'
    : ''
  return `Nothing is wrong here. If results have stopped, ask the pod ${active}: \`millrace why --url\` with its address.${ready}`
}

const stopping: StandstillRow = {
  code: 'STOPPING',
  severity: 'NOT_MEANT_TO_RUN',
  title: 'It stops',
  when: 'The process was told to end.',
  explains: everythingBehind,
  next: 'If that was intended, nothing is to be done. Otherwise look for what stopped it (a deployment, the supervisor, a signal; in Kubernetes `kubectl get events`), then start it again.',
  find: ({ state, stateSinceMs }, now) =>
    state !== 'STOPPING' && state !== 'STOPPED'
      ? []
      : [
          {
            sentence: `This process was told to end ${lasting(now - stateSinceMs)} ago. It takes in no more records${state === 'STOPPING' ? ', and commits those that it has finished' : ''}.`,
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
  next: 'Get a valid license from whoever buys the licenses of this application, set it (`license.key`, or `license.key-file`), and start the process again. A restart alone does not help. `/license` and the log tell more of the present one.',
  guide:
    'The readiness probe is DOWN, so the process is taken out of service. Records that it has are processed all the same.',
  find: ({ license: { status, counts, sinceMs } }, now) =>
    counts
      ? []
      : [
          {
            sentence: `The license has been ${status} for ${lasting(now - sinceMs)}: it keeps this process from being ready (/health/ready is DOWN), so that a load balancer or a supervisor may take it out of service. Records are processed all the same: if results have stopped as well, there is another cause.`,
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
  next: 'Check from this host whether the broker runs and can be reached: its process and its log, the name and the port (`broker.bootstrap-servers`), a firewall or a network policy in between. The engine tries again by itself as long as it takes; no restart of this process is needed.',
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
    const others = broker.nodes.filter(({ connected }) => connected)
    const error = lastError === null ? '' : ` The last error: ${withoutAdvice(lastError)}.`
    const more =
      others.length === 0
        ? ''
        : ` The connection to ${listed(
            others.map(({ address }) => address),
            3,
          )} is up.`
    return [
      {
        sentence: `${silentNames(asked, broker.address)} answered for ${lasting(now - sinceMs)}.${error}${more} The engine waits and tries again.`,
        next: brokerNext(asked[0]?.address ?? broker.address, asked.length === 0),
        sinceMs,
        place: { broker: asked[0]?.address ?? broker.address },
        evidence: [{ at: '/health/ready', field: 'components[name=broker].details.connected', value: false }],
      },
    ]
  },
}

function silentNames(asked: readonly BrokerNode[], address: string): string {
  if (asked.length > 0) return `The broker ${listed(asked.map(nodeName), 3)} has not`
  return address.includes(',')
    ? `None of the addresses in \`broker.bootstrap-servers\` (${address}) has`
    : `The broker at ${address} has not`
}

/** What the error advises is what this row does, with more to go by. */
const withoutAdvice = (error: string): string =>
  error.replace(/; check `broker\.bootstrap-servers`.*$/, '').replace(/\.$/, '')

function brokerNext(address: string, isNobody: boolean): string {
  const first = address.split(',')[0] ?? ''
  const [host, port] = [first.replace(/:\d+$/, ''), /:(\d+)$/.exec(first)?.[1]]
  const each = address.includes(',') ? ', and so for each address' : ''
  const test = port === undefined ? '' : ` (\`nc -vz ${host} ${port}\`${each})`
  const value = isNobody ? `, and whether ${setting('broker.bootstrap-servers', address)} is right` : ''
  const runs =
    each === '' ? 'the broker’s process runs, and look at its log' : 'the brokers run, and look at their logs'
  return `Check that ${runs}. Then check from this host${test} that it can be reached: name, port, firewall, network policy${value}. The engine tries again by itself as long as it takes; no restart of this process is needed.`
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
  next: 'Save the answer of `/debug/threads`: it shows the stack of the thread `engine`. The only functions of the application on that thread are timestamp extractors. If the stack names one, the developers have to correct it; else send it to the maintainers of Millrace. Then restart the process. A restart loses nothing: what is committed stays, and all other records are read again.',
  find: (facts, now) => {
    // While the process waits for processors its threads are silent in turns, and whoever looks sees little of it.
    const dueMs = facts.missedMs + patienceMs + hopsOfACommit * facts.lateMs
    if (facts.engineSilentMs < dueMs || !tickingStates.has(facts.state)) return []
    return [
      {
        sentence: `The thread \`engine\` of this process has given no sign of life for ${lasting(facts.engineSilentMs)}. It reads the topics, hands records to the lanes and commits, so this process processes nothing.`,
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
  next: 'Enlarge the volume that `engine.state.dir` is on, or free space elsewhere on it (logs, other data). Never delete files of the stores: they are the state of the application. The engine goes on by itself as soon as there is room; no restart is needed.',
  nextBehind: 'It ends by itself when there is room.',
  find: (facts) =>
    facts.diskFull === null
      ? []
      : [
          {
            sentence: facts.diskFull.sentence.replace(/\.?$/, '.'),
            ...(facts.settings !== undefined && {
              next: diskFull.next.replace('`engine.state.dir`', setting('engine.state.dir', facts.settings.stateDir)),
            }),
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
  next: 'Wait; a restart begins it anew or makes it longer. If it comes often and takes too long: stores on a disk that outlives the process make it short (`engine.state.store: lmdb`, `engine.state.dir`), and so does a standby (`ha.mode: hot-standby`).',
  find: ({ state, restore, restoreRate, stateSinceMs }, now) => {
    if (state !== 'RESTORING' || now - stateSinceMs < 2000) return []
    const left = restore.reduce((sum, { remainingRecords }) => sum + remainingRecords, 0)
    const done = restore.reduce((sum, { restoredRecords }) => sum + restoredRecords, 0)
    const slowest = restore.toSorted((a, b) => b.remainingRecords - a.remainingRecords)[0]
    const time =
      restoreRate === null || restoreRate <= 0
        ? ''
        : ` at ${Math.round(restoreRate)} a second; about ${lasting((left / restoreRate) * 1000)} are left`
    const where =
      slowest === undefined
        ? ''
        : ` The store with the most still to come is ${slowest.store}, partition ${slowest.partition}.`
    return [
      {
        sentence: `The engine has been rebuilding its stores from their changelogs for ${lasting(now - stateSinceMs)}, and processes nothing until that is done. ${done} of ${done + left} records are restored${time}.${where}`,
        sinceMs: stateSinceMs,
        place: slowest === undefined ? {} : { store: slowest.store, partition: slowest.partition },
        evidence: [{ at: '/state', field: 'restore[].remainingRecords', value: left }],
      },
    ]
  },
}

/** They come with the newest first. */
function causesOf(causes: readonly string[]): string {
  const newest = causes.slice(0, 3).map(withoutAdvice)
  if (newest.length === 0) return ''
  if (newest.length === 1) return ` The cause: ${newest[0]}.`
  return ` The causes, the newest first: ${newest.map((cause, i) => `(${i + 1}) ${cause}`).join('. ')}.`
}

const restarts: StandstillRow = {
  code: 'RESTARTS',
  severity: 'STANDING',
  title: 'The engine restarts again and again',
  when: 'Two restarts in place or more count within their window, or one has been under way for 5 s.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'ALIGNMENT_HELD', 'COMMITS_SLOW'],
  next: 'Remove the causes that the sentence names, cause 1 first: it is the newest. By itself the engine goes on until the restarts are used up; then it fails, or a standby takes over. Each restart counts until it is older than the time that the sentence names.',
  find: (facts, now): Found[] => {
    const { commit, state, stateSinceMs } = facts
    if (commit === null || !isMeantToRun(facts)) return []
    const { used, max, windowMs, causes } = commit.restarts
    const underWay = state === 'RESTARTING' && now - stateSinceMs >= patienceMs
    if (used < 2 && !underWay) return []
    const how = underWay
      ? `The engine has been restarting in place for ${lasting(now - stateSinceMs)}; until that is done nothing is processed.`
      : 'The engine restarts in place again and again.'
    return [
      {
        ...(causes.length === 1 && {
          next: restarts.next.replace(/^[^.]*\./, 'Remove the cause that the sentence names.'),
        }),
        sentence: `${how} ${used} of the ${max} restarts that are allowed within ${lasting(windowMs)} ${used === 1 ? 'is' : 'are'} used.${causesOf(causes)}`,
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
