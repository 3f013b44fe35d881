/** Writes `docs/http.md` from the table of routes: `node scripts/docs-http.ts`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isInPath, type Parameter } from '../src/http/routes/parameters.ts'
import type { Gate, Route } from '../src/http/routes/route.ts'
import { routes } from '../src/http/routes/routes.ts'
import { fieldsOf, type Schema, schemas } from '../src/http/routes/schemas.ts'

export const httpPage = join(import.meta.dirname, '..', 'docs', 'http.md')

const gates: Readonly<Record<Gate, string>> = {
  always: 'always',
  metrics: '`runtime.metrics.enabled`',
  config: '`runtime.endpoints.config.enabled`',
  ha: '`ha.mode` is not `off`',
  debug: '`runtime.http.debug.enabled`',
  stores: '`runtime.endpoints.stores.enabled`',
  deadLetters: '`runtime.endpoints.dead-letters.enabled`',
}
const formats: Readonly<Record<Route['formats'], string>> = {
  json: 'JSON',
  'json or text': 'JSON; text for `Accept: text/plain`',
  'text or json': 'text; JSON for `Accept: application/json`',
  'yaml or json': 'YAML; JSON for `Accept: application/json`',
  metrics: 'text exposition format 0.0.4',
}

function parameterLine(parameter: Parameter): string {
  const kind = {
    integer: (p: Parameter) => (p.type === 'integer' ? `whole number ${p.min} to ${p.max}, default ${p.default}` : ''),
    enum: (p: Parameter) =>
      p.type === 'enum' ? `${p.values.map((value) => `\`${value}\``).join(', ')}, default \`${p.default}\`` : '',
    boolean: (p: Parameter) => (p.type === 'boolean' ? `\`true\` or \`false\`, default \`${p.default}\`` : ''),
    name: () => 'required',
    text: (p: Parameter) => (isInPath(p) ? 'part of the path' : 'text, optional'),
  }[parameter.type](parameter)
  return `- \`${parameter.name}\` (${kind}): ${parameter.doc}`
}

function typeOf(schema: Schema): string {
  const alternatives = schema.anyOf as readonly Schema[] | undefined
  if (alternatives !== undefined) return alternatives.map(typeOf).join(' or ')
  const values = schema.enum as readonly string[] | undefined
  if (values !== undefined && values.length <= 4) return values.map((value) => `\`${value}\``).join(', ')
  if (schema.format === 'date-time') return 'timestamp'
  return String(schema.type ?? 'any')
}

/** Only schemas whose every field is described get a table; the rest are told by `/openapi.json`. */
function fieldTable(route: Route): string[] {
  if (route.schema === null) return []
  const rows = fieldsOf(schemas[route.schema]).filter(
    ({ path, schema }) => path !== '' && schema.description !== undefined,
  )
  if (rows.length === 0) return []
  const lines = rows.map(
    ({ path, schema, optional }) =>
      `| \`${path}\`${optional ? ' (optional)' : ''} | ${typeOf(schema)} | ${String(schema.description)} |`,
  )
  return ['| Field | Type | Meaning |', '|---|---|---|', ...lines, '']
}

const shown = new Set<string>()

function section(route: Route): string[] {
  const fields = route.schema !== null && shown.has(route.schema) ? [] : fieldTable(route)
  if (route.schema !== null) shown.add(route.schema)

  const failures = route.failures.filter((status) => status !== route.success)
  return [
    `### ${route.method} ${route.path}`,
    '',
    `${route.summary}. ${route.doc}`,
    '',
    ...(route.parameters.length === 0 ? [] : ['Parameters:', ...route.parameters.map(parameterLine), '']),
    `Answers ${route.success} with ${formats[route.formats]}${failures.length === 0 ? '' : `; refuses with ${failures.join(', ')}`}.`,
    '',
    ...fields,
  ]
}

const introduction = `The interface runs next to the application, by default on port 8080 of all addresses (\`runtime.http.host\`,
\`runtime.http.port\`; \`runtime.http.enabled: false\` turns it off). It is up before the engine and stays until after it.
\`/openapi.json\` describes it for programs. Every value is the engine's own; none is asked of the broker while a client waits.

Only \`/health/live\` and \`/health/ready\` are fit for public networks. Keep everything else inside, or set
\`runtime.http.auth.token\`: every request but those for \`/health/…\` probes and the files of the console must then carry
\`Authorization: Bearer <token>\`. With
\`runtime.http.tls.cert-file\` and \`runtime.http.tls.key-file\` the interface is served over TLS (1.2 or newer).

## Rules for all endpoints

- Each endpoint accepts one method. Any other, HEAD and OPTIONS too, gets 405 and an \`Allow\` header.
- A request is judged in this order: 404 (unknown path, or turned off), 405, 403, 400, 503, 409.
- What is not a success carries the JSON body \`{"error": "<sentence>"}\`. A probe that is DOWN carries its report and \`error\`.
- Paths match exactly. Unknown query parameters and request bodies are ignored; a known parameter given twice gets 400.
- \`Accept\` is honoured with its quality values where an endpoint offers two formats; no wish, \`*/*\` or an unknown type gives
  the first one named below.
- A POST that another site made a browser send (foreign \`Origin\`, \`Sec-Fetch-Site: cross-site\`) gets 403.
- Every answer carries \`X-Content-Type-Options: nosniff\` and \`Cache-Control: no-store\`; there are no CORS headers.
- Timestamps are ISO 8601 in UTC; fields ending in \`Ms\` are epoch milliseconds; what is not known yet is null.

## Limits

Request headers of 8 KiB and 64 fields (431), targets of 2,048 characters (414), bodies of 4 KiB (413), 5 seconds for the headers
and 10 for the request (408), 256 connections and 64 of one address. Where a bound on connections is reached, the
oldest one without a request under way makes room, so that clients that hold connections and send nothing shut nobody out.
All of them are configurable, see \`runtime.http.*\` in [the configuration](config.md).

## In a server of your own

\`createHttpServer(...).handler(request, response)\` answers one request and can be mounted anywhere: it sees the path as
\`request.url\` gives it. The limits above then are the business of that server.
`

export function renderHttpPage(): string {
  shown.clear()
  const rows = routes.map(
    (route) => `| ${route.method} | \`${route.path}\` | ${gates[route.gate]} | ${route.summary} |`,
  )
  return [
    '# HTTP interface',
    '',
    '<!-- Generated from src/http/routes/routes.ts by scripts/docs-http.ts; do not edit. -->',
    '',
    introduction,
    '## Endpoints',
    '',
    '| Method | Path | Served when | What it tells |',
    '|---|---|---|---|',
    ...rows,
    '',
    'An endpoint that is off is unknown (404), save `/metrics`, which answers 503.',
    '',
    ...routes.flatMap(section),
  ]
    .join('\n')
    .replace(/\n+$/, '\n')
}

if (import.meta.main) writeFileSync(httpPage, renderHttpPage())
