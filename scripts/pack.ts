/**
 * What `npm pack` does in a checkout, whose manifest names TypeScript sources that Node.js runs in place but refuses below
 * `node_modules`: `prepare` (as `prepack`) builds, and writes the manifest of the built package over the checkout's;
 * `restore` (as `postpack`) puts the checkout's back. A pack that died in between is mended by the next one, or by
 * `node scripts/pack.ts restore`. `guard` (as `prepublishOnly`) refuses to publish the folder (decision 48).
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage } from './build.ts'

const root = join(import.meta.dirname, '..')
const manifestFile = join(root, 'package.json')
const keptFile = join(root, '.cache', 'package.json')

interface Manifest {
  readonly exports: Readonly<Record<string, string>>
  readonly bin: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
  readonly devDependencies?: unknown
  readonly [name: string]: unknown
}

/** Fields of the repository's own work that the package has no use for. */
const ownFields = ['scripts', 'devDependencies', 'allowScripts']
/** These stay: without them the pack after one that died would not begin with `prepare`. npm runs none on installation. */
const keptScripts = ['prepack', 'postpack', 'prepublishOnly']

/** The manifest of the built package. */
export function publishedManifest(source: Manifest): Manifest {
  const kept = Object.entries(source).filter(([name]) => !ownFields.includes(name))
  const built = (path: string, ending: string): string => path.replace(/^\.\/(.*)\.ts$/, `./dist/$1${ending}`)
  const exported = Object.entries(source.exports).map(([name, path]): [string, unknown] => {
    if (!path.endsWith('.ts')) return [name, path]
    return [name, { types: built(path, '.d.ts'), default: built(path, '.js') }]
  })
  const bins = Object.entries(source.bin).map(([name, path]): [string, string] => [name, built(path, '.js').slice(2)])
  const scripts = Object.entries(source.scripts).filter(([name]) => keptScripts.includes(name))
  return {
    ...Object.fromEntries(kept),
    exports: Object.fromEntries(exported) as Manifest['exports'],
    bin: Object.fromEntries(bins),
    scripts: Object.fromEntries(scripts),
  }
}

async function prepare(): Promise<void> {
  restore()
  const source = readFileSync(manifestFile, 'utf8')
  await buildPackage(join(root, 'dist'))
  mkdirSync(join(root, '.cache'), { recursive: true })
  writeFileSync(keptFile, source)
  const published = publishedManifest(JSON.parse(source) as Manifest)
  writeFileSync(manifestFile, `${JSON.stringify(published, undefined, 2)}\n`)
}

function restore(): void {
  if (!existsSync(keptFile)) return
  const current = JSON.parse(readFileSync(manifestFile, 'utf8')) as Partial<Manifest>
  // Only what `prepare` has written is replaced: a manifest with development dependencies is the checkout's own.
  if (current.devDependencies === undefined) writeFileSync(manifestFile, readFileSync(keptFile))
  rmSync(keptFile)
}

/** npm tells the registry what stands in the folder's manifest, which after a pack is the checkout's again. */
function guard(): void {
  if (process.env.npm_config_dry_run === 'true') return
  const sentence = 'A folder of sources is not published: `npm pack`, then `npm publish ./millrace-<version>.tgz`.'
  process.stderr.write(`${sentence}\n`)
  process.exitCode = 1
}

if (import.meta.main) {
  const verbs: Readonly<Record<string, () => void | Promise<void>>> = { prepare, restore, guard }
  const verb = verbs[process.argv[2] ?? '']
  if (verb) await verb()
  else {
    process.stderr.write('Name what to do: prepare, restore or guard.\n')
    process.exitCode = 2
  }
}
