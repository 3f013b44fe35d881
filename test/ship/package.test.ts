/** The package as it is published: packed by `npm pack` in a checkout, unpacked elsewhere, and used. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { build } from 'esbuild'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { install, pack, type Packed, packCheckout, root, run } from './support/packed.ts'

/**
 * What may be downloaded and unpacked. Raise them with a reason: everybody who installs the package pays for it. Last raised, the
 * former by a hundredth: misspelled options are refused by name, a configuration has types, and what topics take is found out.
 */
const mostPackedBytes = 3_030_000
const mostUnpackedBytes = 13_100_000

const app = `
import { defineApp, serdes } from 'millrace'

interface Order { readonly customer: string; readonly amount: number }

export default defineApp({
  applicationId: 'totals',
  build(topology) {
    topology
      .stream('orders', { key: serdes.string, value: serdes.json<Order>() })
      .groupBy((order) => order.customer)
      .aggregate(() => 0, (total, order) => total + order.amount, { store: 'totals' })
      .toStream()
      .to('totals')
  },
})
`

const embedding = `
import { startRuntime, type Runtime } from 'millrace/runtime'
import { TopologyTestDriver } from 'millrace/testing'
import { EmbeddedRegistry } from 'millrace/registry'

export async function main(): Promise<number> {
  const runtime: Runtime = await startRuntime({ application: new URL('./app.ts', import.meta.url) })
  await runtime.untilIdle()
  return runtime.stop()
}
export const kit = [TopologyTestDriver, EmbeddedRegistry]
`

const plainApp = `
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'totals',
  build(topology) {
    topology
      .stream('orders', { key: serdes.string, value: serdes.json() })
      .groupBy((order) => order.customer)
      .aggregate(() => 0, (total, order) => total + order.amount, { store: 'totals' })
      .toStream()
      .to('totals')
  },
})
`

describe('the published package', () => {
  let packed: Packed
  let project = ''
  let installed = ''

  before(() => {
    packed = packCheckout()
    project = join(packed.folder, 'project')
    installed = install(packed, project)
    writeFileSync(join(project, 'package.json'), '{ "name": "project", "type": "module" }')
    writeFileSync(join(project, 'app.ts'), app)
    writeFileSync(join(project, 'main.ts'), embedding)
    const orders = [
      { key: null, value: { customer: 'ann', amount: 3 }, timestamp: 1 },
      { key: null, value: { customer: 'ann', amount: 4 }, timestamp: 2 },
    ]
    writeFileSync(join(project, 'orders.ndjson'), orders.map((order) => `${JSON.stringify(order)}\n`).join(''))
  })
  after(() => packed.close())

  const total = (appFile: string): unknown => {
    const main = join(installed, 'dist', 'src', 'cli', 'main.js')
    const feed = ['--feed', 'orders=orders.ndjson', '--print', 'totals', '--until-idle']
    const set = ['runtime.http.enabled=false', 'broker.embedded.partitions=1', 'engine.lanes.count=2']
    const sets = set.flatMap((setting) => ['--set', setting])
    const output = run(process.execPath, [main, 'run', appFile, ...feed, ...sets], project)
    return (JSON.parse(output.trim().split('\n').at(-1) ?? '') as { readonly value: unknown }).value
  }

  const check = (...options: string[]): void => {
    const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const common = ['--noEmit', '--strict', '--target', 'es2024', '--types', 'node', '--exactOptionalPropertyTypes']
    run(process.execPath, [compiler, ...common, ...options, 'app.ts', 'main.ts'], project)
  }

  test('a pack that died is mended by the next one, which leaves the manifest of the checkout as it was', () => {
    assert.equal(
      readFileSync(join(packed.checkout, 'package.json'), 'utf8'),
      readFileSync(join(root, 'package.json'), 'utf8'),
    )
    assert.ok(!existsSync(join(packed.checkout, '.cache', 'package.json')))
  })

  test('the folder of sources is not published by accident', () => {
    assert.throws(
      () => run(process.execPath, ['scripts/pack.ts', 'guard'], packed.checkout),
      /npm publish \.\/millrace/,
    )
  })

  test('holds what its manifest promises, and nothing else', () => {
    const paths = packed.files.map((file) => file.path)
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
      readonly bin: { readonly millrace: string }
    }
    const promised = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [target] : [target.types, target.default],
    )
    for (const path of [...promised, manifest.bin.millrace, './README.md', './LICENSE', './docs/config.md']) {
      assert.ok(paths.includes(path.replace('./', '')), `${path} is missing`)
    }
    const places =
      /^(dist\/(src|console\/dist|examples\/flights)|src|docs|examples\/flights)\/|^(README|CHANGELOG)\.md$|^LICENSE$|^package\.json$/
    assert.deepEqual(
      paths.filter((path) => !places.test(path) || /\.test\.|docs\/decisions/.test(path)),
      [],
    )
  })

  test('npm would publish it, and what makes projects of it, without a word against the manifests', () => {
    const create = pack(join(packed.checkout, 'packages', 'create-millrace'), packed.folder)
    for (const [name, tarball, files] of [
      ['millrace', packed.tarball, packed.files.length],
      ['create-millrace', create.tarball, create.files.length],
    ] as const) {
      // Nobody answers there: a dry run has to do without the registry.
      const nowhere = ['--registry', 'http://127.0.0.1:9/', '--fetch-retries', '0']
      const args = ['publish', tarball, '--dry-run', '--json', '--access', 'public', ...nowhere]
      const { status, stdout, stderr } = spawnSync('npm', args, { cwd: packed.folder, encoding: 'utf8' })
      assert.equal(status, 0, stderr)
      const told = JSON.parse(stdout) as Readonly<
        Record<string, { readonly name: string; readonly entryCount: number }>
      >
      const one = told[name] ?? (told as unknown as { readonly name: string; readonly entryCount: number })
      assert.deepEqual([one.name, one.entryCount], [name, files])
      assert.doesNotMatch(stderr, /auto-corrected|errors in your package\.json/)
    }
  })

  test('is not larger than it was', () => {
    assert.ok(packed.size < mostPackedBytes, `the tarball has ${packed.size} bytes`)
    assert.ok(packed.unpackedSize < mostUnpackedBytes, `unpacked it has ${packed.unpackedSize} bytes`)
  })

  test('has maps whose sources are in it', () => {
    const paths = new Set(packed.files.map((file) => file.path))
    const maps = packed.files.filter((file) => file.path.endsWith('.map'))
    const mapped = maps.flatMap(({ path }) => {
      const { sources } = JSON.parse(readFileSync(join(installed, path), 'utf8')) as { readonly sources: string[] }
      return sources.map((source) => join(path, '..', source).replaceAll('\\', '/'))
    })
    assert.deepEqual(
      mapped.filter((source) => !paths.has(source)),
      [],
    )
    const code = new Set(mapped)
    assert.ok(code.size > 400, `${code.size} sources`)
  })

  test('satisfies publint', async () => {
    const { messages } = await publint({ pkgDir: installed, level: 'warning', strict: true, pack: false })
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as Record<string, unknown>
    assert.deepEqual(
      messages.map((message) => formatMessage(message, manifest)),
      [],
    )
  })

  test('gives every way of resolving a module the types of what it runs', async () => {
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(packed.tarball))))
    assert.ok(analysis.types !== false)
    // Resolution before `exports` finds no subpath, and CommonJS gets a module: Node.js 24 requires those.
    const known = new Set(['NoResolution', 'CJSResolvesToESM'])
    const problems = analysis.problems.filter(
      (problem) => !known.has(problem.kind) || ('resolutionKind' in problem && problem.resolutionKind === 'bundler'),
    )
    assert.deepEqual(problems, [])
  })

  test('gives its types to an application under nodenext, declarations checked too', () => {
    check('--module', 'nodenext', '--allowImportingTsExtensions')
  })

  test('gives its types to an application under bundler', () => {
    check('--module', 'esnext', '--moduleResolution', 'bundler')
  })

  test('runs an application in TypeScript, on lanes of its own', () => assert.equal(total('app.ts'), 7))

  test('runs an application in plain JavaScript', () => {
    writeFileSync(join(project, 'plain.mjs'), plainApp)
    assert.equal(total('plain.mjs'), 7)
  })

  test('runs an application that esbuild has bundled', async () => {
    const bundled = join(project, 'bundled.mjs')
    const shared = { bundle: true, format: 'esm', platform: 'node', packages: 'external' } as const
    await build({ ...shared, entryPoints: [join(project, 'app.ts')], outfile: bundled, logLevel: 'silent' })
    assert.equal(total('bundled.mjs'), 7)
  })

  test('is required by CommonJS, too', () => {
    mkdirSync(join(project, 'old'))
    writeFileSync(join(project, 'old', 'package.json'), '{ "type": "commonjs" }')
    const names = ['millrace', 'millrace/runtime', 'millrace/testing', 'millrace/registry']
    const text = `console.log(JSON.stringify(${JSON.stringify(names)}.map((name) => typeof require(name))))`
    writeFileSync(join(project, 'old', 'main.js'), text)
    const output = run(process.execPath, ['old/main.js'], project)
    assert.deepEqual(JSON.parse(output), ['object', 'object', 'object', 'object'])
  })

  test('says its version', () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string }
    const main = join(installed, 'dist', 'src', 'cli', 'main.js')
    assert.equal(run(process.execPath, [main, '--version'], project).trim(), version)
  })

  test('carries the data of its demo', () => {
    const paths = packed.files.map((file) => file.path)
    assert.ok(paths.includes('dist/examples/flights/app.js'))
    assert.ok(paths.includes('dist/examples/flights/data/flights-20k.json'))
  })
})
