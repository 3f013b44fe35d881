/** The package as it is published: built, packed, unpacked elsewhere, and used. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { buildPackage } from '../../scripts/build.ts'

const root = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'millrace-package-'))
const built = join(folder, 'built')
const project = join(folder, 'project')
const installed = join(project, 'node_modules', 'millrace')

interface PackedFile {
  readonly path: string
}

function run(command: string, args: readonly string[], cwd: string): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return execFileSync(command, args, { cwd, encoding: 'utf8', env, maxBuffer: 64 * 1024 * 1024 })
}

/** Dependencies come from the repository's own folder: the test asks nothing of a network. */
function linkDependencies(): void {
  const modules = join(root, 'node_modules')
  for (const name of readdirSync(modules)) {
    if (!name.startsWith('.') && name !== 'millrace')
      symlinkSync(join(modules, name), join(project, 'node_modules', name))
  }
}

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

describe('the published package', () => {
  let files: readonly string[] = []

  before(() => {
    buildPackage(built)
    const [packed] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], built)) as Array<{
      readonly filename: string
      readonly files: readonly PackedFile[]
    }>
    assert.ok(packed)
    files = packed.files.map((file) => file.path)
    mkdirSync(installed, { recursive: true })
    run('tar', ['-xzf', join(folder, packed.filename), '-C', installed, '--strip-components=1'], folder)
    linkDependencies()
    writeFileSync(join(project, 'package.json'), '{ "name": "project", "type": "module" }')
    writeFileSync(join(project, 'app.ts'), app)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('holds what its manifest promises, and no source or test', () => {
    const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as {
      readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
      readonly bin: { readonly millrace: string }
    }
    const promised = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [target] : [target.types, target.default],
    )
    for (const path of [...promised, manifest.bin.millrace, './README.md', './LICENSE', './docs/config.md']) {
      assert.ok(files.includes(path.replace('./', '')), `${path} is missing`)
    }
    assert.deepEqual(
      files.filter((path) => /\.test\.|^test\/|(?<!\.d)\.ts$/.test(path)),
      [],
    )
  })

  test('gives its types to an application', () => {
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--skipLibCheck', '--types']
    run(join(root, 'node_modules', '.bin', 'tsc'), [...options, 'node', 'app.ts'], project)
  })

  test('runs an application', () => {
    const orders = [
      { key: null, value: { customer: 'ann', amount: 3 }, timestamp: 1 },
      { key: null, value: { customer: 'ann', amount: 4 }, timestamp: 2 },
    ]
    writeFileSync(join(project, 'orders.ndjson'), orders.map((order) => `${JSON.stringify(order)}\n`).join(''))
    const main = join(installed, 'src', 'cli', 'main.js')
    const feed = ['--feed', 'orders=orders.ndjson', '--print', 'totals', '--until-idle']
    const set = ['--set', 'runtime.http.enabled=false', '--set', 'broker.embedded.partitions=1']
    const output = run(process.execPath, [main, 'run', 'app.ts', ...feed, ...set], project)
    const last = JSON.parse(output.trim().split('\n').at(-1) ?? '') as { readonly key: string; readonly value: number }
    assert.deepEqual([last.key, last.value], ['ann', 7])
  })

  test('carries the data of its demo', () => {
    assert.ok(files.includes('examples/flights/app.js'))
    assert.ok(files.includes('examples/flights/data/flights-20k.json'))
  })
})
