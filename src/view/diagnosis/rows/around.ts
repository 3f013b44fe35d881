/** Standstills around the engine: the broker, the engine's own thread, the stores. */
import type { BrokerNode } from '../../../broker/port.ts'
import { startedStates } from '../../lifecycle.ts'
import type { Facts } from '../facts.ts'
import type { Found } from '../finding.ts'
import { everythingBehind, hasEnded, hopsOfACommit, type StandstillRow, waitedMs } from '../row.ts'
import {
  embeddedNext,
  isEmbedded,
  thenRestart,
  safeRestart,
  saveThreads,
  setting,
  withoutAdvice,
} from '../wording/advice.ts'
import { lasting, listed, nodeName } from '../words.ts'

const patienceMs = 5000
const brokerGone: StandstillRow = {
  code: 'BROKER_GONE',
  severity: 'STANDING',
  title: 'The broker does not answer',
  when: 'For 5 s no call to the broker has gone well, and one has failed or has waited so long. On a machine short of processors it takes more.',
  explains: ['RESTORING', ...everythingBehind],
  next: 'Check from this host whether the broker runs and can be reached: its process and its log, the name and the port (`broker.bootstrap-servers`), a firewall or a network policy in between. The engine tries again by itself as long as it takes; no restart of this process is needed.',
  find: (facts, now) => {
    const { broker, state, lateMs, settings } = facts
    const dueMs = patienceMs + hopsOfACommit * lateMs
    if (state === 'CREATED' || state === 'STOPPED') return []
    const frozen = standsStill(facts, now, dueMs + (settings?.fetchMaxWaitMs ?? 0))
    // An engine that has failed waits for no fetch, also while it ends.
    if (frozen !== undefined && !hasEnded(facts)) return [frozen]
    if (broker.connected || now - broker.sinceMs < dueMs) return []
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

/** Connections to a broker that stands still are up for a long time: it is known by what it owes. */
function standsStill(facts: Facts, now: number, dueMs: number): Found | undefined {
  const fetches = facts.broker.nodes.flatMap((node) =>
    node.connected ? node.calls.flatMap(({ kind, sinceMs }) => (kind === 'fetch' ? { node, sinceMs } : [])) : [],
  )
  const owed = fetches.filter(({ sinceMs }) => waitedMs(facts, sinceMs, now) >= dueMs)
  const [first] = owed
  if (first === undefined) return undefined
  const sinceMs = Math.min(...owed.map((each) => each.sinceMs))
  const names = listed([...new Set(owed.map(({ node }) => nodeName(node)))], 3)
  return {
    sentence: `The broker ${names} has not answered a fetch for ${lasting(now - sinceMs)}, though the connection is up. The engine waits for it.`,
    next: brokerNext(first.node.address, false),
    sinceMs,
    place: { broker: first.node.address },
    evidence: [{ at: '/info', field: 'broker.connected', value: true }],
  }
}

function silentNames(asked: readonly BrokerNode[], address: string): string {
  if (asked.length > 0) return `The broker ${listed(asked.map(nodeName), 3)} has not`
  if (isEmbedded(address)) return `The embedded broker (${address}) has not`
  return address.includes(',')
    ? `None of the addresses in \`broker.bootstrap-servers\` (${address}) has`
    : `The broker at ${address} has not`
}

function brokerNext(address: string, isNobody: boolean): string {
  if (isEmbedded(address)) return embeddedNext(address)
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

const engineSilent: StandstillRow = {
  code: 'ENGINE_SILENT',
  severity: 'STANDING',
  title: 'The engine’s own thread is silent',
  when: 'The engine’s thread has given no sign of life for 5 s in which this process had processor time. On a machine short of processors it takes more.',
  explains: everythingBehind,
  next: `${saveThreads('the thread `engine`')} The only functions of the application on that thread are timestamp extractors. Send it to the developers: where the stack names one of their functions they have to correct it, else they pass it on to the maintainers of Millrace. ${safeRestart}`,
  find: (facts, now) => {
    // While the process waits for processors its threads are silent in turns, and whoever looks sees little of it.
    const dueMs = facts.missedMs + patienceMs + hopsOfACommit * facts.lateMs
    if (facts.engineSilentMs < dueMs || !startedStates.has(facts.state)) return []
    return [
      {
        sentence: `The thread \`engine\` of this process has given no sign of life for ${lasting(facts.engineSilentMs)}. That thread does all reading and committing; while it hangs, this process processes nothing.`,
        next: engineSilent.next.replace(safeRestart, thenRestart(facts)),
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
  const [, partition, name] = /\bstores? (?:of (partition \d+)|([^\s,]+))/.exec(sentence) ?? []
  const store = partition ?? name
  return store === undefined ? {} : { store }
}

const diskFull: StandstillRow = {
  code: 'STORE_DISK_FULL',
  severity: 'STANDING',
  withoutRestart: true,
  title: 'The disk of the stores is full',
  when: 'Stores wait for room on the disk.',
  explains: ['LANE_DOES_NOT_RETURN', 'LANE_SLOW', ...everythingBehind],
  next: 'Enlarge the volume that `engine.state.dir` is on, or delete other data on it, such as log files of programs. Delete nothing in that folder itself: it is the state of the application. The engine goes on by itself as soon as there is room; no restart is needed. Where `df -h` and `df -i` show room, the disk itself may be faulty: call whoever operates it.',
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

const brokerDiskFull: StandstillRow = {
  code: 'BROKER_DISK_FULL',
  severity: 'STANDING',
  withoutRestart: true,
  title: 'The disk of the embedded broker is full',
  when: 'Writes of this process wait for room on the disk of its embedded broker.',
  explains: everythingBehind,
  next: 'Enlarge the volume that the folder of the broker (`broker.bootstrap-servers: embedded:<folder>`) is on, or delete other data on it, such as log files of programs. Delete nothing in that folder itself: it holds all topics. The broker goes on by itself as soon as there is room, and the engine with it; no restart is needed. Where `df -h` and `df -i` show room, the disk itself may be faulty: call whoever operates it.',
  nextBehind: 'It ends by itself when there is room.',
  find: ({ broker: { address, trouble } }) =>
    trouble?.isWaiting !== true
      ? []
      : [
          {
            sentence: `${trouble.sentence.replace(/: enlarge .*$/, '')}. What is to be written waits, and nothing of it is lost.`,
            next: brokerDiskFull.next.replace(
              /the folder .*? is on/,
              `the folder ${address.replace('embedded:', '')} is on`,
            ),
            sinceMs: trouble.sinceMs,
            place: { broker: address },
            evidence: [{ at: '/health/ready', field: 'components[name=broker].details', value: 'BROKER_DISK_FULL' }],
          },
        ],
}

const restoring: StandstillRow = {
  code: 'RESTORING',
  severity: 'SLOW',
  title: 'State is restored',
  when: 'Stores are filled from their changelogs before records are processed, for more than 2 s.',
  explains: everythingBehind,
  next: 'Wait until it is done, and do not restart the process: that makes it longer. If the figures do not change from one look to the next, look at the broker, the network and the disk. To make it short the next time, keep the stores on a disk that stays when the process goes (`engine.state.store: lmdb`, with `engine.state.dir` on such a volume), or run a standby (`ha.mode: hot-standby`).',
  find: ({ state, restore, restoreRate, stateSinceMs }, now) => {
    if (state !== 'RESTORING' || now - stateSinceMs < 2000) return []
    const left = restore.reduce((sum, { remainingRecords }) => sum + remainingRecords, 0)
    const done = restore.reduce((sum, { restoredRecords }) => sum + restoredRecords, 0)
    const slowest = restore.toSorted((a, b) => b.remainingRecords - a.remainingRecords)[0]
    const time =
      restoreRate === null || restoreRate <= 0 || left === 0
        ? ''
        : `, ${Math.round(restoreRate)} more each second; the rest takes about ${lasting((left / restoreRate) * 1000)}`
    const where =
      slowest === undefined
        ? ''
        : left === 0
          ? ' All are restored: the engine is about to begin.'
          : ` The store with the most still to come is ${slowest.store}, partition ${slowest.partition}.`
    return [
      {
        sentence: `The engine has been rebuilding its stores from their changelogs for ${lasting(now - stateSinceMs)}, and processes nothing until that is done. ${done} of ${done + left} records are restored${time}.${where}`,
        sinceMs: stateSinceMs,
        ...(left === 0 && {
          next: restoring.next.replace(
            /If the figures .*?disk\. /,
            'If it does not begin within a minute, look at the log of this process. ',
          ),
        }),
        place: slowest === undefined ? {} : { store: slowest.store, partition: slowest.partition },
        evidence: [{ at: '/state', field: 'restore[].remainingRecords', value: left }],
      },
    ]
  },
}

export const aroundRows: readonly StandstillRow[] = [diskFull, brokerDiskFull, brokerGone, engineSilent, restoring]
