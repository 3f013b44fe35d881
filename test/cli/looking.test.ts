/** The verbs that ask a running application: in a pseudo-terminal of 80 columns, for scripts, and what each exit code means. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { spawn } from '@lydell/node-pty'
import { parse } from 'yaml'
import { startFake } from '../http/support/fake-subject.ts'
import { endLeftThreads, type Live, startLive } from '../http/support/live.ts'
import { repositoryRoot } from '../groups.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'

const main = join(repositoryRoot, 'src', 'cli', 'main.ts')
const t0 = 1_700_000_000_000

interface Terminal {
  readonly screen: () => string
  readonly ended: Promise<number>
  press(keys: string): void
}

/** The command as a person has it: on a terminal of 80 columns. */
function onTerminal(args: readonly string[]): Terminal {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const pty = spawn(process.execPath, [main, ...args], { cols: 80, rows: 40, env })
  let written = ''
  pty.onData((text) => {
    written += text
  })
  const { promise, resolve } = Promise.withResolvers<number>()
  pty.onExit(({ exitCode }) => resolve(exitCode))
  return { screen: () => written, ended: promise, press: (keys) => pty.write(keys) }
}

function plain(screen: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what moves the cursor
  return screen.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').split(/\r?\n/)
}

after(() => endLeftThreads())

describe('on a terminal', () => {
  let live: Live

  before(async () => {
    live = await startLive({
      app: 'data-app',
      config: {
        'runtime.endpoints.stores.enabled': true,
        'runtime.endpoints.dead-letters.enabled': true,
        'errors.processing': 'dead-letter',
      },
    })
    await live.untilState('RUNNING')
    const events = Array.from({ length: 40 }, (_, i) => {
      return { key: `key-${i}`, value: { amount: i % 9, fail: i % 20 === 0 }, timestamp: t0 + i * 500 }
    })
    await live.feed('events', events)
    await live.runtime.untilIdle()
  })
  after(() => live.stop())

  const shown: ReadonlyArray<readonly [args: string[], says: RegExp]> = [
    [['status'], /state +RUNNING/],
    [['topology'], /Sub-topology 0/],
    [['lag'], /events +0 +\d+ +\d+ +0[\s\S]*total lag 0/],
    [['watermarks'], /events:0 +2023-/],
    [['stores'], /counts +key-value +38 /],
    [['stores', 'counts', '--key', 'key-7'], /key-7 +1 +2023-/],
    [['stores', 'counts', '--limit', '3'], /More: --from '"key-\d+"'/],
    [['threads'], /lane-0 +(WAITING|RUNNABLE|BLOCKED)/],
    [['barriers'], /phase +[A-Z_]+ for/],
    [['config'], /engine\.lanes\.count +2 +application[\s\S]*ha\.mode +off +default/],
    [['license'], /status +NO_KEY/],
    [['dlq', 'list'], /TypeError[\s\S]*data-dead-letters: TypeError 2/],
    [['dlq', 'redrive', '--reason', 'TypeError'], /2 would be put back[\s\S]*0 cannot be\.\n[\s\S]*--yes/],
    [['why'], /FLOWING/],
  ]
  for (const [args, says] of shown) {
    test(`millrace ${args.join(' ')} fits into 80 columns`, async () => {
      const terminal = onTerminal([...args, '--url', live.url])
      const code = await terminal.ended
      assert.equal(code, 0, terminal.screen())
      // A terminal may still bring what a process that has ended wrote.
      await eventually(`it says ${says}`, () => says.test(plain(terminal.screen()).join('\n')))
      assert.deepEqual(
        plain(terminal.screen()).filter((line) => line.length > 80),
        [],
      )
    })
  }

  test('top shows lanes until q is pressed', async () => {
    const terminal = onTerminal(['top', '--url', live.url])
    await eventually('the screen is drawn', () => /LANE[\s\S]*lane-0[\s\S]*NODE/.test(terminal.screen()))
    terminal.press('q')
    assert.equal(await terminal.ended, 0)
    assert.ok(plain(terminal.screen()).every((line) => line.length <= 80))
  })

  test('pause and resume wait for what they have asked for', async () => {
    const paused = await millrace(['pause', '--wait', '--url', live.url])
    assert.deepEqual([paused.code, paused.stdout], [0, 'the state is PAUSED\n'], paused.stderr)
    assert.equal(await live.state(), 'PAUSED')
    const refused = await millrace(['pause', '--url', live.url])
    assert.deepEqual(
      [refused.code, /cannot pause: the state is PAUSED/.test(refused.stderr)],
      [1, true],
      refused.stderr,
    )
    const resumed = await millrace(['resume', '--wait', '20', '-o', 'json', '--url', live.url])
    assert.deepEqual(JSON.parse(resumed.stdout), { status: 'resumed', state: 'RUNNING' }, resumed.stderr)
    assert.equal(await live.state(), 'RUNNING')
  })

  test('a switch that the process does not take is wrong usage', async () => {
    const wrong: ReadonlyArray<readonly [args: readonly string[], says: RegExp]> = [
      [['stores', 'counts', '--limit', '0'], /limit/],
      [['stores', 'counts', '--limit', 'few'], /limit/],
      [['dlq', 'list', '--limit', '0'], /limit/],
      [['dlq', 'list', '--until', 'nonsense'], /until/],
      [['dlq', 'show', '0:1', '--since', 'nonsense'], /since/],
      [['dlq', 'redrive', '--since', 'nonsense'], /since/],
      [['dlq', 'redrive', '--since', 'nonsense', '--yes'], /since/],
    ]
    for (const [args, says] of wrong) {
      const { code, stderr } = await millrace([...args, '--url', live.url])
      assert.match(stderr, says)
      assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    }
  })

  test('a letter is shown with its headers, and letters are put back', async () => {
    const listed = await millrace(['dlq', 'list', '-o', 'json', '--url', live.url])
    const [letter] = (JSON.parse(listed.stdout) as { letters: Array<{ partition: number; offset: number }> }).letters
    const told = await millrace(['dlq', 'show', `${letter?.partition}:${letter?.offset}`, '--url', live.url])
    assert.match(told.stdout, /header exception +TypeError/)
    const done = await millrace(['dlq', 'redrive', '--yes', '--limit', '1', '--url', live.url])
    assert.match(done.stdout, /^2 put back\. 2 fit; 0 were put back before;/, done.stderr)
  })

  test('scripts get the answers of the endpoints, as JSON or YAML, of one process or of several', async () => {
    // The letters put back are records again; two looks are the same when none is under way between them.
    await live.runtime.untilIdle()
    const one = await millrace(['lag', '-o', 'json', '--url', live.url])
    assert.deepEqual(JSON.parse(one.stdout), (await live.get('/offsets')) as unknown)
    const yaml = await millrace(['license', '-o', 'yaml', '--url', live.url])
    assert.equal((parse(yaml.stdout) as { status: string }).status, 'NO_KEY')
    const two = await millrace(['status', '-o', 'json', '--url', live.url, '--url', live.url])
    assert.equal((JSON.parse(two.stdout) as unknown[]).length, 2)
    const table = await millrace(['status', '--url', live.url, '--url', 'http://127.0.0.1:1'])
    assert.match(table.stdout, /RUNNING/)
    assert.equal(table.code, 1)
  })
})

describe('for scripts', () => {
  test('exit codes tell who has to do something', async (t) => {
    const instance = await startFake({ config: { token: 'open-sesame' } })
    t.after(() => instance.stop())
    assert.equal((await millrace(['lag', '--url', 'http://127.0.0.1:2'])).code, 14)
    for (const verb of [['lag'], ['why'], ['ha', 'status']]) {
      const { stderr } = await millrace([...verb, '--url', 'http://127.0.0.1:10080'])
      assert.match(stderr, /127\.0\.0\.1:10080 was not asked: browsers, .+ refuse port 10080; set runtime\.http\.port/)
    }
    const stranger = await millrace(['lag', '--url', instance.url])
    assert.equal(stranger.code, 2)
    assert.match(stranger.stderr, /asks for a token/)
    for (const verb of [['lag'], ['why'], ['ha', 'status']]) {
      const wrong = await millrace([...verb, '--url', instance.url], {
        env: { RUNTIME_HTTP_AUTH_TOKEN: 'open-barley' },
      })
      assert.equal(wrong.code, 2)
      assert.match(wrong.stderr, /does not accept the token that it was given; give the one that is set there/)
      assert.doesNotMatch(wrong.stderr, /open-barley/)
    }
    const env = { RUNTIME_HTTP_AUTH_TOKEN: 'open-sesame' }
    assert.equal((await millrace(['lag', '--url', instance.url], { env })).code, 0)
    for (const [verb, key] of [
      [['stores', 'counts'], 'runtime.endpoints.stores.enabled'],
      [['dlq', 'list'], 'runtime.endpoints.dead-letters.enabled'],
      [['dlq', 'redrive'], 'runtime.endpoints.dead-letters.enabled'],
    ] as const) {
      const off = await millrace([...verb, '--url', instance.url], { env })
      assert.equal(off.code, 2, off.stderr)
      assert.match(off.stderr, / does not serve \/.+: set '([a-z.-]+)' there to true, and start it again\.\n$/)
      assert.ok(off.stderr.includes(`'${key}'`), off.stderr)
    }
    assert.equal((await millrace(['lag', '-o', 'csv'])).code, 2)
    const late = await millrace(['status', '--wait', '1', '--url', 'http://127.0.0.1:1'])
    assert.equal(late.code, 1)
    assert.match(late.stderr, /Waited 1 s/)
  })

  test('a pause that does not come in time is none', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const { code, stdout, stderr } = await millrace(['pause', '--wait', '1', '--url', instance.url])
    assert.equal(code, 1)
    assert.equal(stdout, '')
    assert.match(stderr, /Waited 1 s for .+ to be PAUSED: the state is DRAINING; 'millrace why' says what it waits for/)
  })

  test('dlq redrive waits for long, and tells who cannot be reached from who gives no answer', async (t) => {
    const done = { dryRun: false, matched: 1, redriven: 1, already: 0, gone: 0, more: false, ends: '0:1' }
    const timers = new Set<NodeJS.Timeout>()
    const server = createServer((request, response) => {
      if (request.url?.includes('reason=Slow') !== true) request.socket.destroy()
      // Longer than a question about rows is given.
      else timers.add(setTimeout(() => response.end(JSON.stringify(done)), 17_000))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      for (const timer of timers) clearTimeout(timer)
      server.close()
      server.closeAllConnections()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const gone = createServer()
    await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
    const nobodyAt = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`
    await new Promise((resolve) => gone.close(resolve))
    const redrive = ['dlq', 'redrive', '--yes']
    const [slow, silent, nobody] = await Promise.all([
      millrace([...redrive, '--reason', 'Slow', '--url', url]),
      millrace([...redrive, '--url', url]),
      millrace([...redrive, '--url', nobodyAt]),
    ])
    assert.match(slow.stdout, /^1 put back\./, slow.stderr)
    assert.equal(silent.code, 14)
    assert.match(
      silent.stderr,
      /was reached, but gave no answer \(\w+\)\. Letters may have been put back all the same;/,
    )
    assert.match(silent.stderr, /ask again, which puts none back twice\.\n$/)
    assert.equal(nobody.code, 14)
    assert.match(nobody.stderr, /does not answer \(ECONNREFUSED\); --url names the process[^\n]*\n$/)
  })

  test('watching ends when nobody reads any more', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    for (const verb of ['lag', 'why']) {
      const { child, result } = startMillrace([verb, '--watch', '--url', instance.url], { timeoutMs: 60_000 })
      child.stdout?.once('data', () => child.stdout?.destroy())
      const { signal } = await result
      assert.equal(signal, null, verb)
    }
  })

  test('each verb explains itself with an example', async () => {
    const verbs = 'status topology lag watermarks stores threads barriers pause resume config license top why'.split(
      ' ',
    )
    for (const verb of [
      ...verbs.map((each) => [each]),
      ['dlq', 'list'],
      ['dlq', 'show'],
      ['dlq', 'redrive'],
      ['completion'],
    ]) {
      const { stdout, code } = await millrace([...verb, '--help'])
      assert.equal(code, 0)
      assert.match(stdout, /^Example: /m, verb.join(' '))
    }
  })

  test('completion knows the verbs below a verb, and their options', async () => {
    const { stdout } = await millrace(['completion', 'bash'])
    const complete = (...words: string[]): string[] => {
      const script = `${stdout}\nCOMP_WORDS=(${['millrace', ...words].map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length}\n_millrace\nprintf '%s\\n' "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n')
    }
    assert.deepEqual(complete('wat'), ['watermarks'])
    assert.deepEqual(complete('dlq', ''), ['list', 'show', 'redrive'])
    assert.deepEqual(complete('ha', 'pro'), ['promote'])
    assert.deepEqual(complete('dlq', 'redrive', '--y'), ['--yes'])
    for (const shell of ['zsh', 'fish']) {
      const script = await millrace(['completion', shell])
      assert.equal(script.code, 0)
      assert.match(script.stdout, /watermarks/)
    }
    assert.equal((await millrace(['completion', 'csh'])).code, 2)
  })
})
