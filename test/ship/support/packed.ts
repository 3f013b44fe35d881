/** The package as `npm pack` makes it of a checkout, and projects that have it installed. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publishedManifest } from '../../../scripts/pack.ts'

export const root = join(import.meta.dirname, '..', '..', '..')

/** What `npm pack` needs of a checkout. */
const parts = ['src', 'docs', 'scripts', 'examples', 'packages', 'deploy', 'console']
const files = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'README.md', 'LICENSE', 'CHANGELOG.md']

export interface PackedFile {
  readonly path: string
  readonly size: number
}

export interface Packed {
  /** A folder for the test's own use; `close` removes it. */
  readonly folder: string
  /** The copy of the checkout that was packed. */
  readonly checkout: string
  readonly tarball: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly PackedFile[]
  close(): void
}

/** Runs a command to its end, and gives what it printed. What it wrote to standard error is in the error's message. */
export function run(command: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return execFileSync(command, args, { cwd, encoding: 'utf8', env: { ...env, ...more }, maxBuffer: 64 * 1024 * 1024 })
}

/** A copy of the checkout is packed: while npm packs, its manifest is another one, and other tests read that. */
export function packCheckout(): Packed {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
  const checkout = join(folder, 'checkout')
  mkdirSync(checkout)
  for (const part of [...parts, ...files]) cpSync(join(root, part), join(checkout, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
  leaveDeadPack(checkout)
  const packed = pack(checkout, folder)
  return { ...packed, folder, checkout, close: () => rmSync(folder, { recursive: true, force: true }) }
}

/** Runs `npm pack` in one folder, and leaves the tarball in the other. */
export function pack(from: string, to: string): Pick<Packed, 'tarball' | 'size' | 'unpackedSize' | 'files'> {
  const answer = run('npm', ['pack', '--json', '--pack-destination', to], from)
  const [packed] = JSON.parse(answer) as Array<Packed & { readonly filename: string }>
  assert.ok(packed)
  const { size, unpackedSize, files } = packed
  return { tarball: join(to, packed.filename), size, unpackedSize, files }
}

/** What a pack leaves that ended between `prepare` and `restore`: the one after it has to begin from there. */
function leaveDeadPack(checkout: string): void {
  const source = readFileSync(join(checkout, 'package.json'), 'utf8')
  mkdirSync(join(checkout, '.cache'))
  writeFileSync(join(checkout, '.cache', 'package.json'), source)
  writeFileSync(join(checkout, 'package.json'), JSON.stringify(publishedManifest(JSON.parse(source))))
}

/** Unpacks the package below the project's `node_modules`, where Node.js runs no TypeScript. Gives its folder. */
export function install(packed: Packed, project: string): string {
  const installed = join(project, 'node_modules', 'millrace')
  mkdirSync(installed, { recursive: true })
  run('tar', ['-xzf', packed.tarball, '-C', installed, '--strip-components=1'], packed.folder)
  // Dependencies come from the repository's own folder: no network is asked.
  const modules = join(root, 'node_modules')
  for (const name of readdirSync(modules)) {
    if (!name.startsWith('.') && name !== 'millrace')
      symlinkSync(join(modules, name), join(project, 'node_modules', name))
  }
  return installed
}
