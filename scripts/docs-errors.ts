/** Writes `docs/errors.md` from the table of errors: `node scripts/docs-errors.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ErrorDomain, type ErrorRecovery, errorTable } from '../src/base/errors.ts'

export const errorsPage = join(import.meta.dirname, '..', 'docs', 'errors.md')

const domains: Readonly<Record<ErrorDomain, string>> = {
  user: 'the application, its configuration, or how it was started',
  external: 'the broker, the network, the disk, or another process',
  internal: 'Millrace itself: please report it',
}

const recoveries: Readonly<Record<ErrorRecovery, string>> = {
  'skip-record': 'the record is counted and left out, the engine goes on',
  retry: 'the engine tries again by itself, as long as it takes',
  'abort-epoch': 'the open transaction is aborted and its records are processed again after a restart in place',
  'restart-engine': 'the engine is rebuilt in place, within its restart budget',
  'stand-down': 'the process ends with exit code 3 and does not come back under the same identity',
  stop: 'the engine stops, or does not start; only a person can help',
}

export function renderErrors(): string {
  const list = (rows: Readonly<Record<string, string>>): string[] =>
    Object.entries(rows).map(([name, text]) => `- \`${name}\`: ${text}.`)
  const rows = Object.entries(errorTable).map(
    ([code, { domain, recovery, advice }]) => `| \`${code}\` | ${domain} | ${recovery} | ${advice} |`,
  )
  return [
    '# Errors',
    '',
    '<!-- Generated from src/base/errors.ts by scripts/docs-errors.ts; do not edit. -->',
    '',
    'Every error that Millrace raises carries a code. The code says who has to act and what the engine does by itself.',
    'A code is never used again for something else.',
    '',
    'Who has to act:',
    ...list(domains),
    '',
    'What the engine does:',
    ...list(recoveries),
    '',
    '| Code | Domain | Recovery | What to do |',
    '|---|---|---|---|',
    ...rows,
    '',
    "A broker's own errors keep Kafka's names (`PRODUCER_FENCED`, …) in the log, beside the code of the table.",
    'What refuses a command of `millrace ha`, and what to do then: [high availability](guide/high-availability.md).',
    '',
  ].join('\n')
}

if (import.meta.main) writeFileSync(errorsPage, renderErrors())
