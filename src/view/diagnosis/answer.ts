/** The verdict as it is given away: JSON, and text for people on a terminal. */
import type { Evidence, FlowStage, Place, Severity, Status, Verdict } from './finding.ts'
import { terms } from './wording/terms.ts'

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
  /** Who answers. */
  readonly application?: string
  readonly process?: string
  readonly verdict: string
  readonly status: Status
  readonly since: string
  readonly findings: readonly WhyFinding[]
  readonly flow: readonly FlowStage[]
}

/** More would not be read; the answer stays small however many partitions there are. */
const mostFindings = 30
/** Topics may have names of 249 characters, which a finding repeats in its commands. The first finding is always told. */
const mostBytes = 50_000
const iso = (ms: number): string => new Date(ms).toISOString()

export function answerOf({ application, process, verdict, status, sinceMs, findings, flow }: Verdict): WhyAnswer {
  const who = { ...(application !== undefined && { application }), ...(process !== undefined && { process }) }
  const told = findings.slice(0, mostFindings).map((finding): WhyFinding => {
    const { code, severity, sentence, place, evidence, leadsTo, next, help } = finding
    return { code, severity, sentence, place, since: iso(finding.sinceMs), evidence, leadsTo, next, help }
  })
  let bytes = 0
  const shown = told.filter((each, i) => {
    bytes += Buffer.byteLength(JSON.stringify(each))
    return i === 0 || bytes <= mostBytes
  })
  return { ...who, verdict, status, since: iso(sinceMs), findings: shown, flow }
}

function wrapped(text: string, width: number, indent: string, later = indent): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && later.length + line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].map((each, i) => `${i === 0 ? indent : later}${each}\n`).join('')
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

/** What a status means, for whoever reads the word for the first time. */
const statusWords: Readonly<Record<Status, string>> = {
  FLOWING: 'nothing stands still.',
  SLOW: 'it is at work, but results come late, or do not come yet.',
  STANDING: 'all or part of the application has stopped, or its results are incomplete.',
  NOT_MEANT_TO_RUN: 'this process is paused, stopping or a standby, or its license is not accepted: see below.',
  FAILED: 'the engine has given up; this process processes nothing.',
}

/** Where the documentation lies beside whoever has installed the package. */
const inPackage = (text: string): string => text.replaceAll(/(?<![\w/])docs\//g, 'node_modules/millrace/docs/')

const path = /`?(?<![\w.])\/(debug|health|offsets|watermarks|license|state|topology|unpause|pause|why|config)\b/
const command = /`millrace (barriers|ha|pause|resume|threads|watermarks|why)\b/
const key = /`(broker|commit-barrier|consumer|engine|errors|ha|license|topology|watermark)\.[a-z]/

/** What an operator who reads this for the first time has to know beside the findings. */
function footer(said: string, around: string, width: number, url: string | undefined): string[] {
  const where = url === undefined ? 'on the host and port that gave this answer' : `of ${url}`
  const used = said === '' ? [] : terms.filter(({ met }) => met?.test(`${said} ${around}`))
  return [
    ...(path.test(said)
      ? [`Paths such as /debug/threads are ${where} (with a token: \`Authorization: Bearer <token>\`).`]
      : []),
    ...(key.test(said)
      ? [
          'Settings are in the configuration file or the environment (`engine.instance-id` as ENGINE_INSTANCE_ID), durations as 30s or 5m. They take effect when the process starts. GET /config shows those in force.',
        ]
      : []),
    ...(command.test(said)
      ? [
          `Commands such as \`millrace threads\` need the address of the process, as in --url ${url ?? 'http://host:8080'}, and its token, if any, in RUNTIME_HTTP_AUTH_TOKEN.`,
        ]
      : []),
    ...(said === '' ? [] : ['Times that end with Z are UTC, by the clock of the process.']),
    ...used.map(({ word, meaning }) => `${word}: ${meaning.replaceAll(/\*(\w[\w ]*)\*/g, '$1')}.`),
  ].map((line) => wrapped(line, width, '  ', '    '))
}

const flowLegend =
  '\nFlow of the last 10 s; fetch reads from the broker, dispatch gives to lanes:\n  # at work, ~ waiting for asynchronous calls, = held up, . idle\n'

export function answerText(answer: WhyAnswer, width = 80, url?: string): string {
  const { application, process, verdict, status, since, findings, flow } = answer
  const nameWidth = Math.max(0, ...flow.map(({ stage }) => stage.length))
  const who =
    application === undefined
      ? ''
      : `Application ${[application, process].filter((name) => name !== undefined).join(', ')}`
  const said = findings.map(({ sentence, next }) => `${sentence} ${next}`).join(' ')
  const notes = footer(said, `${who} ${flow.length === 0 ? '' : `${flowLegend} a commit`}`, width, url)
  return [
    ...(who === '' ? [] : [wrapped(who, width, '')]),
    wrapped(`${status} since ${since}: ${statusWords[status]}`, width, ''),
    // With findings the verdict is what the first of them say.
    ...(findings.length > 0 ? [] : [wrapped(verdict, width, '')]),
    ...findings.flatMap(({ code, severity, sentence, since: begun, next, leadsTo, help }) => [
      `\n${code} (${severity}) since ${begun}\n`,
      wrapped(sentence, width, '  '),
      wrapped(`What to do: ${inPackage(next)}`, width, '  '),
      ...(leadsTo.length === 0 ? [] : [wrapped(`It brings about: ${leadsTo.join(', ')}`, width, '  ')]),
      wrapped(`More: ${inPackage(help)}`, width, '  '),
    ]),
    ...(notes.length === 0 ? [] : ['\nTo read this:\n', ...notes]),
    ...(flow.length === 0 ? [] : [flowLegend]),
    ...flow.map((stage) => bar(stage, nameWidth)),
  ].join('')
}
