/** Standstills among processes: one that took another's identity, members of the group that come and go. */
import { bootstrap, setting, time } from '../wording/advice.ts'
import type { EarlierFailure, Facts } from '../facts.ts'
import type { Found } from '../finding.ts'
import { everythingBehind, hourMs, isMeantToRun, type StandstillRow } from '../row.ts'
import { clockTime, lasting, listed } from '../words.ts'

const minuteMs = 60_000
/** Two processes that take the identity from each other are found for so long after the last time. */
const inTurnsMs = 2 * minuteMs
const fewestTurns = 2

function wasFenced({ earlier }: Facts, now: number): readonly EarlierFailure[] {
  return earlier.filter(({ code, atMs }) => code === 'FENCED' && now - atMs < hourMs)
}

/** Two that are both wanted. */
function sideBySide({ settings, ha }: Facts): string {
  if (ha !== null) return 'Pods of a hot standby take turns by themselves: `millrace ha status` shows who is active.'
  return `If both are to run side by side, each needs a value of its own for ${setting('engine.instance-id', settings?.instanceId)}, not one for all replicas of a deployment, and the application has to be set to \`topology.sub-topology-split: repartition-topics\`, which lets processes share the work. The developers have to prepare that.`
}

const whereItIs = (facts: Facts): string =>
  ` (\`kafka-consumer-groups.sh ${bootstrap(facts)} --describe --group ${facts.applicationId} --members\` shows its host)`

/** This process has lost its identity. */
function isFenced(facts: Facts, now: number): Found {
  const { identity, stateSinceMs, failure } = facts
  const before = wasFenced(facts, now)
  const holder = identity?.holder ?? null
  const who = holder === null ? 'another process, of which the broker has told nothing so far,' : holder
  const name = identity === null ? '' : ` ${identity.name}`
  const ends = identity?.endsAtMs ?? null
  const end = ends === null ? '' : `, and ends by itself in ${lasting(ends - now)}`
  const turns = before.length > 1 ? ` This happened ${before.length} times within the hour.` : ''
  return {
    sentence: `Another process took over from this one ${lasting(now - stateSinceMs)} ago: ${who} runs under the same identity${name}. The broker refuses whatever this process sends (it is fenced). This process processes nothing any more${end}.${turns}`,
    next: `Check first that the other one works: \`millrace why --url\` with its address${holder === null ? whereItIs(facts) : ', on the host that is named above'}. If it was started to replace this one, as in a rolling update, see only that this one is not started again: in Kubernetes its container is to end (\`kubectl get pods\`). Else do not start this process again as it is, and keep its supervisor from it (it exits with code 3): it would take the identity back and stop the other one. If it was started again already, stop it. If both are replicas of one deployment, set it to one replica, and look which one is left. If the other one cannot be found or does not work, start this one again, which takes the identity back. ${sideBySide(facts)}`,
    sinceMs: stateSinceMs,
    place: { ...(identity !== null && { group: facts.applicationId, pod: identity.name }) },
    evidence: [{ at: '/state', field: 'failure.code', value: failure?.code ?? null }],
  }
}

/** It runs, and was fenced again and again before: two processes are started anew in turns. */
function takesTurns(facts: Facts, now: number): Found[] {
  const before = wasFenced(facts, now)
  const [last] = before
  if (last === undefined || before.length < fewestTurns || now - last.atMs > inTurnsMs) return []
  const first = before.at(-1) as EarlierFailure
  const from = facts.identity?.tookFrom ?? null
  const other = from === null ? '' : ` The other process is ${from.who}.`
  return [
    {
      sentence: `Two processes take the identity${facts.identity === null ? '' : ` ${facts.identity.name}`} from each other in turns, and each time the other one ends. This process lost it ${before.length} times within the hour, first at ${clockTime(first.atMs)}.${other}`,
      next: `Stop one of the two for good; either may stay. Look for a second deployment, or a second start, of the same application. If both are replicas of one deployment, set it to one replica. ${sideBySide(facts)}`,
      sinceMs: first.atMs,
      place: { group: facts.applicationId, ...(facts.identity !== null && { pod: facts.identity.name }) },
      evidence: [{ at: '/state', field: 'history', value: before.length }],
      severity: 'SLOW',
    },
  ]
}

const fenced: StandstillRow = {
  code: 'FENCED',
  severity: 'FAILED',
  withoutRestart: true,
  title: 'Another process has the same identity',
  when: 'The broker told this process that another one has taken its identity; or it has taken it back, and was fenced twice within the hour before.',
  explains: ['FAILED', 'RESTARTS', ...everythingBehind],
  next: 'Let the process run that has the identity now, and keep this one from being started again, by its supervisor or its deployment too: it would take the identity back. If that one cannot be found or does not work, start this one again, which takes it back. A process that was replaced on purpose needs nothing. If both are to run side by side, each needs an `engine.instance-id` of its own, not one for all replicas of a deployment, and the application has to be set to `topology.sub-topology-split: repartition-topics`. The developers have to prepare that.',
  guide:
    'To be fenced means that the broker refuses everything from this process, because another one came under its name. A fenced process answers for `runtime.fenced-linger` before it ends with exit code 3. For some minutes the new process reports which one it replaced, even if that one had already ended.',
  find: (facts, now) => {
    if (facts.failure?.code === 'FENCED') return [isFenced(facts, now)]
    return isMeantToRun(facts) ? takesTurns(facts, now) : []
  },
}

/** `a, b on host`: one host with many names is most often one process that starts again and again. */
function byHost(members: readonly string[]): string[] {
  const hosts = new Map<string, string[]>()
  for (const member of members) {
    const at = member.lastIndexOf(' on ')
    const host = at < 0 ? '' : member.slice(at)
    hosts.set(host, [...(hosts.get(host) ?? []), at < 0 ? member : member.slice(0, at)])
  }
  const again = ' (most often one process that starts again and again, each time under another name)'
  return [...hosts].map(([host, names]) => `${listed(names)}${host}${host !== '' && names.length > 1 ? again : ''}`)
}

/** Members that came and went within this time are what makes it endless; a rolling update has none. */
const shortStayMs = minuteMs
const fewestStays = 3
const historyMs = 5 * minuteMs
const quietAfterMs = 15_000
/** Whoever is lost without a word stays for a session at least, give or take when others hear of it. */
const partOfSession = 0.8

const ownNames =
  'For later, the developers can give each process its own `engine.instance-id`, which stays the same over its restarts (not one value for all replicas, and not a host name that is new each time, as in Kubernetes): a process that restarts then keeps its partitions.'

/** A group loses nobody for silence before the session is over: whoever goes sooner has left it with a word. */
function rebalancingNext(facts: Facts, staysMs: readonly number[]): string {
  const { settings, applicationId } = facts
  const next = rebalancing.next.replace(
    '--describe --group <applicationId>',
    `${bootstrap(facts)} --describe --group ${applicationId}`,
  )
  if (settings === undefined) return next
  const session = setting('consumer.session.timeout.ms', time(settings.sessionTimeoutMs))
  return staysMs.every((stayMs) => stayMs < partOfSession * settings.sessionTimeoutMs)
    ? `Look at the processes that the sentence names: they left the group by themselves, as a process does that is stopped or that fails. (The group gives up a silent one only after ${session}.) Look at their log and exit code (\`kubectl logs --previous\`), and at what stops them: a deployment, an autoscaler, a probe. ${ownNames}`
    : next.replace('`consumer.session.timeout.ms`', session)
}

const rebalancing: StandstillRow = {
  code: 'GROUP_UNSTEADY',
  severity: 'SLOW',
  withoutRestart: true,
  title: 'Members of the group come and go without end',
  when: 'Within five minutes three members or more came into the group and went again within a minute each, and it goes on.',
  explains: ['WATERMARK_HELD', 'BUFFER_FULL', 'COMMITS_SLOW', 'RESTARTS', 'LANE_SLOW', 'HOT_KEY'],
  next: `Look at the processes that the sentence names, by their client ids: do they end (their log, exit code, memory limit; \`kubectl logs --previous\`), or do they run and the group loses them? The second happens where a process is silent for longer than \`consumer.session.timeout.ms\`: look on its host for a lack of processor time, a container that is throttled or frozen, and the network to the brokers. Which members there are at present, and on which hosts, \`kafka-consumer-groups.sh --describe --group <applicationId> --members\` shows. ${ownNames}`,
  guide:
    'Each time partitions change hands, what was read of them is given up, state is restored, and commits wait. A process that is replaced comes once and goes once, and is no finding.',
  find: (facts, now) => {
    const changes = facts.groupChanges.filter(({ atMs }) => now - atMs < historyMs)
    const [newest] = changes
    const oldest = changes.at(-1)
    if (newest === undefined || oldest === undefined || !isMeantToRun(facts)) return []
    const short = changes.flatMap(({ went }) =>
      went.filter(({ stayedMs }) => stayedMs !== null && stayedMs < shortStayMs),
    )
    const spanMs = newest.atMs - oldest.atMs
    const pauseMs = spanMs / Math.max(1, changes.length - 1)
    if (short.length < fewestStays || now - newest.atMs > Math.max(quietAfterMs, 3 * pauseMs)) return []
    const members = [...new Set(short.map(({ member }) => member))]
    const stayed = short.reduce((sum, { stayedMs }) => sum + (stayedMs as number), 0) / short.length
    return [
      {
        sentence: `The members of the consumer group ${facts.applicationId} keep changing: ${changes.length} changes within ${lasting(now - oldest.atMs)}. ${short.length} members left again, on average ${lasting(stayed)} after they had joined: ${listed(byHost(members))}. While partitions change hands, little is processed.`,
        next: rebalancingNext(
          facts,
          short.map(({ stayedMs }) => stayedMs as number),
        ),
        sinceMs: oldest.atMs,
        place: { group: facts.applicationId },
        evidence: [{ at: '/metrics', field: 'engine_rebalances_total', value: changes.length }],
      },
    ]
  },
}

export const fencedRows: readonly StandstillRow[] = [fenced]
export const groupRows: readonly StandstillRow[] = [rebalancing]
