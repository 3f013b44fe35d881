/** The verdict as it is given away: JSON, and text for people on a terminal. */
import type { Evidence, FlowStage, Place, Severity, Status, Verdict } from './finding.ts'

export interface WhyFinding {
  readonly code: string
  readonly severity: Severity
  readonly sentence: string
  readonly place: Place
  readonly since: string
  readonly evidence: readonly Evidence[]
  readonly leadsTo: readonly string[]
  readonly next: string
  readonly help: string
}

export interface WhyAnswer {
  readonly verdict: string
  readonly status: Status
  readonly since: string
  readonly findings: readonly WhyFinding[]
  readonly flow: readonly FlowStage[]
}

/** More would not be read; the answer stays small however many partitions there are. */
const mostFindings = 30
const iso = (ms: number): string => new Date(ms).toISOString()

export function answerOf({ verdict, status, sinceMs, findings, flow }: Verdict): WhyAnswer {
  const shown = findings.slice(0, mostFindings).map((finding): WhyFinding => {
    const { code, severity, sentence, place, evidence, leadsTo, next, help } = finding
    return { code, severity, sentence, place, since: iso(finding.sinceMs), evidence, leadsTo, next, help }
  })
  return { verdict, status, since: iso(sinceMs), findings: shown, flow }
}

function wrapped(text: string, width: number, indent: string): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].map((each) => `${indent}${each}\n`).join('')
}

const barWidth = 20

/** `####~~==....`: at work, waiting for asynchronous functions, held by what is behind, idle. */
function bar({ stage, busy, held, waiting, by, place }: FlowStage, nameWidth: number): string {
  let left = barWidth
  const part = (share: number, sign: string): string => {
    const length = Math.min(left, Math.round(share * barWidth))
    left -= length
    return sign.repeat(length)
  }
  const drawn = part(busy, '#') + part(waiting, '~') + part(held, '=')
  const cause = by === undefined ? '' : `  held by ${by}${place === undefined ? '' : ` (${place})`}`
  return `  ${stage.padEnd(nameWidth)} [${drawn}${'.'.repeat(left)}]${cause}\n`
}

export function answerText(answer: WhyAnswer, width = 80): string {
  const { verdict, status, since, findings, flow } = answer
  const nameWidth = Math.max(0, ...flow.map(({ stage }) => stage.length))
  return [
    `${status} since ${since}\n`,
    wrapped(verdict, width, ''),
    ...findings.flatMap(({ code, severity, sentence, since: begun, next, leadsTo, help }) => [
      `\n${code} (${severity}) since ${begun}\n`,
      wrapped(sentence, width, '  '),
      wrapped(`Next: ${next}`, width, '  '),
      ...(leadsTo.length === 0 ? [] : [wrapped(`Leads to: ${leadsTo.join(', ')}`, width, '  ')]),
      wrapped(`See ${help}`, width, '  '),
    ]),
    ...(flow.length === 0 ? [] : ['\nFlow: # at work, ~ waits for promises, = held, . idle\n']),
    ...flow.map((stage) => bar(stage, nameWidth)),
  ].join('')
}
