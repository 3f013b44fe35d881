/** Writes the API reference, `docs/api/*.md`, from the documentation in the code: `node scripts/docs-api.ts`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Declaration, Member } from './api/declarations.ts'
import { type EntryPoint, type Export, readSurface } from './api/surface.ts'

export const apiFolder = join(import.meta.dirname, '..', 'docs', 'api')

/** The headings of `millrace`, each with the files whose exports stand below it. */
const sections: ReadonlyArray<readonly [heading: string, files: readonly string[]]> = [
  ['Applications', ['src/dsl/app.ts', 'src/config/config-input.ts']],
  ['Sources', ['src/dsl/topology.ts', 'src/dsl/types.ts']],
  ['Streams', ['src/dsl/stream.ts', 'src/dsl/nodes.ts', 'src/dsl/stream-joins.ts']],
  ['Tables', ['src/dsl/table.ts', 'src/dsl/grouped-table.ts']],
  ['Aggregates', ['src/dsl/grouped.ts', 'src/dsl/cogroup.ts']],
  ['Windows', ['src/dsl/windows.ts', 'src/serde/windowed.ts']],
  ['Processors', ['src/dsl/process.ts', 'src/dsl/retry.ts']],
  ['Stores', ['src/dsl/stores.ts', 'src/state/contract.ts']],
  [
    'Serdes',
    [
      'src/serde/index.ts',
      'src/serde/serde.ts',
      'src/serde/json.ts',
      'src/serde/plain/plain-avro.ts',
      'src/serde/plain/plain-protobuf.ts',
      'src/serde/plain/message-pack.ts',
    ],
  ],
  [
    'Records and functions',
    [
      'src/topology/operator-spec.ts',
      'src/broker/wire/headers.ts',
      'src/serde/cloud-events.ts',
      'src/base/duration.ts',
      'src/base/logger.ts',
    ],
  ],
  ['Errors', ['src/base/errors.ts']],
  ['Compiled topologies', ['src/topology/compile.ts', 'src/topology/compiled.ts', 'src/topology/describe.ts']],
]

export interface Documentation {
  readonly text: string
  readonly throws: readonly string[]
  readonly examples: readonly string[]
  /** Made by the DSL alone; not in the reference. */
  readonly isInternal: boolean
}

/** A documentation comment by its parts. */
export function partsOf(doc: string): Documentation {
  const blocks = doc.split(/^(?=@)/m)
  const of = (tag: string): string[] =>
    blocks.filter((block) => block.startsWith(`@${tag}`)).map((block) => block.slice(tag.length + 1).trim())
  return {
    text: blocks[0]?.startsWith('@') ? '' : (blocks[0] ?? '').trim(),
    throws: of('throws'),
    examples: of('example').map((code) => code.replaceAll(/^```\w*$/gm, '').trim()),
    isInternal: blocks.some((block) => block.startsWith('@internal')),
  }
}

const fenced = (code: string): string[] => ['```typescript', code, '```', '']
/** A paragraph on one line. */
const flowing = (text: string): string => text.replaceAll(/(?<!\n)\n(?!\n)/g, ' ')

/** What it is for, how it is called, what it throws, how it is used. */
function prose({ text, throws, examples }: Documentation, signature: string): string[] {
  return [
    ...(text === '' ? [] : [flowing(text), '']),
    ...fenced(signature),
    ...throws.flatMap((one) => [`Throws ${flowing(one)}`, '']),
    ...examples.flatMap(fenced),
  ]
}

function renderMethod(owner: string, { name, doc, signatures }: Member): string[] {
  return [`#### ${owner}.${name}`, '', ...prose(partsOf(doc), signatures.join('\n'))]
}

function renderProperty({ name, optional, doc, signatures: [signature = ''] }: Member): string[] {
  const shown = signature.replace(/^readonly /, '')
  const { text, throws, examples } = partsOf(doc)
  const said = [flowing(text), ...throws.map((one) => `Throws ${flowing(one)}`)].join(' ')
  const long = shown.includes('\n') || shown.length > 80
  const head = long ? `- \`${name}${optional ? '?' : ''}\`: ${said}` : `- \`${shown}\`: ${said}`
  const code = [...(long ? [shown] : []), ...examples]
  return [head, ...code.flatMap((one) => ['', ...fenced(one).map((line) => indented(line))])]
}

const indented = (text: string): string => text.replaceAll(/^(?=.)/gm, '  ')

function renderMembers(owner: string, members: readonly Member[]): string[] {
  const shown = members.filter((member) => !partsOf(member.doc).isInternal)
  const properties = shown.filter((member) => member.kind === 'property')
  const methods = shown.filter((member) => member.kind !== 'property')
  return [
    ...properties.flatMap(renderProperty),
    ...(properties.length > 0 ? [''] : []),
    ...methods.flatMap((member) => renderMethod(owner, member)),
  ]
}

function renderDeclaration({ name, kind, doc, signatures, head, members }: Declaration): string[] {
  const hasBody = kind === 'class' || kind === 'interface' || members.length > 0
  const shape = hasBody ? head.replace(/:$/, '') : signatures.join('\n')
  return [`### ${kind} ${name}`, '', ...prose(partsOf(doc), shape), ...renderMembers(name, members)]
}

/** The exports below each heading; an entry point without headings of its own has none. */
function grouped({ specifier, exports }: EntryPoint): ReadonlyArray<readonly [string, readonly Export[]]> {
  if (specifier !== 'millrace') return [['Exports', exports]]
  const placed = sections.map(
    ([heading, files]) => [heading, files.flatMap((file) => exports.filter((one) => one.file === file))] as const,
  )
  const missing = exports.filter((one) => !placed.some(([, list]) => list.includes(one)))
  if (missing.length > 0) throw new Error(`give ${missing[0]?.file} a heading in scripts/docs-api.ts`)
  return placed
}

export function renderEntryPoint(entry: EntryPoint): string {
  const groups = grouped(entry)
  const link = ({ declaration: { name, kind } }: Export): string => `[\`${name}\`](#${kind}-${name.toLowerCase()})`
  const contents = groups.map(([heading, list]) => `- ${heading}: ${list.map(link).join(', ')}`)
  const body = groups.flatMap(([heading, list]) => [
    `## ${heading}`,
    '',
    ...list.flatMap(({ declaration }) => renderDeclaration(declaration)),
  ])
  const text = [
    `# ${entry.specifier}`,
    '',
    '<!-- Generated from the documentation in src by scripts/docs-api.ts; do not edit. -->',
    '',
    entry.doc,
    '',
    ...contents,
    '',
    ...body,
  ].join('\n')
  return `${text.replaceAll(/\n{3,}/g, '\n\n').trimEnd()}\n`
}

/** Every page by the name of its file. */
export function renderApi(surface: readonly EntryPoint[] = readSurface()): Map<string, string> {
  return new Map(surface.map((entry) => [`${entry.specifier.replaceAll('/', '-')}.md`, renderEntryPoint(entry)]))
}

if (import.meta.main) {
  for (const [name, text] of renderApi()) {
    const path = join(apiFolder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
}
