/** `millrace dev`: runs, sees changes, keeps what was there. */
import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { spawn } from '@lydell/node-pty'
import { lockFolder } from '../../src/broker/embedded/folder-lock.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-dev-'))
const root = join(import.meta.dirname, '..', '..')

const rate = (factor: string): string => `export const factor = ${factor}\n`
const app = `
import { defineApp, serdes } from 'millrace'
import { factor } from './lib/factor.ts'

export default defineApp({
  applicationId: 'dev-totals',
  build(topology) {
    topology
      .stream('amounts', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .reduce((total, amount) => total + factor * amount, { store: 'totals' })
      .toStream()
      .to('totals', { value: serdes.json<number>() })
  },
})
`

function record(value: number): string {
  return `${JSON.stringify({ key: 'k', value, timestamp: 1 })}\n`
}

describe('millrace dev', () => {
  after(() => rmSync(folder, { recursive: true, force: true }))

  test('starts anew when a file changes, with topics and stores as they were', async () => {
    mkdirSync(join(folder, 'lib'))
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules', 'millrace'))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    writeFileSync(join(folder, 'app.ts'), app)
    writeFileSync(join(folder, 'lib', 'factor.ts'), rate('1'))
    writeFileSync(join(folder, 'amounts.ndjson'), record(5) + record(2))
    const args = ['dev', 'app.ts', '--feed', 'amounts=amounts.ndjson', '--print', 'totals']
    const set = ['runtime.http.enabled=false', 'engine.lanes.count=1', 'commit-barrier.interval-ms=20']
    const dev = startMillrace([...args, ...set.flatMap((setting) => ['--set', setting])], {
      cwd: folder,
      timeoutMs: 400_000,
    })
    const printed = (value: number) => () => {
      assert.equal(dev.child.exitCode, null, dev.stderr())
      return dev.stdout().includes(`"value":${value},`)
    }
    try {
      await eventually('the sum of the feed', printed(7), 120_000)

      // A mistake ends the process; the next change begins another.
      writeFileSync(join(folder, 'lib', 'factor.ts'), rate('nothing'))
      const isToldToHaveEnded = (): boolean => /ended with exit code \d+; it starts again/.test(dev.stderr())
      await eventually('it is told to have ended', isToldToHaveEnded, 120_000)
      appendFileSync(join(folder, 'amounts.ndjson'), record(3))
      writeFileSync(join(folder, 'lib', 'factor.ts'), rate('10'))
      await eventually('the sum goes on with the new function', printed(37), 120_000)
    } finally {
      dev.child.kill('SIGTERM')
    }
    const { code, stderr } = await dev.result
    assert.equal(code, 0, stderr)
    assert.match(stderr, /lib\/factor\.ts has changed, starting anew/)
  })

  test('says where the console is', async () => {
    const set = ['runtime.http.host=127.0.0.1', 'runtime.http.port=0', 'engine.lanes.count=1']
    const dev = startMillrace(['dev', 'app.ts', '--fresh', ...set.flatMap((setting) => ['--set', setting])], {
      cwd: folder,
      timeoutMs: 400_000,
    })
    const told = (): string | undefined => /the console is at (http:\S+\/console\/)/.exec(dev.stderr())?.[1]
    try {
      await eventually('the address is told', () => told() !== undefined, 120_000)
      assert.equal((await fetch(told() as string)).status, 200)
    } finally {
      dev.child.kill('SIGTERM')
    }
    assert.equal((await dev.result).code, 0)
  })

  const skip = process.platform !== 'linux' && 'another command opens a browser on this platform'
  for (const more of [[], ['--no-open']]) {
    test(`at a terminal ${more.length === 0 ? 'opens the console once' : 'leaves that where asked to'}`, {
      skip,
    }, async () => {
      const bin = mkdtempSync(join(folder, 'bin-'))
      const opened = join(bin, 'opened')
      writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\necho "$1" >> ${opened}\n`, { mode: 0o755 })
      const { NODE_TEST_CONTEXT: _, CI: __, ...rest } = process.env
      const env = { ...rest, PATH: `${bin}:${rest.PATH}`, DISPLAY: ':0' }
      const set = ['runtime.http.host=127.0.0.1', 'runtime.http.port=0', 'engine.lanes.count=1']
      const args = ['dev', 'app.ts', '--fresh', ...more, ...set.flatMap((setting) => ['--set', setting])]
      const dev = spawn(process.execPath, [join(root, 'src', 'cli', 'main.ts'), ...args], {
        cwd: folder,
        cols: 200,
        env,
      })
      const ended = new Promise((resolve) => dev.onExit(resolve))
      let screen = ''
      dev.onData((text) => {
        screen += text
      })
      const told = (): RegExpMatchArray[] => [...screen.matchAll(/the console is at (http:\S+\/console\/)/g)]
      try {
        await eventually('the address is told', () => told().length === 1, 120_000)
        if (more.length === 0) await eventually('it is opened', () => existsSync(opened), 120_000)
        writeFileSync(join(folder, 'lib', 'factor.ts'), rate('2'))
        await eventually('it has started anew', () => told().length === 2, 120_000)
      } finally {
        dev.kill('SIGTERM')
      }
      await ended
      const seen = existsSync(opened) ? readFileSync(opened, 'utf8').trim().split('\n') : []
      assert.deepEqual(seen, more.length === 0 ? [told()[0]?.[1]] : [])
    })
  }

  test('--fresh takes away what it keeps, and nothing else of the folder, nor what another process is at', async () => {
    const data = join(folder, 'kept')
    for (const name of ['broker', 'state']) mkdirSync(join(data, name), { recursive: true })
    writeFileSync(join(data, 'broker', 'journal'), '')
    writeFileSync(join(data, 'notes.txt'), 'mine')
    const args = ['dev', 'app.ts', '--data', 'kept', '--fresh', '--set', 'runtime.http.enabled=false']
    const unlock = lockFolder(join(data, 'broker'))
    const refused = await millrace(args, { cwd: folder })
    unlock()
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /^millrace: The embedded broker's folder .* is in use by the process \d+/)
    assert.ok(existsSync(join(data, 'broker', 'journal')))
    const dev = startMillrace(args, { cwd: folder, timeoutMs: 400_000 })
    try {
      await eventually('it runs', () => dev.stderr().includes('RUNNING'), 120_000)
    } finally {
      dev.child.kill('SIGTERM')
    }
    await dev.result
    assert.equal(readFileSync(join(data, 'notes.txt'), 'utf8'), 'mine')
  })

  test('an application that is not there is a slip', async () => {
    const { code, stderr } = await millrace(['dev', 'nowhere.ts'], { cwd: folder })
    assert.equal(code, 2)
    assert.match(stderr, /The application 'nowhere\.ts' does not exist\./)
  })
})
