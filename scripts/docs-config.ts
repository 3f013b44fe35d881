/** Writes `docs/config.md` from the configuration table: `node scripts/docs-config.ts`. A test fails when it is stale. */
import { writeFileSync } from 'node:fs'
import { isoDuration } from '../src/base/duration.ts'
import { describeType } from '../src/config/parse-value.ts'
import { crossRules } from '../src/config/rules.ts'
import { environmentName } from '../src/config/sources.ts'
import { type ConfigKey, type ConfigRow, clientSections, configKeys, rowOf } from '../src/config/table.ts'

/** Sections in which other clients have keys of their own. */
const otherClients = clientSections.filter((prefix) => prefix !== 'broker.')

const intro = `# Configuration

<!-- Generated from src/config/table.ts by scripts/docs-config.ts. Change the table, not this page. -->

Values come from five sources, each over the one before:

1. the defaults below,
2. the application (\`defineApp({ config: … })\`, or the \`config\` of \`startRuntime\`),
3. a YAML file (\`--config engine.yaml\`), nested or with dotted keys,
4. the environment: upper case, dots and dashes become underscores (\`runtime.http.port\` is \`RUNTIME_HTTP_PORT\`); an
   empty variable counts as not set,
5. the command line: \`--set key=value\`.

\`\`\`yaml
engine:
  lanes:
    count: 4
broker.bootstrap-servers: kafka-1:9092,kafka-2:9092
runtime.http.port: 9090
\`\`\`

Everything is checked at start, and every fault is reported at once, with the nearest key where a name is not known.
Durations are written \`10s\`, \`5m\`, \`1h30m\`, as ISO 8601 (\`PT30S\`) or as a number of milliseconds; sizes as \`64MiB\`,
\`8KiB\` or a number of bytes. \`null\` (or an empty text) unsets a key that may be unset.

In TypeScript the configuration that a program gives is checked as it is written: its type is
[\`ConfigInput\`](api/millrace.md#type-configinput). One in a variable of its own wants that type (\`const config: ConfigInput = …\`).

Keys of *scope* application must be the same in all processes of one application; the others belong to each process.

**Client options.** Under ${otherClients.map((prefix) => `\`${prefix}\``).join(', ')} further keys are accepted
(\`consumer.fetch.min.bytes\`), so that configurations can be shared with other clients; they are shown at \`/config\`, and a
warning at start names those that nothing in this version acts on. In the environment every underscore after the
section's name is then a dot.

**Secrets.** A value is shown as \`******\` – in \`/config\`, in logs, in errors – where its key names a password, passphrase,
secret, token, credential, API key, private key, license key, JAAS entry or authorization; where it was read from a
\`…-file\` key; where a variable of the environment with such a name holds the same text; and where it looks like one
(user-info in a URL, \`password=…\` inside text, a PEM block, a JWT). The last part of a key decides: \`license.key\` is
masked, \`license.key-file\` is not. Under the client sections, \`x.password-file\` and its kin are read at start and give
\`x.password\`.
`

/** The whole page. */
export function renderConfigDocs(): string {
  const groups = new Map<string, ConfigKey[]>()
  for (const key of configKeys) {
    const group = key.split('.')[0] as string
    groups.set(group, [...(groups.get(group) ?? []), key])
  }
  const sections = [...groups].map(([group, keys]) => {
    const rows = keys.map((key) => {
      const row = rowOf(key)
      return `| \`${key}\` | ${cell(typeOf(row))} | ${cell(defaultOf(row))} | ${cell(docOf(row))} |`
    })
    return `## ${group}\n\n| Key | Takes | Default | Meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`
  })
  const rules = crossRules.map((rule) => `- ${rule.keys.map((key) => `\`${key}\``).join(', ')}: ${rule.sentence}.`)
  const variables = configKeys.map((key) => `| \`${key}\` | \`${environmentName(key)}\` |`)
  return [
    intro,
    ...sections,
    `## Rules over several keys\n\n${rules.join('\n')}\n`,
    `## Environment\n\n| Key | Variable |\n|---|---|\n${variables.join('\n')}\n`,
  ].join('\n')
}

function typeOf(row: ConfigRow): string {
  return row.type === 'enum' ? row.values.map((value) => `\`${value}\``).join(', ') : describeType(row)
}

function defaultOf(row: ConfigRow): string {
  if (row.default === null) return 'unset'
  if (row.type === 'duration') return row.default === 0 ? '0' : `\`${row.default}\` (${isoDuration(row.default)})`
  if (row.type === 'bytes' && row.default % 1_048_576 === 0 && row.default > 0) return `${row.default / 1_048_576} MiB`
  if (row.type === 'bytes' && row.default % 1024 === 0 && row.default > 0) return `${row.default / 1024} KiB`
  if (row.type === 'list') return row.default.length === 0 ? 'empty' : `\`${row.default.join(',')}\``
  return `\`${row.default}\``
}

function docOf(row: ConfigRow): string {
  const notes = [...(row.secret ? ['Secret.'] : []), ...(row.scope === 'application' ? ['*Scope: application.*'] : [])]
  return [row.doc, ...notes].join(' ')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

if (import.meta.main) writeFileSync(new URL('../docs/config.md', import.meta.url), renderConfigDocs())
