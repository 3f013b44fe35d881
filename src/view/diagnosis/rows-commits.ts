/** Standstills of commits: what the broker owes one, and steps that take longer than commits may. */
import { setting } from './wording/advice.ts'
import type { CommitFacts, SettingsFacts } from './facts.ts'
import { type CommitPhase, type Owing, owingFor } from './owing.ts'
import type { StandstillRow } from './row.ts'
import { hopsOfACommit } from './rows-around.ts'
import { lasting, nodeName } from './words.ts'

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
  'By itself the engine waits and asks again; where the broker gives up the transaction, the engine restarts in place and reads its records again. Nothing is lost.'

function unanswered(age: string, words: string, owing: Owing | undefined, address: string): string {
  const broker = owing === undefined ? 'Kafka' : `The broker ${nodeName(owing)}`
  const what = owing === undefined ? '' : ` (${owing.what})`
  const which = owing === undefined ? ` Which broker has to answer is not known; the addresses are ${address}.` : ''
  return `${broker} has not answered for ${age}. The engine asked it ${words}${what}.${which} No results are published until it answers.`
}

function unansweredNext(owing: Owing | undefined, address: string): string {
  if (owing !== undefined) return commitUnanswered.next.replace('the broker:', `the broker ${nodeName(owing)}:`)
  return commitUnanswered.next.replace('the broker:', `each of the brokers (${address}), one after the other:`)
}

const commitUnanswered: StandstillRow = {
  code: 'COMMIT_UNANSWERED',
  severity: 'STANDING',
  title: 'The broker does not answer a commit',
  when: 'One step of a commit has waited for the broker for 5 s, and for ten times as long as commits usually take.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'COMMITS_SLOW', 'RESTARTS'],
  next: `Look at the broker: does its process run, what does its log say, are its disks slow or full, are replicas out of sync? ${goesOn}`,
  nextBehind: 'The commit goes on when that is done.',
  find: (facts, now) => {
    const { commit, broker } = facts
    const words = commit === null ? undefined : phaseWords[commit.phase]
    if (commit === null || words === undefined) return []
    const ageMs = now - commit.phaseSinceMs
    if (ageMs < Math.max(patienceMs, 10 * usualCommitMs(commit))) return []
    const owing = owingFor(commit.phase, broker.nodes)
    const { address } = owing ?? broker
    return [
      {
        sentence: unanswered(lasting(ageMs), words, owing, address),
        next: unansweredNext(owing, address),
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
  flush: 'takes the results',
  offsets: 'takes the offsets of what was read',
  endTransaction: 'ends the transaction',
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
function slowNext(node: Pick<Owing, 'id' | 'address'> | undefined, settings: SettingsFacts | undefined): string {
  const later = 'Results come later meanwhile, and none is lost.'
  if (node === undefined) {
    const dir = setting('engine.state.dir', settings?.stateDir)
    return `Look at the disk of ${dir}: is it slow, nearly full, or busy with other work (\`iostat -x\`)? ${later}`
  }
  const all = node.address.includes(',')
  const which = all ? `each of the brokers ${node.address}` : `the broker ${nodeName(node)}`
  return `Look at ${which}: its load, its disks, and replicas that are out of sync (\`kafka-topics.sh --bootstrap-server ${node.address} --describe --under-replicated-partitions\`). ${later}`
}

const commitsSlow: StandstillRow = {
  code: 'COMMITS_SLOW',
  severity: 'SLOW',
  title: 'Commits are slower than their interval',
  when: 'For 3 s or more every commit, three at least, has taken more than half a second and three times commit-barrier.interval-ms for the broker and the stores. The time that lanes take to finish their records is not counted. On a machine short of processors it takes more.',
  explains: ['BUFFER_FULL'],
  next: 'If the sentence names the broker, look at its disks and at replicas that are out of sync. If it names the stores, look at the disk of `engine.state.dir`. Results come later meanwhile, and none is lost.',
  nextBehind: 'Commits are as quick as before when that is done.',
  find: ({ commit, broker, lateMs, settings }, now) => {
    if (commit === null) return []
    const limitMs = Math.max(500, 3 * commit.intervalMs, hopsOfACommit * lateMs)
    const committed = commit.last.filter(({ outcome }) => outcome === 'COMMITTED')
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
        ? `the lanes, which ${stepWords[slowest]}`
        : isKnown
          ? `the broker ${nodeName(node)}, which ${stepWords[slowest]}`
          : `a broker (which of ${node.address} is not known), which ${stepWords[slowest]}`
    return [
      {
        sentence: `Commits take ${Math.round(meanMs)} ms, where one is due every ${commit.intervalMs} ms. ${Math.round(sum(slowest) / last.length)} ms of it goes to ${who}.`,
        next: slowNext(node, settings),
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
