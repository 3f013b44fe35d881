/** The acting pod, which is the active one, judges every command again and carries it out at most once. */
import { type Candidate, candidates, successor } from './decide.ts'
import type { Out } from './events.ts'
import { beginHandOver } from './hand-over.ts'
import type { Claim, Command, LogView } from './log/log-view.ts'
import { standingText } from './shown/history.ts'
import type { Pod, Run } from './pod.ts'
import { type CommandRecord, encode, type Outcome, standingCommands } from './log/records.ts'
import { statusOf } from './shown/status.ts'
import { fitOf } from './topology-shape.ts'
import { type HaCommand, judgeHaCommand } from './shown/view.ts'

/** What becomes of a command: a result, a hand-over, or nothing yet. */
export type Ruling =
  | { readonly outcome: Outcome; readonly reason: string }
  | { readonly handTo: string | null }
  | undefined

export function actOnCommands(pod: Pod, out: Out, now: number): void {
  const { run, view } = pod
  if (run === undefined || pod.engine !== 'running' || run.isolated || pod.handOver || pod.stopping) return
  for (const command of view.commands.values()) {
    if (view.results.has(command.offset) || pod.pendingResults.has(command.offset)) continue
    const ruling = rule(pod, run, command, now)
    if (ruling === undefined) continue
    if ('handTo' in ruling) {
      const { handTo: target } = ruling
      out.log('info', `${command.command} of pod ${command.issuer} (offset ${command.offset}) is carried out`)
      beginHandOver(pod, out, { target, commandOffset: command.offset, exhausted: false, hard: false }, now)
      return
    }
    pod.commandResults[ruling.outcome]++
    const { outcome, reason } = ruling
    const commandId = command.id
    pod.pendingResults.set(command.offset, { commandId, outcome, reason, appendedAt: Number.NEGATIVE_INFINITY })
    out.log('info', `${command.command} (offset ${command.offset}): ${outcome}, ${reason}`)
  }
}

/** Its signature is missing or wrong. Nobody carries it out here, and the others are told so. */
export function refuse(pod: Pod, { issuer }: CommandRecord, offset: number): void {
  const { view, refusals } = pod
  view.refuse(offset)
  const peer = view.peers.get(issuer)
  // What was there before this pod began may be of a secret that nobody has any more.
  if (!pod.joined || peer === undefined) return
  const { incarnation } = peer.status
  const before = refusals.get(issuer)
  refusals.set(issuer, { incarnation, commands: before?.incarnation === incarnation ? before.commands + 1 : 1 })
}

/** Results are written until they are read back; a pod that is no longer active leaves them to its successor. */
export function publishResults(pod: Pod, out: Out, now: number): void {
  if (pod.run === undefined || pod.engine !== 'running') {
    pod.pendingResults.clear()
    return
  }
  for (const [commandOffset, pending] of pod.pendingResults) {
    if (pod.view.results.has(commandOffset)) {
      pod.pendingResults.delete(commandOffset)
      continue
    }
    if (now - pending.appendedAt < 2 * pod.settings.heartbeatIntervalMs) continue
    pending.appendedAt = now
    const { commandId, outcome, reason } = pending
    out.append(encode({ kind: 'result', commandOffset, commandId, outcome, reason }))
  }
}

const rejected = (reason: string): Ruling => ({ outcome: 'REJECTED', reason })

function rule(pod: Pod, run: Run, command: Command, now: number): Ruling {
  if (standingCommands.has(command.command)) {
    return { outcome: 'DONE', reason: standingText(command.command, command.target, command.value) }
  }
  const past = pastRuling(pod, run, command)
  if (past) return past
  if (command.expectEpoch !== run.epoch)
    return { outcome: 'EXPIRED', reason: 'another pod became active before the command was carried out' }
  if (!command.live || now - command.now > pod.settings.commandTtlMs)
    return { outcome: 'EXPIRED', reason: 'nobody could carry the command out in time' }
  if (command.command === 'UNKNOWN') return rejected('this build does not know the command')
  const { target, force } = command
  const name = command.command as HaCommand['command']
  const verdict = judgeHaCommand(statusOf(pod, now), { command: name, target, force })
  if (!verdict.ok) return verdict.status === 503 ? undefined : rejected(verdict.reason)
  const all = candidates(pod.view, pod.podId, pod.fresh.value, pod.settings)
  const next = name === 'PROMOTE' ? named(all, target) : successor(all, force)
  if (next === undefined) return rejected(whyNobody(pod, name, target))
  const broken = whatBreaks(pod, next.podId)
  if (broken !== undefined) return rejected(`pod ${next.podId} cannot go on with the state: ${broken}`)
  // A demoted pod leaves it to the others who of them is the best; one of priority 0 comes only where it is named.
  const comesByItself = next.ready && next.failoverPriority > 0
  return { handTo: name === 'DEMOTE' && comesByItself ? null : next.podId }
}

function named(all: readonly Candidate[], target: string | null): Candidate | undefined {
  return all.find((candidate) => candidate.podId === target)
}

/** Force overrides readiness; rows that would be misread are none of it. */
function whatBreaks({ view }: Pod, podId: string): string | undefined {
  const peer = view.peers.get(podId)
  const fit = peer === undefined ? undefined : fitOf(view, peer.status)
  return fit?.fit === 'breaks' ? fit.why : undefined
}

function whyNobody(pod: Pod, name: string, target: string | null): string {
  if (name !== 'PROMOTE') return 'there is no pod that could take over'
  if (target === pod.podId) return `pod ${target} is ACTIVE already`
  const peer = pod.view.peers.get(target ?? '')
  return peer?.live === true
    ? `pod ${target} is no standby that could take over (${peer.status.state})`
    : `no pod ${target} is known`
}

/**
 * A command that has led to a hand-over or a claim: the log tells how that ended, and every pod reads the same out of
 * it, so that a second result, written where the first one was under way, says the same.
 */
function pastRuling(pod: Pod, run: Run, command: Command): Ruling {
  const { view } = pod
  const { offset, target } = command
  const release = [...view.releases.values()].find((each) => each.commandOffset === offset)
  const first = release
    ? view.claimOf(release.epoch + 1)
    : view.claims().find((each) => each.commandOffset === offset && each.epoch <= run.epoch)
  if (first === undefined) return undefined
  const next = firstThatRan(view, first, run.epoch)
  const vain = next.podId === first.podId ? '' : `pod ${first.podId} had the token, and did not become ACTIVE; `
  if (next.podId === release?.podId)
    return rejected(vain ? `${vain}pod ${next.podId} is again` : 'nobody took over in time; the pod went on itself')
  if (command.command === 'PROMOTE' && target !== next.podId)
    return rejected(`${vain}pod ${next.podId} took over instead`)
  return { outcome: 'DONE', reason: `${vain}pod ${next.podId} took over` }
}

/** Whoever became active writes the results at once, so one of which nothing was seen before the next claim did not. */
function firstThatRan(view: LogView, claim: Claim, runs: number): Claim {
  let next = claim
  while (next.epoch < runs && !view.ranUnder(next.epoch)) {
    const later = view.claimOf(next.epoch + 1)
    if (later === undefined) break
    next = later
  }
  return next
}
