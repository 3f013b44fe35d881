/** From facts to findings: causes before effects. Pure, so that tests and the simulator run it as production does. */
import type { Facts } from './facts.ts'
import type { Finding, Found, FlowStage, Severity, Status, Verdict } from './finding.ts'
import type { StandstillRow } from './row.ts'
import { helpOf, standstillTable } from './table.ts'
import { beforeAll } from './wording/advice.ts'

const gravity: readonly Severity[] = ['FAILED', 'STANDING', 'NOT_MEANT_TO_RUN', 'SLOW']

interface Match {
  readonly row: StandstillRow
  readonly found: Found
}

export function diagnose(now: number, facts: Facts, table: readonly StandstillRow[] = standstillTable): Finding[] {
  const matches: Match[] = []
  for (const row of table) {
    const isBehind = matches.some((other) => other.row.explains.includes(row.code))
    for (const found of row.find(facts, now, isBehind)) matches.push({ row, found })
  }
  const findings = matches.map((match): Finding => {
    const { row, found } = match
    const effects = matches.filter((other) => leads(match, other)).map((other) => other.row.code)
    const causes = matches.filter((other) => leads(other, match))
    return {
      code: row.code,
      ...found,
      next: causes.length === 0 ? adviceOf(match, facts) : behindNext(match, rootOf(causes, matches)),
      severity: found.severity ?? row.severity,
      leadsTo: [...new Set(effects)],
      explained: causes.length > 0,
      help: helpOf(row.code),
    }
  })
  // A stable sort: within one rank the order of the table holds.
  return findings.sort((a, b) => rank(a) - rank(b))
}

function adviceOf({ row, found }: Match, facts: Facts): string {
  const advice = found.next ?? row.next
  return row.withoutRestart ? advice : beforeAll(facts, advice)
}

/** The cause that nothing else explains, so that one piece of advice is given and no second one against it. */
function rootOf(causes: readonly Match[], matches: readonly Match[]): Match {
  return causes.find((cause) => !matches.some((other) => leads(other, cause))) ?? (causes[0] as Match)
}

function behindNext({ row }: Match, cause: Match): string {
  const then = row.nextBehind ?? 'It ends when that is done.'
  return `This follows from ${cause.row.code} above: follow the advice there. ${then}`
}

/** One lane's trouble is not due to that of another. */
function leads({ row, found }: Match, effect: Match): boolean {
  if (!row.explains.includes(effect.row.code)) return false
  const { lane } = found.place
  const { lane: other } = effect.found.place
  return lane === undefined || other === undefined || lane === other
}

function rank({ explained, severity }: Finding): number {
  return (explained ? gravity.length : 0) + gravity.indexOf(severity)
}

const healthyWords: Readonly<Partial<Record<Facts['state'], string>>> = {
  CREATED: 'The process begins; nothing stands in its way.',
  STARTING: 'The application starts; nothing stands in its way.',
  RESTORING: 'State is restored; records are processed in a moment.',
  RESTARTING: 'The engine restarts in place; records are processed in a moment.',
}

/** More processes than partitions, or a version that does not read all of what others read together. */
const withoutInput =
  'No partition of the input is assigned to this process, so it has nothing to do. Where several processes share the input, the others have all of it; it takes some of it when one of them goes.'

const joining =
  'The application starts; its group has still to give it a place. That takes until the others have let go of some partitions, and until one that is gone without a word is given up: its session timeout, and that of the transaction that it left open.'

/** Nothing else takes so long before a process has partitions. */
const joinsAfterMs = 5000

function healthy({ state, stateSinceMs, ha, partitions, broker }: Facts, now: number): string {
  const waits = ha === null && partitions.length === 0 && broker.connected && now - stateSinceMs >= joinsAfterMs
  const isJoining =
    waits || broker.nodes.some(({ calls }) => calls.some(({ what }) => what.startsWith('joining group')))
  if (state === 'STARTING' && isJoining) return joining
  if (state === 'RUNNING' && ha === null && partitions.length === 0) return withoutInput
  return healthyWords[state] ?? 'Records flow; nothing holds them up.'
}

/** That it took a place is no standstill, and worth a word for a while: whoever had it may still run. */
function tookOver({ identity }: Facts): string {
  const from = identity?.tookFrom ?? null
  return from === null ? '' : ` At its start it took the identity ${identity?.name} over from ${from.who}.`
}

/** What is said in one sentence, or one for each cause. */
export function verdictOf(
  facts: Facts,
  findings: readonly Finding[],
  flow: readonly FlowStage[],
  now = facts.stateSinceMs,
): Verdict {
  const causes = findings.filter(({ explained }) => !explained)
  const [first] = causes
  const speaker = { application: facts.applicationId, ...(facts.process !== undefined && { process: facts.process }) }
  if (first === undefined) {
    const verdict = healthy(facts, now) + tookOver(facts)
    return { ...speaker, verdict, status: 'FLOWING', sinceMs: facts.stateSinceMs, findings, flow }
  }
  const status: Status = facts.state === 'FAILED' ? 'FAILED' : first.severity
  const verdict = causes
    .slice(0, 3)
    .map(({ sentence }) => sentence)
    .join(' ')
  return { ...speaker, verdict, status, sinceMs: first.sinceMs, findings, flow }
}
