/**
 * Compiles the sources into `dist/`: `node scripts/build.ts [folder]`. `npm pack` does it by itself (`scripts/pack.ts`).
 * Declarations and entries stand where their sources do; what the entries lead to is bundled. Maps lead back to the sources.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { bundleDemo, bundleSources } from './bundle.ts'

const root = join(import.meta.dirname, '..')
const demoData = ['flights-20k.json', 'airports.csv']
/** What a declaration file imports of its neighbours, types in place included. */
const neighbours = /(?:\bfrom|\bimport|\bimport\()\s*['"](\.{1,2}\/[^'"]+)['"]/g

/** Builds into the folder, which is emptied first. */
export async function buildPackage(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  declare(folder)
  dropUnseenDeclarations(folder)
  await bundleSources(folder)
  await bundleDemo(folder)
  execFileSync(process.execPath, [join(root, 'scripts', 'console.ts')], { stdio: 'inherit', cwd: root })
  copyDemoData(folder)
  cpSync(join(root, 'console', 'dist'), join(folder, 'console', 'dist'), { recursive: true })
  chmodSync(join(folder, 'src', 'cli', 'main.js'), 0o755)
}

/** The declarations, and whether everything is of its types. */
function declare(folder: string): void {
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const args = ['-p', join(root, 'tsconfig.build.json'), '--outDir', folder, '--emitDeclarationOnly']
  execFileSync(process.execPath, [compiler, ...args], { stdio: 'inherit', cwd: root })
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
  await buildPackage(folder)
  process.stdout.write(`Built ${folder}\n`)
}
