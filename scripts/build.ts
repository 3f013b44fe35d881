/**
 * Builds the package for publication: `node scripts/build.ts [folder]`, by default into `dist/`, from where `npm pack`
 * and `npm publish` take it. The layout is that of the repository, with JavaScript and type declarations.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'

const root = join(import.meta.dirname, '..')

interface Manifest {
  readonly exports: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
  readonly [name: string]: unknown
}

/** Fields of the repository's own work that the package has no use for. */
const ownFields = ['scripts', 'devDependencies', 'private', 'exports', 'bin']
const copiedFiles = ['README.md', 'LICENSE', 'CHANGELOG.md']
const demoData = ['flights-20k.json', 'airports.csv']

/** Builds into the folder, which is emptied first. */
export function buildPackage(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  compile(folder)
  for (const file of filesBelow(folder, '.js')) rewriteWorkerPaths(file)
  writeManifest(folder)
  for (const file of copiedFiles) cpSync(join(root, file), join(folder, file))
  cpSync(join(root, 'docs'), join(folder, 'docs'), { recursive: true })
  copyDemoData(folder)
  chmodSync(join(folder, 'src', 'cli', 'main.js'), 0o755)
}

function compile(folder: string): void {
  const compiler = join(root, 'node_modules', '.bin', 'tsc')
  const args = ['-p', join(root, 'tsconfig.build.json'), '--outDir', folder]
  execFileSync(compiler, args, { stdio: 'inherit', cwd: root })
}

/** The compiler rewrites the endings of imports; addresses of worker modules are plain strings to it. */
function rewriteWorkerPaths(file: string): void {
  const text = readFileSync(file, 'utf8')
  const rewritten = text.replace(/new URL\((['"])(\.{1,2}\/[^'"]+)\.ts\1/g, 'new URL($1$2.js$1')
  const left = /(?:from|import\(|new URL\()\s*['"]\.{1,2}\/[^'"]+\.ts['"]/.exec(rewritten)
  if (left) throw new Error(`${file} still names a TypeScript module: ${left[0]}`)
  if (rewritten !== text) writeFileSync(file, rewritten)
}

function writeManifest(folder: string): void {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest
  const kept = Object.entries(manifest).filter(([name]) => !ownFields.includes(name))
  const built = (path: string): string => path.replace(/\.ts$/, '.js')
  const exported = Object.entries(manifest.exports).map(([name, path]): [string, unknown] => {
    if (!path.endsWith('.ts')) return [name, path]
    return [name, { types: path.replace(/\.ts$/, '.d.ts'), default: built(path) }]
  })
  const bins = Object.entries(manifest.bin).map(([name, path]): [string, string] => [name, built(path)])
  const published = {
    ...Object.fromEntries(kept),
    exports: Object.fromEntries(exported),
    bin: Object.fromEntries(bins),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(published, undefined, 2)}\n`)
}

/** The demo's data lies in a development dependency, which an installed package does not have. */
function copyDemoData(folder: string): void {
  const dataset = join(dirname(createRequire(import.meta.url).resolve('vega-datasets')), '..', 'data')
  const target = join(folder, 'examples', 'flights', 'data')
  mkdirSync(target, { recursive: true })
  for (const file of demoData) cpSync(join(dataset, file), join(target, file))
}

function filesBelow(folder: string, ending: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.name.endsWith(ending)).map((entry) => join(entry.parentPath, entry.name))
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? join(root, 'dist'))
  buildPackage(folder)
  process.stdout.write(`Built ${folder}\n`)
}
