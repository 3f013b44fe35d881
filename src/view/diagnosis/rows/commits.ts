/** Standstills of commits: what the broker owes one, and steps that take longer than commits may. */
import type { BrokerNode } from '../../../broker/port.ts'
import { bootstrap, embeddedNext, isEmbedded, setting } from '../wording/advice.ts'
import type { CommitFacts, Facts, LaneFacts } from '../facts.ts'
import { type CommitPhase, type Owing, owingFor } from '../owing.ts'
import { hasEnded, hopsOfACommit, type StandstillRow, waitedMs } from '../row.ts'
import { lasting, nodeName } from '../words.ts'

const patienceMs = 5000

/** What a step of a commit asks the broker for. */
const phaseWords: Readonly<Partial<Record<CommitPhase, string>>> = {
  FLUSHING: 'to take the results that a commit is about to publish',
  SENDING_OFFSETS: 'to commit the offsets of what was read',
  IN_TX_COMMIT: 'to end the transaction of a commit',
  RESOLVING_OUTCOME: 'how the transaction of an interrupted commit ended',
  ABORTING: 'to abort the transaction of a commit that failed',
}

/** What becomes of it by itself is the same in every step. */
const goesOn =
  'By itself the engine waits and asks again; where the broker gives up the transaction, the engine restarts in place and reads its records again. Nothing is lost, and nothing counts twice.'

const embeddedGoesOn =
  'By itself the engine waits and asks again. While this process runs no result is lost, and none is published twice.'

/** What nobody can know before the broker has answered. */
const isOpen = ' The broker may have published the results of this commit already, without the engine being told.'
const isResolved =
  'Until it has answered, the broker alone knows whether the results of this commit are published. A restart of this process does not help (and loses all topics of an embedded broker without a folder): the engine asks for the outcome, at the latest when it starts the next time, and goes on from there. No result is lost, and none is published twice.'
/** Steps in which the transaction may have been committed. */
const openPhases: ReadonlySet<CommitPhase> = new Set(['IN_TX_COMMIT', 'RESOLVING_OUTCOME'])

/** Who has to answer, where that is not known here. */
function whoAnswers({ applicationId, broker }: Facts, phase: CommitPhase): string {
  if (phase === 'FLUSHING') return ''
  const command =
    phase === 'SENDING_OFFSETS'
      ? `kafka-consumer-groups.sh ${bootstrap({ broker })} --describe --group ${applicationId} --state`
      : `kafka-transactions.sh ${bootstrap({ broker })} list`
  const shows =
    phase === 'SENDING_OFFSETS'
      ? 'shows which one is the coordinator of this group'
      : `shows the coordinator of each transaction; the names of this application’s begin with ${applicationId}-`
  return ` To find out which one it is: \`${command}\` ${shows}.`
}

/** Where no call shows who has to answer: the one broker that this process has to do with, if there is no other. */
function onlyOne({ broker: { nodes } }: Facts): BrokerNode | undefined {
  // An address without a number is one of `broker.bootstrap-servers`: the broker behind it is known by its number.
  const brokers = nodes.filter(({ id }) => id !== null)
  return brokers.length === 1 ? brokers[0] : undefined
}

function unanswered(facts: Facts, phase: CommitPhase, age: string, owing: Owing | undefined): string {
  const words = phaseWords[phase] as string
  const { address } = facts.broker
  const only = onlyOne(facts)
  const broker = isEmbedded(address)
    ? `The embedded broker (${address})`
    : owing === undefined
      ? 'Kafka'
      : `The broker ${nodeName(owing)}`
  const what = owing === undefined ? '' : ` (${owing.what})`
  const which =
    owing !== undefined || isEmbedded(address)
      ? ''
      : only !== undefined
        ? ` The one broker that this process has to do with is ${nodeName(only)}.`
        : ` Which broker has to answer is not known; the addresses are ${address}.`
  return `${broker} has not answered for ${age}. The engine asked it ${words}${what}.${which}${openPhases.has(phase) ? isOpen : ''} No further results are published until it answers.`
}

function unansweredNext(facts: Facts, phase: CommitPhase, owing: Owing | undefined): string {
  const { address } = facts.broker
  if (isEmbedded(address)) return `${embeddedNext(address)} ${embeddedGoesOn}`
  const then = openPhases.has(phase) ? isResolved : goesOn
  const one = owing ?? onlyOne(facts)
  const which =
    one === undefined ? `each of the brokers (${address}), one after the other` : `the broker ${nodeName(one)}`
  return `${lookAt.replace('the broker', which)}${one === undefined ? whoAnswers(facts, phase) : ''} ${then}`
}

const lookAt =
  'Look at the broker: does its process run, what does its log say, are its disks slow or full, are replicas out of sync?'

const commitUnanswered: StandstillRow = {
  code: 'COMMIT_UNANSWERED',
  severity: 'STANDING',
  title: 'The broker does not answer a commit',
  when: 'One step of a commit has waited for the broker for 5 s, and for ten times as long as commits usually take.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'COMMITS_SLOW', 'RESTARTS'],
  next: `${lookAt} ${goesOn}`,
  guide: `${isResolved} (Beside an embedded broker without a folder that is not so: its topics are in memory, and a restart loses them.)`,
  nextBehind: 'The commit goes on when that is done.',
  find: (facts, now) => {
    const { commit, broker } = facts
    if (commit === null || hasEnded(facts) || phaseWords[commit.phase] === undefined) return []
    const ageMs = now - commit.phaseSinceMs
    if (waitedMs(facts, commit.phaseSinceMs, now) < Math.max(patienceMs, 10 * usualCommitMs(commit))) return []
    const owing = owingFor(commit.phase, broker.nodes)
    const { address } = owing ?? onlyOne(facts) ?? broker
    return [
      {
        sentence: unanswered(facts, commit.phase, lasting(ageMs), owing),
        next: unansweredNext(facts, commit.phase, owing),
        sinceMs: commit.phaseSinceMs,
        place: { broker: address },
        evidence: [{ at: '/debug/barriers', field: 'phase', value: commit.phase }],
      },
    ]
  },
}

type Durations = CommitFacts['last'][number]['durationsMs']
const totalMs = (d: Durations): number => d.align + d.flush + d.offsets + d.endTransaction + d.apply

function usualCommitMs({ last }: CommitFacts): number {
  const times = last.map(({ durationsMs }) => totalMs(durationsMs)).sort((a, b) => a - b)
  return times[times.length >> 1] ?? 0
}

/** Waiting for the lanes is no step here: what they are busy with is full load, and what holds them has a row of its own. */
const stepWords = {
  flush: 'take the results',
  offsets: 'take the offsets of what was read',
  endTransaction: 'end the transaction',
  apply: 'write the stores',
} as const satisfies Readonly<Record<Exclude<keyof Durations, 'align'>, string>>
type Step = keyof typeof stepWords
const steps = Object.keys(stepWords) as Step[]
const phaseOf: Readonly<Partial<Record<Step, CommitPhase>>> = {
  flush: 'FLUSHING',
  offsets: 'SENDING_OFFSETS',
  endTransaction: 'IN_TX_COMMIT',
}
const stepsMs = (d: Durations): number => steps.reduce((sum, step) => sum + d[step], 0)

/** A lane that is at a record applies a commit after it: of that wait only what the stores themselves took counts. */
function withoutWaits(last: CommitFacts['last'], lanes: readonly LaneFacts[]): CommitFacts['last'] {
  const storesMs = lanes.length === 0 ? 0 : Math.max(...lanes.map((lane) => lane.storesMs ?? Number.POSITIVE_INFINITY))
  return last.map(({ durationsMs, ...commit }) => {
    const apply = Math.min(durationsMs.apply, storesMs)
    return { ...commit, durationsMs: { ...durationsMs, align: durationsMs.align + durationsMs.apply - apply, apply } }
  })
}

function slowNext(
  facts: Facts,
  node: Pick<Owing, 'id' | 'address'> | undefined,
  phase: CommitPhase | undefined,
): string {
  const later = 'Results come later meanwhile, and none is lost.'
  if (node === undefined) {
    const dir = setting('engine.state.dir', facts.settings?.stateDir)
    return `Look at the disk of ${dir}: is it slow, nearly full, or busy with other work (\`iostat -x\`)? ${later}`
  }
  if (isEmbedded(node.address)) return `${embeddedNext(node.address)} ${later}`
  const all = node.address.includes(',')
  const which = all ? `each of the brokers ${node.address}` : `the broker ${nodeName(node)}`
  return `Look at ${which}: its load, its disks, and replicas that are out of sync (\`kafka-topics.sh --bootstrap-server ${node.address} --describe --under-replicated-partitions\`).${all && phase !== undefined ? whoAnswers(facts, phase) : ''} ${later}`
}

const commitsSlow: StandstillRow = {
  code: 'COMMITS_SLOW',
  severity: 'SLOW',
  title: 'Commits are slower than their interval',
  when: 'For 3 s or more every commit, three at least, has taken more than half a second, and more than three times the time after which one is due (`commit-barrier.interval-ms`), for the broker and the stores. The time that lanes take to finish their records is not counted, before a commit or after it. On a machine short of processors it takes more.',
  explains: ['BUFFER_FULL'],
  next: 'If the sentence names the broker, look at its disks and at replicas that are out of sync. If it names the stores, look at the disk of `engine.state.dir`. Results come later meanwhile, and none is lost.',
  nextBehind: 'Commits are as quick as before when that is done.',
  find: (facts, now) => {
    const { commit, broker, lateMs, lanes } = facts
    if (commit === null || hasEnded(facts)) return []
    const limitMs = Math.max(500, 3 * commit.intervalMs, hopsOfACommit * lateMs)
    const committed = withoutWaits(commit.last, lanes).filter(({ outcome }) => outcome === 'COMMITTED')
    const swift = committed.findIndex(({ durationsMs }) => stepsMs(durationsMs) <= limitMs)
    const last = swift < 0 ? committed : committed.slice(0, swift)
    const oldest = last.at(-1)
    if (oldest === undefined || last.length < 3) return []
    const sinceMs = oldest.atMs - totalMs(oldest.durationsMs)
    if (now - sinceMs < 3000 || now - (last[0]?.atMs ?? 0) > 10_000) return []
    const sum = (step: Step): number => last.reduce((all, each) => all + each.durationsMs[step], 0)
    const slowest = steps.toSorted((a, b) => sum(b) - sum(a))[0] as Step
    const meanMs = last.reduce((all, each) => all + totalMs(each.durationsMs), 0) / last.length
    const phase = phaseOf[slowest]
    const node = phase === undefined ? undefined : (commit.owed[phase] ?? { id: null, address: broker.address })
    const isKnown = node !== undefined && !node.address.includes(',')
    const who =
      node === undefined
        ? `the lanes to ${stepWords[slowest]}`
        : isKnown
          ? `${isEmbedded(node.address) ? `the embedded broker (${node.address})` : `the broker ${nodeName(node)}`} to ${stepWords[slowest]}`
          : `a broker to ${stepWords[slowest]} (which one is not known; the addresses are ${node.address})`
    return [
      {
        sentence: `Each commit takes ${Math.round(meanMs)} ms; one is due every ${commit.intervalMs} ms. ${Math.round(sum(slowest) / last.length)} ms of that is spent waiting for ${who}.`,
        next: slowNext(facts, node, phase),
        sinceMs,
        place: node === undefined ? {} : { broker: node.address },
        evidence: [
          {
            at: '/debug/barriers',
            field: `last[0].durationsMs.${slowest}`,
            value: last[0]?.durationsMs[slowest] ?? null,
          },
        ],
      },
    ]
  },
}

export const unansweredRows: readonly StandstillRow[] = [commitUnanswered]
export const slowCommitRows: readonly StandstillRow[] = [commitsSlow]
