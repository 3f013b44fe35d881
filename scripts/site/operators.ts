/** A page for each operator: what it is for, its code, and what goes in and comes out, by running it. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Topology } from '../../src/index.ts'
import { type Outcome, play, playable, scriptOf, type Step } from '../../test/docs/play.ts'
import type { Declaration } from '../api/declarations.ts'
import type { EntryPoint } from '../api/surface.ts'
import { partsOf } from '../docs-api.ts'

/** The classes whose methods are operators, in the order in which they are shown. */
const handles = [
  'Topology',
  'Stream',
  'GroupedStream',
  'WindowedStream',
  'SessionWindowedStream',
  'CogroupedStream',
  'WindowedCogroup',
  'SessionWindowedCogroup',
  'Table',
  'GroupedTable',
]

export interface OperatorPage {
  readonly handle: string
  readonly name: string
  readonly text: string
}

const fence = (code: string): string => `\`\`\`ts\n${code.trim()}\n\`\`\``

function shown(value: unknown): string {
  return `\`${(JSON.stringify(value) ?? 'undefined').replaceAll('|', '\\|').replaceAll('`', "'")}\``
}

function inputTable(steps: readonly Step[]): string {
  const rows = steps.map((step) =>
    step.type === 'wait'
      ? `| | | ${step.duration} of the wall clock pass | |`
      : `| \`${step.topic}\` | ${shown(step.key)} | ${shown(step.value)} | ${step.at / 1000} s |`,
  )
  return ['| Into | Key | Value | At |', '|---|---|---|---|', ...rows].join('\n')
}

function outputTable(results: readonly Outcome[]): string {
  const rows = results.map(([where, key, value]) => {
    return where === 'print' ? `| printed | | ${shown(value)} |` : `| \`${where}\` | ${shown(key)} | ${shown(value)} |`
  })
  return ['| Out of | Key | Value |', '|---|---|---|', ...rows].join('\n')
}

/** Runs each example in `folder`, which lies inside the repository, so that `millrace` is found. */
export async function operatorPages(surface: readonly EntryPoint[], folder: string): Promise<OperatorPage[]> {
  const exports = surface.find(({ specifier }) => specifier === 'millrace')?.exports ?? []
  mkdirSync(folder, { recursive: true })
  try {
    const pages: OperatorPage[] = []
    for (const handle of handles) {
      const declaration = exports.find(({ declaration: { name } }) => name === handle)?.declaration
      if (declaration) pages.push(...(await pagesOf(declaration, folder)))
    }
    return pages
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function pagesOf({ name: handle, members }: Declaration, folder: string): Promise<OperatorPage[]> {
  const pages: OperatorPage[] = []
  for (const { name, kind, doc, signatures } of members) {
    const { text, examples, throws, isInternal } = partsOf(doc)
    const played = examples.filter((example) => scriptOf(example).results.length > 0)
    if (kind !== 'method' || isInternal || played.length === 0) continue
    const parts = [`# ${handle}.${name}`, text, fence(signatures.join('\n'))]
    if (throws.length > 0) parts.push(...throws.map((one) => `Throws ${one}`))
    for (const [i, example] of played.entries())
      parts.push(await exampleText(example, join(folder, `${handle}-${name}-${i}.ts`)))
    pages.push({ handle, name, text: `${parts.filter((part) => part !== '').join('\n\n')}\n` })
  }
  return pages
}

async function exampleText(text: string, file: string): Promise<string> {
  writeFileSync(file, playable({ place: file, file, text }))
  const { build } = (await import(pathToFileURL(file).href)) as {
    readonly build: (topology: Topology, print: (value: unknown) => void) => void
  }
  const script = scriptOf(text)
  const { actual } = await play(build, script)
  const code = text.replaceAll(/^\s*\/\/ .*$\n?/gm, '')
  return ['## Example', fence(code), inputTable(script.steps), 'gives', outputTable(actual)].join('\n\n')
}
