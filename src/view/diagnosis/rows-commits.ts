/** Standstills of commits: what the broker owes one, and steps that take longer than commits may. */
import type { CommitFacts } from './facts.ts'
import { type CommitPhase, owingFor } from './owing.ts'
import type { StandstillRow } from './row.ts'
import { hopsOfACommit } from './rows-around.ts'
import { lasting, nodeName } from './words.ts'

const patienceMs = 5000

/** What a step of a commit waits for. */
const phaseWords: Readonly<Partial<Record<CommitPhase, string>>> = {
  FLUSHING: 'to take the outputs',
  SENDING_OFFSETS: 'to note how far the input was read',
  IN_TX_COMMIT: 'to end the transaction',
  RESOLVING_OUTCOME: 'to tell how the last transaction ended',
  ABORTING: 'to abort the transaction',
}

const commitUnanswered: StandstillRow = {
  code: 'COMMIT_UNANSWERED',
  severity: 'STANDING',
  title: 'The broker does not answer a commit',
  when: 'One step of a commit has waited for the broker for 5 s, and for ten times as long as commits usually take.',
  explains: ['BUFFER_FULL', 'WATERMARK_HELD', 'COMMITS_SLOW', 'RESTARTS'],
  next: 'Look at the broker named here: whether it runs, its log, its disks. By itself the engine waits, or goes back to the last commit and tries again.',
  find: (facts, now) => {
    const { commit, broker } = facts
    const words = commit === null ? undefined : phaseWords[commit.phase]
    if (commit === null || words === undefined) return []
    const ageMs = now - commit.phaseSinceMs
    if (ageMs < Math.max(patienceMs, 10 * usualCommitMs(commit))) return []
    const owing = owingFor(commit.phase, broker.nodes)
    const { address } = owing ?? broker
    const what = owing === undefined ? '' : ` (${owing.what})`
    return [
      {
        sentence: `A commit has waited ${lasting(ageMs)} for the broker ${nodeName(owing ?? { id: null, address })} ${words}${what}; nothing is committed meanwhile.`,
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
  flush: 'which takes the outputs',
  offsets: 'which notes how far the input was read',
  endTransaction: 'which ends the transaction',
  apply: 'the lanes, which write the stores',
} as const satisfies Readonly<Record<Exclude<keyof Durations, 'align'>, string>>
type Step = keyof typeof stepWords
const steps = Object.keys(stepWords) as Step[]
const phaseOf: Readonly<Partial<Record<Step, CommitPhase>>> = {
  flush: 'FLUSHING',
  offsets: 'SENDING_OFFSETS',
  endTransaction: 'IN_TX_COMMIT',
}
const stepsMs = (d: Durations): number => steps.reduce((sum, step) => sum + d[step], 0)
const commitsSlow: StandstillRow = {
  code: 'COMMITS_SLOW',
  severity: 'SLOW',
  title: 'Commits are slower than their interval',
  when: 'For 3 s or more every commit, three at least, has taken more than half a second and three times commit-barrier.interval-ms for the broker and the stores. The time that lanes take to finish their records is not counted. On a machine short of processors it takes more.',
  explains: ['BUFFER_FULL'],
  next: 'The step that takes the time is named. Where it is the broker, look at its disks and replication; else at the disk of the stores.',
  find: ({ commit, broker, lateMs }, now) => {
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
    const who = node === undefined ? '' : `the broker ${nodeName(node)}, `
    return [
      {
        sentence: `Commits take ${Math.round(meanMs)} ms where one is due every ${commit.intervalMs} ms; ${Math.round(sum(slowest) / last.length)} ms of it goes to ${who}${stepWords[slowest]}.`,
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
