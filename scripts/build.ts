/**
 * Compiles the sources into `dist/`: `node scripts/build.ts [folder]`. `npm pack` does it by itself (`scripts/pack.ts`).
 * The layout is that of the repository, with JavaScript, type declarations, and maps that lead back to the sources.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const root = join(import.meta.dirname, '..')
const demoData = ['flights-20k.json', 'airports.csv']
/** What a declaration file imports of its neighbours, types in place included. */
const neighbours = /(?:\bfrom|\bimport|\bimport\()\s*['"](\.{1,2}\/[^'"]+)['"]/g

/** Builds into the folder, which is emptied first. */
export function buildPackage(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  compile(folder)
  dropUnseenDeclarations(folder)
  execFileSync(process.execPath, [join(root, 'scripts', 'console.ts')], { stdio: 'inherit', cwd: root })
  for (const file of filesBelow(folder, '.js')) rewriteWorkerPaths(file)
  copyDemoData(folder)
  cpSync(join(root, 'console', 'dist'), join(folder, 'console', 'dist'), { recursive: true })
  chmodSync(join(folder, 'src', 'cli', 'main.js'), 0o755)
}

function compile(folder: string): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const args = [compiler, '-p', join(root, 'tsconfig.build.json'), '--outDir', folder]
  // Editors show the comments of declarations. Those of the code stand in the sources, to which the maps lead.
  for (const what of [
    ['--emitDeclarationOnly'],
    ['--declaration', 'false', '--declarationMap', 'false', '--removeComments'],
  ])
    execFileSync(process.execPath, [...args, ...what], { stdio: 'inherit', cwd: root })
}

/** An application sees the declarations that entries lead to. The others, six of seven, would be downloaded for nobody. */
function dropUnseenDeclarations(folder: string): void {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: Record<string, string> }
  const entries = Object.values(manifest.exports).filter((path) => path.endsWith('.ts'))
  // A set grows while it is walked.
  const seen = new Set(entries.map((path) => join(folder, path.replace(/\.ts$/, '.d.ts'))))
  for (const file of seen) {
    const imports = readFileSync(file, 'utf8').matchAll(neighbours)
    for (const [, path = ''] of imports) seen.add(join(dirname(file), path.replace(/\.[jt]s$/, '.d.ts')))
  }
  for (const file of filesBelow(folder, '.d.ts')) {
    if (seen.has(file)) continue
    rmSync(file)
    rmSync(`${file}.map`, { force: true })
  }
}

/** The compiler rewrites the endings of imports; addresses of worker modules are plain strings to it. */
function rewriteWorkerPaths(file: string): void {
  const text = readFileSync(file, 'utf8')
  const rewritten = text.replace(/new URL\((['"])(\.{1,2}\/[^'"]+)\.ts\1/g, 'new URL($1$2.js$1')
  const left = /(?:from|import\(|new URL\()\s*['"]\.{1,2}\/[^'"]+\.ts['"]/.exec(rewritten)
  if (left) throw new Error(`${file} still names a TypeScript module: ${left[0]}`)
  if (rewritten !== text) writeFileSync(file, rewritten)
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
  const folder = join(root, process.argv[2] ?? 'dist')
  buildPackage(folder)
  process.stdout.write(`Built ${folder}\n`)
}
