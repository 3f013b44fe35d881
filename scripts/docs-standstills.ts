/** Writes `docs/guide/standstills.md` from the table of standstills: `node scripts/docs-standstills.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StandstillRow } from '../src/view/diagnosis/row.ts'
import { standstillTable } from '../src/view/diagnosis/table.ts'

export const standstillsPage = join(import.meta.dirname, '..', 'docs', 'guide', 'standstills.md')

const severities = {
  FAILED: 'The engine has given up.',
  STANDING: 'Nothing moves, or what moves comes to nothing.',
  NOT_MEANT_TO_RUN: 'It stands because it was told to.',
  SLOW: 'It moves, and something holds it.',
} as const

const introduction = `# Why does it stand still?

<!-- Generated from src/view/diagnosis by scripts/docs-standstills.ts; do not edit. -->

\`GET /why\` says in one sentence what holds an application up, where, since when, and what to do. It answers in every
state, also while a function never returns or the broker is gone, from what is known already. \`millrace why\` asks it:

\`\`\`sh
millrace why --url http://localhost:8080
\`\`\`

| Exit code | Means |
|--:|---|
| 0 | FLOWING: nothing is found |
| 10 | SLOW |
| 11 | STANDING |
| 12 | NOT_MEANT_TO_RUN |
| 13 | FAILED |
| 2 | wrong usage |
| 14 | nobody answers |

The cause comes first, what it brings about behind it (\`leadsTo\`). Several independent causes are told one after the other.
\`since\` is when the cause began, and stays the same from one look to the next. An application that works, however much of a
backlog it has, has no finding. Records are named by topic, partition and offset; values and keys are never shown.

Words used here:

| Word | Means |
|---|---|
| lane | a thread of the process that runs the application's functions; \`lane-0\`, \`lane-1\` … |
| node | one step of the application, by the name that \`/topology\` shows |
| partition | a part of a topic, \`orders/3\`; its records are read one after the other, by *offset* |
| commit | makes the results of all records up to a point count at once; until then nobody sees them |
| event time | the time that a record itself tells, by its timestamp |
| watermark | the event time up to which all records have come: windows and timers up to it are done |
| idle | a partition without records for so long that the watermark does not wait for it any longer (\`watermark.idleness-timeout\`) |
| alignment group | sources that may not get farther apart in event time than their *drift* allows |
| buffer | records of a partition that were read ahead and wait for a lane |
| store | rows that the application keeps; its *changelog* is the topic from which they can be *restored* |
| transaction | what a producer writes and decides on at once; the *transaction coordinator* is the broker that keeps the decision |
| restart in place | the engine goes back to the last commit and begins there again, within the process |
| standby | a process that has the same stores and takes over when the active one goes |
| dead letters | the topic for records that could not be processed |
| producer | whoever writes to topics; the *transactional id* is the name that it does so under |
| lag | records that have come and are not committed yet |
| group, member | the processes that share the partitions of the topics; one of them |
| pod | a process of an application of which several run, one of them *active* (\`ha.mode: hot-standby\`) |
| identity | the name under which the broker knows a process, and which one process may have at a time |
| fenced | refused by the broker, because another process has come under the same identity |

An alert:

\`\`\`yaml
- alert: MillraceStandsStill
  expr: max by (instance, code) (engine_standstill_seconds{code!~"STANDBY|PAUSED|STOPPING|RESTORING"}) > 60
\`\`\`
`

function section(row: StandstillRow): string[] {
  const { code, severity, title, when, explains, next, guide } = row
  return [
    `## ${code.toLowerCase().replaceAll('_', '-')}`,
    '',
    `\`${code}\`: ${title}. Severity ${severity}.`,
    '',
    `- Found when: ${when}`,
    `- What to do: ${next}`,
    ...(explains.length === 0 ? [] : [`- Explains: ${[...new Set(explains)].map((each) => `\`${each}\``).join(', ')}`]),
    '',
    ...(guide === undefined ? [] : [guide, '']),
  ]
}

export function renderStandstills(): string {
  return [
    introduction,
    '| Severity | Means |',
    '|---|---|',
    ...Object.entries(severities).map(([name, text]) => `| ${name} | ${text} |`),
    '',
    ...standstillTable.flatMap(section),
  ].join('\n')
}

if (import.meta.main) writeFileSync(standstillsPage, `${renderStandstills().trimEnd()}\n`)
