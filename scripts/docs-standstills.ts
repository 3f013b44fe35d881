/** Writes `docs/guide/standstills.md` from the table of standstills: `node scripts/docs-standstills.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { StandstillRow } from '../src/view/diagnosis/row.ts'
import { standstillTable } from '../src/view/diagnosis/table.ts'
import { terms } from '../src/view/diagnosis/wording/terms.ts'

export const standstillsPage = join(import.meta.dirname, '..', 'docs', 'guide', 'standstills.md')

const severities = {
  FAILED: 'The engine has given up.',
  STANDING: 'All or part of the application has stopped, or its results are incomplete.',
  NOT_MEANT_TO_RUN: 'The process is paused, stopping or a standby, or its license is not accepted.',
  SLOW: 'It is at work, but results come late, or do not come yet.',
} as const

const introduction = `# Why does it stand still?

<!-- Generated from src/view/diagnosis by scripts/docs-standstills.ts; do not edit. -->

\`GET /why\` says what holds an application up, where, since when, and what to do. It answers in every
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
\`since\` is when the cause began, and stays the same from one look to the next. A backlog alone is no finding. Records are
named by topic, partition and offset; values and keys are never shown.

**Before a restart**, and before a setting or a release that takes one: on Kafka, and with an embedded broker that has a folder, a restart
loses nothing. An embedded broker without a folder has its topics in memory, and loses them with the process. Where it may
be one of these \`/why\` says so. Where the two differ, do what \`/why\` says: it knows the process, and this page does not.

## words

| Word | Means |
|---|---|
${terms.map(({ word, meaning }) => `| ${word} | ${meaning} |`).join('\n')}

An alert:

\`\`\`yaml
- alert: MillraceStandsStill
  expr: max by (instance, code) (engine_standstill_seconds{code!~"STANDBY|PAUSED|STOPPING|RESTORING"}) > 60
\`\`\`

It leaves out what an operator has asked for, and a standby beside an active pod. Where no pod is active the code is \`NOBODY_ACTIVE\`.
`

function section(row: StandstillRow): string[] {
  const { code, severity, title, when, explains, next, guide } = row
  return [
    `## ${code.toLowerCase().replaceAll('_', '-')}`,
    '',
    `\`${code}\`: ${title}. Usual severity: ${severity}.`,
    '',
    `- Found when: ${when}`,
    `- What to do: ${next}`,
    ...(explains.length === 0
      ? []
      : [
          `- Brings about, where it is found with them: ${[...new Set(explains)].map((each) => `\`${each}\``).join(', ')}`,
        ]),
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
