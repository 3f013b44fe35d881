/**
 * `node scripts/site.ts [folder]`: builds the documentation site, by default into `.cache/site`: the pages of `docs`, a page for each operator
 * whose output comes of running it, and the examples with their code. Fails where a link leads nowhere.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { build } from 'vitepress'
import { readSurface } from './api/surface.ts'
import { type Page, relinked } from './site/links.ts'
import { type OperatorPage, operatorPages } from './site/operators.ts'

const root = join(import.meta.dirname, '..')

interface Item {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: readonly Item[]
}

const titleOf = (text: string): string => /^# (.+)$/m.exec(text)?.[1] ?? ''
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

function documents(): Map<string, Page> {
  const pages = new Map<string, Page>([['index.md', { source: 'README.md', text: read('README.md') }]])
  for (const source of ['CHANGELOG.md', 'SECURITY.md']) pages.set(source.toLowerCase(), { source, text: read(source) })
  for (const entry of readdirSync(join(root, 'docs'), { recursive: true, withFileTypes: true })) {
    // Decisions are for those who change the engine: they are read beside it.
    if (!entry.name.endsWith('.md') || entry.parentPath.endsWith('decisions')) continue
    const path = posix.join(entry.parentPath.slice(join(root, 'docs').length + 1), entry.name)
    pages.set(path, { source: posix.join('docs', path), text: read(posix.join('docs', path)) })
  }
  return pages
}

/** The examples that have a README, with the code of the application below it. */
function exampleNames(): string[] {
  const folders = readdirSync(join(root, 'examples'))
  return folders.filter(
    (name) =>
      existsSync(join(root, 'examples', name, 'README.md')) && existsSync(join(root, 'examples', name, 'app.ts')),
  )
}

function examplePage(name: string): Page {
  const source = `examples/${name}/README.md`
  return { source, text: `${read(source)}\n## app.ts\n\`\`\`ts\n${read(`examples/${name}/app.ts`)}\`\`\`\n` }
}

function operatorItems(pages: readonly OperatorPage[]): Item[] {
  return [...Map.groupBy(pages, ({ handle }) => handle)].map(([handle, all]) => ({
    text: handle,
    collapsed: true,
    items: all.map(({ name }) => ({ text: name, link: `/operators/${handle}-${name}` })),
  }))
}

/** By what readers look for, in the order in which they come to need it. */
function sidebar(pages: ReadonlyMap<string, Page>, operators: readonly OperatorPage[]): Item[] {
  const of = (...paths: readonly string[]): Item[] =>
    paths.map((path) => ({ text: titleOf((pages.get(path) as Page).text), link: `/${path.replace(/\.md$/, '')}` }))
  const below = (folder: string): Item[] =>
    of(...[...pages.keys()].filter((path) => path.startsWith(`${folder}/`)).sort())
  return [
    { text: 'Start', items: [{ text: 'In five minutes', link: '/' }, ...of('guide/tutorial.md')] },
    { text: 'Concepts', items: of('guide/concepts.md', 'guide/exactly-once.md', 'guide/state.md') },
    { text: 'Operators', items: [...of('guide/dsl.md'), ...operatorItems(operators)] },
    { text: 'Serdes', items: of('guide/schema-registry.md') },
    { text: 'Testing', items: of('guide/testing.md') },
    {
      text: 'Deployment',
      items: of(
        'guide/shipping.md',
        'guide/operations.md',
        'guide/high-availability.md',
        'guide/console.md',
        'guide/telemetry.md',
      ),
    },
    { text: 'Tuning', items: of('performance.md') },
    { text: 'Troubleshooting', items: of('guide/troubleshooting.md', 'guide/standstills.md') },
    {
      text: 'Coming from elsewhere',
      items: of('guide/coming-from-kafkajs.md', 'guide/coming-from-kafka-streams.md', 'guide/coming-from-flink.md'),
    },
    { text: 'Examples', items: below('examples') },
    {
      text: 'Reference',
      items: [...of('config.md', 'http.md', 'metrics.md', 'errors.md', 'license.md'), ...below('api')],
    },
    {
      text: 'Project',
      collapsed: true,
      items: [...of('changelog.md', 'security.md')],
    },
  ]
}

/** Nothing in a page is a template or a tag. */
const verbatim = (text: string): string => `::: v-pre\n${text}\n:::\n`

export interface BuiltSite {
  readonly pages: ReadonlyMap<string, Page>
  readonly operators: readonly OperatorPage[]
}

/** @throws Error that names every link to nowhere. */
export async function collectSite(work: string): Promise<BuiltSite & { readonly texts: ReadonlyMap<string, string> }> {
  const operators = await operatorPages(readSurface(), join(work, 'examples'))
  const pages = documents()
  for (const name of exampleNames()) pages.set(`examples/${name}.md`, examplePage(name))
  for (const { handle, name, text } of operators)
    pages.set(`operators/${handle}-${name}.md`, { source: `operators/${handle}-${name}.md`, text })
  const dead: string[] = []
  const texts = new Map([...pages.keys()].map((path) => [path, relinked(path, pages, root, dead)]))
  if (dead.length > 0) throw new Error(`links that lead nowhere:\n${dead.join('\n')}`)
  return { pages, operators, texts }
}

/** `minify`: for readers; a test does without. */
export async function buildSite(target: string, work: string, minify = true): Promise<BuiltSite> {
  const { pages, operators, texts } = await collectSite(work)
  const folder = join(work, 'source')
  rmSync(folder, { recursive: true, force: true })
  for (const [path, text] of texts) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), verbatim(text))
  }
  cpSync(join(root, 'docs', 'console'), join(folder, 'console'), { recursive: true })
  const config = {
    title: 'Millrace',
    description: 'Stream processing for TypeScript on Node.js',
    outDir: target,
    cacheDir: join(work, 'cache'),
    ignoreDeadLinks: false,
    vite: { build: { minify, reportCompressedSize: false, chunkSizeWarningLimit: 4096 } },
    markdown: { html: false, theme: { light: 'github-light', dark: 'github-dark' } },
    themeConfig: { search: { provider: 'local' }, outline: [2, 3], sidebar: sidebar(pages, operators) },
  }
  const theme = join(folder, '.vitepress', 'theme')
  mkdirSync(theme, { recursive: true })
  cpSync(join(import.meta.dirname, 'site', 'theme.js'), join(theme, 'index.js'))
  cpSync(join(import.meta.dirname, 'site', 'theme.css'), join(theme, 'theme.css'))
  mkdirSync(join(folder, 'public'))
  cpSync(createRequire(import.meta.url).resolve('@mermaid-js/tiny'), join(folder, 'public', 'mermaid.js'))
  writeFileSync(join(folder, '.vitepress', 'config.mjs'), `export default ${JSON.stringify(config)}\n`)
  // The compiler's settings of the repository are newer than what VitePress knows.
  writeFileSync(join(folder, 'tsconfig.json'), '{}\n')
  await build(folder)
  return { pages, operators }
}

if (import.meta.main) {
  const target = process.argv[2] ?? join(root, '.cache', 'site')
  const { pages } = await buildSite(target, join(root, '.cache', `site-${process.pid}`))
  rmSync(join(root, '.cache', `site-${process.pid}`), { recursive: true, force: true })
  process.stdout.write(`${pages.size} pages in ${target}\n`)
}
