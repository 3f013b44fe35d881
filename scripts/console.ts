/**
 * Builds the console into `console/dist`: `node scripts/console.ts`; with `--watch` anew whenever a file changes. `npm ci`
 * does it too. Where esbuild is not installed, as after `npm ci --omit=dev`, there is no console, and this says so.
 */
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import type { BuildOptions } from 'esbuild'

const root = join(import.meta.dirname, '..')
export const consoleSources = join(root, 'console')
const ours = ['index.html', 'icon.svg']
/** What is part of the page, with the license of each. */
const libraries = ['preact', 'uplot', '@dagrejs/dagre', '@dagrejs/graphlib']

function optionsFor(folder: string): BuildOptions {
  return {
    absWorkingDir: root,
    entryPoints: { app: join(consoleSources, 'main.tsx') },
    inject: [join(consoleSources, 'language.ts')],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning',
    outdir: folder,
  }
}

export const consoleFolder = join(consoleSources, 'dist')

/** Builds where something has changed since: tests must not look at what was built before. */
export async function refreshConsole(): Promise<void> {
  const entry = join(consoleFolder, 'index.html')
  const builtMs = existsSync(entry) ? statSync(entry).mtimeMs : 0
  const files = readdirSync(consoleSources, { recursive: true, withFileTypes: true })
  const isStale = files
    .filter((file) => file.isFile() && !file.parentPath.startsWith(consoleFolder))
    .some((file) => statSync(join(file.parentPath, file.name)).mtimeMs > builtMs)
  if (!isStale) return
  const part = `${consoleFolder}-${process.pid}`
  await buildConsole(part)
  rmSync(consoleFolder, { recursive: true, force: true })
  try {
    renameSync(part, consoleFolder)
  } catch (error) {
    // Another test has built it at the same time.
    rmSync(part, { recursive: true })
    if (!existsSync(entry)) throw error
  }
}

/** Changes with what people see: pages and style. */
export function consoleDigest(): string {
  const files = readdirSync(consoleSources, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile() && /\.(tsx|css)$/.test(file.name) && !file.parentPath.startsWith(consoleFolder))
    .map((file) => join(file.parentPath, file.name))
    .sort()
  const hash = createHash('sha256')
  for (const file of files)
    hash.update(relative(consoleSources, file)).update(readFileSync(file, 'utf8').replaceAll('\r\n', '\n'))
  return hash.digest('hex').slice(0, 16)
}

/** Builds into the folder. Resolves with the bytes that a browser fetches, compressed. */
export async function buildConsole(folder: string): Promise<number> {
  const { build } = await import('esbuild')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const options = optionsFor(folder)
  await build({
    ...options,
    entryPoints: { ...(options.entryPoints as object), style: join(consoleSources, 'style.css') },
  })
  finish(folder)
  const files = ['app.js', 'app.css', ...ours].map((file) => readFileSync(join(folder, file)))
  return files.reduce((all, bytes) => all + brotliCompressSync(bytes).length, 0)
}

function finish(folder: string): void {
  for (const file of ours) cpSync(join(consoleSources, file), join(folder, file))
  cpSync(join(folder, 'style.css'), join(folder, 'app.css'))
  rmSync(join(folder, 'style.css'))
  const notices = libraries.map((name) => {
    const at = join(root, 'node_modules', name)
    const { version } = JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')) as { version: string }
    return `${name} ${version}\n\n${readFileSync(join(at, 'LICENSE'), 'utf8').trim()}\n`
  })
  writeFileSync(join(folder, 'licenses.txt'), notices.join(`\n${'-'.repeat(80)}\n\n`))
}

async function watch(folder: string): Promise<void> {
  const { context } = await import('esbuild')
  await buildConsole(folder)
  await (await context(optionsFor(folder))).watch()
}

if (import.meta.main) {
  const folder = consoleFolder
  try {
    if (process.argv.includes('--watch')) await watch(folder)
    else process.stderr.write(`Built ${folder}: ${Math.ceil((await buildConsole(folder)) / 1024)} KiB compressed\n`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    process.stderr.write(
      'esbuild is not installed: there will be no console. `npm ci` with development dependencies builds it.\n',
    )
  }
}
