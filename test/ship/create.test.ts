/** `npm create millrace`, with packed tarballs in place of the registry: each template is made, tested, checked and run. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { install, pack, type Packed, packCheckout, root, run } from './support/packed.ts'
import { freePort } from '../../scripts/free-ports.ts'

/** What `npm run dev` shows sooner or later, by template. */
const results: Readonly<Record<string, RegExp>> = {
  avro: /"key":"ann","value":\{"payments":2,"cents":1034\}/,
  stream: /"key":"ann","value":42/,
  windows: /"key":\{"key":"SFO","start":0,"end":3600000\},"value":2/,
  'hot-standby': /"key":"kitchen","value":\{"readings":2,"sum":44\}/,
}
/** The first one is installed; the others use what it has, because an installation takes long. */
const [installed = '', ...others] = Object.keys(results)

describe('create-millrace', () => {
  let packed: Packed
  let home = ''

  const create = (...args: string[]): string =>
    run(process.execPath, [join(home, 'node_modules', 'create-millrace', 'create.js'), ...args], home)

  before(() => {
    packed = packCheckout()
    const own = pack(join(packed.checkout, 'packages', 'create-millrace'), packed.folder)
    assert.ok(own.files.some(({ path }) => path === 'deploy/kubernetes/base/statefulset.yaml'))
    home = join(packed.folder, 'empty')
    const folder = join(home, 'node_modules', 'create-millrace')
    mkdirSync(folder, { recursive: true })
    run('tar', ['-xzf', own.tarball, '-C', folder, '--strip-components=1'], packed.folder)
    const from = ['--millrace', `file:${packed.tarball}`]
    try {
      create(installed, '--yes', '--template', installed, ...from)
    } catch (error) {
      // The tarball is the package's own; only what it depends on is the registry's business, and that may be away.
      if (!/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E50\d/.test(String(error)))
        throw error
      rmSync(join(home, installed, 'node_modules'), { recursive: true, force: true })
      install(packed, join(home, installed))
    }
    for (const template of others) {
      create(template, '--yes', '--template', template, '--no-install', ...from)
      symlinkSync(join(home, installed, 'node_modules'), join(home, template, 'node_modules'))
    }
  })
  after(() => packed.close())

  test('says what is wrong with a call', () => {
    assert.throws(() => create('x', '--template', 'nothing', '--yes'), /name one of stream, windows, avro, hot-standby/)
    assert.throws(() => create(installed, '--yes'), /is not empty/)
    assert.throws(() => create('x', '--yas'), /yas/)
  })

  test('every template has a row here', () => {
    const templates = join(home, 'node_modules', 'create-millrace', 'templates')
    assert.deepEqual(readdirSync(templates).sort(), [...Object.keys(results), 'base'].sort())
  })

  for (const [template, result] of Object.entries(results)) {
    test(`${template}: carries the name of the project and nothing of the templates`, () => {
      const folder = join(home, template)
      const { name, scripts } = manifestOf(folder)
      assert.equal(name, template)
      assert.match(scripts.dev ?? '', /^millrace dev src\/app\.ts/)
      assert.match(readFileSync(join(folder, 'src', 'app.ts'), 'utf8'), new RegExp(`applicationId: '${template}'`))
      for (const file of ['.gitignore', '.dockerignore', 'Dockerfile', 'compose.yaml', 'topics.env', 'engine.yaml']) {
        assert.ok(existsSync(join(folder, file)), file)
      }
      // The guide says that it does: without it a start with long changelogs is killed where with it there is memory enough.
      assert.match(readFileSync(join(folder, 'Dockerfile'), 'utf8'), /^ENV MALLOC_MMAP_THRESHOLD_=\d+$/m)
      assert.ok(!existsSync(join(folder, 'package.add.json')))
    })

    test(`${template}: its tests and its types are right`, () => {
      const folder = join(home, template)
      run('npm', ['test'], folder)
      run('npm', ['run', 'typecheck'], folder)
    })

    test(`${template}: npm run dev shows results and answers over HTTP`, async () => {
      const port = await freePort()
      const set = [`runtime.http.port=${port}`, 'runtime.http.host=127.0.0.1']
      const args = ['run', 'dev', '--', ...set.flatMap((setting) => ['--set', setting])]
      const dev = spawn('npm', args, { cwd: join(home, template), detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      for (const stream of [dev.stdout, dev.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (output += text))
      try {
        await eventually(
          'a result',
          () => {
            assert.equal(dev.exitCode, null, output)
            return result.test(output)
          },
          180_000,
        )
        const info = (await (await fetch(`http://127.0.0.1:${port}/info`)).json()) as object
        assert.ok(JSON.stringify(info).includes(`"${template}"`))
      } finally {
        await ended(dev)
      }
    })
  }
})

describe('create-millrace, of a folder somewhere else', () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-create-')))
  after(() => rmSync(home, { recursive: true, force: true }))

  const own = join(import.meta.dirname, '..', '..', 'packages', 'create-millrace', 'create.js')
  /** The line that leads there, of what the command says in the end. */
  const wayTo = (folder: string, from = home): string | undefined => {
    mkdirSync(from, { recursive: true })
    return /^ {2}cd (.*)$/m.exec(run(process.execPath, [own, folder, '--yes', '--no-install'], from))?.[1]
  }

  test('says how to get there from where it was called', () => {
    assert.equal(wayTo('plain'), 'plain')
    assert.equal(wayTo('a/b/c'), join('a', 'b', 'c'))
    assert.equal(wayTo('my stream'), '"my stream"')
    assert.equal(wayTo('../beside', join(home, 'elsewhere')), join(home, 'beside'))
    assert.equal(wayTo('.', join(home, 'here')), undefined)
  })

  test('takes the name of the project from the folder, without accents and what npm, Kubernetes or Kafka refuse', () => {
    const names = {
      'Ünï my app': 'uni-my-app',
      // A file system may keep accents as letters of their own.
      'Cafe\u0301 Orders': 'cafe-orders',
      '2 fast': 'fast',
      日本: 'my-stream',
      [`${'a'.repeat(49)} b`]: 'a'.repeat(49),
    }
    for (const [folder, name] of Object.entries(names)) {
      wayTo(folder)
      assert.equal(manifestOf(join(home, folder)).name, name)
    }
  })

  test('decides about every install script that comes with millrace, so that npm asks nobody', () => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly hasInstallScript?: boolean }>>
    }
    const withScript = Object.entries(lock.packages).filter(([, { dev, hasInstallScript }]) => hasInstallScript && !dev)
    wayTo('decided')
    const { allowScripts } = manifestOf(join(home, 'decided'))
    const names = withScript.map(([path]) => path.replace(/^.*node_modules\//, ''))
    assert.deepEqual(allowScripts, Object.fromEntries(names.map((name) => [name, false])))
  })
})

interface Manifest {
  readonly name: string
  readonly scripts: Readonly<Record<string, string>>
  readonly allowScripts: Readonly<Record<string, boolean>>
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

/** npm, the watching process and the application: they form a group. */
async function ended(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close')
  process.kill(-(child.pid as number), 'SIGTERM')
  await closed
}
