/** Renews the transition table in `docs/license.md`: `node scripts/docs-license.ts`. A test fails when it is stale. */
import { readFileSync, writeFileSync } from 'node:fs'
import { licenseConditions, licenseEvents, licenseStatuses, licenseTransitions } from '../src/license/status.ts'

const page = new URL('../docs/license.md', import.meta.url)
const begin = '<!-- transitions: generated from src/license/status.ts by scripts/docs-license.ts -->'
const end = '<!-- end of transitions -->'

/** The page with its generated part renewed. */
export function renewLicenseDocs(text: string): string {
  const from = text.indexOf(begin)
  const to = text.indexOf(end)
  return from < 0 || to < from ? text : `${text.slice(0, from)}${begin}\n\n${renderTransitions()}\n${text.slice(to)}`
}

function renderTransitions(): string {
  const rows = licenseTransitions.map((row) => {
    const statuses = row.from.length === licenseStatuses.length - 1 ? 'any but `NO_KEY`' : row.from.map(code).join(', ')
    const to = row.to === 'same' ? 'stays' : code(row.to)
    return `| ${statuses} | ${row.on.join(', ')} | ${row.when ?? ''} | ${to} |`
  })
  const events = Object.entries(licenseEvents).map(([name, meaning]) => `- **${name}**: ${meaning}.`)
  const conditions = Object.entries(licenseConditions).map(([name, meaning]) => `- **${name}**: ${meaning}.`)
  return `| From | On | When | To |
|---|---|---|---|
${rows.join('\n')}

Events:

${events.join('\n')}

Conditions, of which exactly one holds at any moment:

${conditions.join('\n')}
`
}

function code(text: string): string {
  return `\`${text}\``
}

if (import.meta.main) writeFileSync(page, renewLicenseDocs(readFileSync(page, 'utf8')))
