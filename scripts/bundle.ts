/**
 * The code of the package as few files (decision 68): each thread that starts would load some hundreds of modules, and to
 * find, read and link them takes longer than to run them. What entries share lies in chunks of its own, so that two entries
 * which are loaded by one thread are of the same classes. An entry stands where its source stands, and leads to its bundle.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { build, type BuildOptions, type Plugin } from 'esbuild'

const root = join(import.meta.dirname, '..')
/** All bundles and chunks lie in one folder: from there a module's own place can be told, wherever it has gone. */
const bundles = 'src/bundle'
/** How a module names the file of a thread. Neither compiler nor bundler follows it. */
const threadFile = /new URL\((['"])(\.{1,2}\/[^'"]+)\.ts\1, import\.meta\.url\)/g

/** Names stay as they are: stacks and profiles are read by them. */
const common = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  packages: 'external',
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  logLevel: 'warning',
} as const satisfies BuildOptions

/** Bundles the sources into the folder. */
export async function bundleSources(folder: string): Promise<void> {
  const entries = entryFiles()
  const entryPoints = Object.fromEntries(entries.map((file) => [nameOf(file), join(root, file)]))
  await build({ ...common, splitting: true, entryPoints, outdir: join(folder, bundles), plugins: [inPlace] })
  for (const file of entries) writeEntry(folder, file)
}

/** What `millrace demo` runs: it stands beside the sources, and finds the package by its name as any application does. */
export async function bundleDemo(folder: string): Promise<void> {
  const entryPoints = ['app', 'data'].map((name) => join(root, 'examples', 'flights', `${name}.ts`))
  await build({ ...common, entryPoints, outdir: join(folder, 'examples', 'flights') })
}

/** What the manifest exports, the command, and the files of threads. */
function entryFiles(): string[] {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string>>
    readonly bin: Readonly<Record<string, string>>
  }
  const named = [...Object.values(manifest.exports), ...Object.values(manifest.bin)]
  const threads = globSync('src/**/*.ts', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(threadFile)].map(([, , path]) =>
      resolve(root, dirname(file), `${path}.ts`),
    ),
  )
  const sources = named.filter((path) => path.endsWith('.ts')).map((path) => join(root, path))
  return [...new Set([...sources, ...threads])].map((path) => relative(root, path)).sort()
}

/** `src/serde/registry/index.ts` becomes `serde-registry-index`. */
function nameOf(file: string): string {
  return file.replace(/^src\W|\.ts$/g, '').replaceAll(sep, '-')
}

const inPlace: Plugin = {
  name: 'in-place',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8').replace(threadFile, 'new URL($1$2.js$1, import.meta.url)')
      const place = relative(join(root, bundles), path).replaceAll(sep, '/').replace(/\.ts$/, '.js')
      const contents = text.replaceAll('import.meta.url', `new URL('${place}', import.meta.url).href`)
      const left = /import\.meta\.(?!url\))\w+/.exec(contents)
      if (left) throw new Error(`${path} uses ${left[0]}, which a bundle would change: use import.meta.url`)
      return { contents, loader: 'ts' }
    })
  },
}

function writeEntry(folder: string, file: string): void {
  const [first = ''] = readFileSync(join(root, file), 'utf8').split('\n', 1)
  const path = join(folder, file.replace(/\.ts$/, '.js'))
  const bundle = join(folder, bundles, `${nameOf(file)}.js`)
  const specifier = `./${relative(dirname(path), bundle)}`.replaceAll(sep, '/').replace('./../', '../')
  mkdirSync(dirname(path), { recursive: true })
  const lines = [...(first.startsWith('#!') ? [first] : []), `export * from '${specifier}'`]
  writeFileSync(path, `${lines.join('\n')}\n`)
}
