import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { type CommandResult, eventually, millrace, startMillrace } from '../support/millrace.ts'
import { noMount, remount, smallDisks } from '../support/small-disk.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-run-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const mount = smallDisks()

const totals = join(import.meta.dirname, 'apps', 'totals.ts')
const numbers = join(import.meta.dirname, 'apps', 'numbers.ts')
const quiet = ['--set', 'runtime.http.enabled=false', '--set', 'engine.lanes.count=2']

interface Printed {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  readonly key: unknown
  readonly value: unknown
  readonly timestamp: number
  readonly headers?: unknown
}

function file(name: string, lines: readonly unknown[]): string {
  const path = join(folder, name)
  writeFileSync(path, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''))
  return path
}

function printed({ stdout }: Pick<CommandResult, 'stdout'>): Printed[] {
  if (stdout === '') return []
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Printed)
}

function lastPerKey(records: readonly Printed[]): Record<string, unknown> {
  return Object.fromEntries(records.map((record) => [String(record.key), record.value]))
}

function amounts(count: number): Array<{ key: string; value: number; timestamp: number }> {
  return Array.from({ length: count }, (_, i) => ({ key: `k${i % 7}`, value: i, timestamp: i }))
}

function sums(records: ReadonlyArray<{ key: string; value: number }>): Record<string, number> {
  const result: Record<string, number> = {}
  for (const { key, value } of records) result[key] = (result[key] ?? 0) + value
  return result
}

function assertRefused(result: CommandResult, says: RegExp): void {
  assert.match(result.stderr, says)
  assert.doesNotMatch(result.stderr, /^\s+at /m, 'no stack trace')
  assert.equal(result.code, 2)
}

describe('millrace run', () => {
  test('feeds, processes, prints committed records and ends', async () => {
    const input = amounts(500)
    const feed = file('totals.ndjson', input)
    const result = await millrace([
      ...['run', totals, '--feed', `amounts=${feed}`, '--print', 'totals', '--print', 'passed', '--until-idle'],
      ...quiet,
    ])
    assert.equal(result.code, 0, result.stderr)
    const records = printed(result)
    assert.deepEqual(lastPerKey(records.filter((record) => record.topic === 'totals')), sums(input))
    const passed = records.filter((record) => record.topic === 'passed')
    assert.equal(passed.length, 500)
    for (let partition = 0; partition < 4; partition++) {
      const offsets = passed.filter((record) => record.partition === partition).map((record) => record.offset)
      assert.deepEqual(
        offsets,
        offsets.toSorted((a, b) => a - b),
      )
    }
  })

  test('keeps timestamps, headers, null keys and chosen partitions', async () => {
    const feed = file('details.ndjson', [
      { key: 'a', value: 1, timestamp: 981_200_000_000, headers: [['h', '1']], partition: 3 },
      { key: null, value: 2, timestamp: 981_200_000_001, headers: { trace: 'x' } },
      '',
      { key: 'b', value: 3, timestamp: 981_200_000_002 },
    ])
    const args = ['run', totals, '--feed', `amounts=${feed}`, '--print', 'amounts', '--until-idle', ...quiet]
    const result = await millrace(args)
    const byValue = new Map(printed(result).map((record) => [record.value, record]))
    assert.equal(byValue.size, 3, result.stderr)
    const { partition, timestamp, headers } = byValue.get(1) as Printed
    assert.deepEqual(
      { partition, timestamp, headers },
      { partition: 3, timestamp: 981_200_000_000, headers: [['h', '1']] },
    )
    assert.equal(byValue.get(2)?.key, null)
    assert.deepEqual(byValue.get(2)?.headers, [['trace', 'x']])
    assert.equal(byValue.get(3)?.headers, undefined)
  })

  test('reads a feed from standard input', async () => {
    const stdin = amounts(10)
      .map((record) => JSON.stringify(record))
      .join('\n')
    const result = await millrace(
      ['run', totals, '--feed', 'amounts=-', '--print', 'passed', '--until-idle', ...quiet],
      {
        stdin,
      },
    )
    assert.equal(printed(result).length, 10, result.stderr)
  })

  test('sends what comes through a pipe as it comes, and all of it at the next start too', async () => {
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const data = ['--set', `broker.bootstrap-servers=embedded:${join(folder, 'piped')}`]
    const state = ['--set', `engine.state.dir=${join(folder, 'piped-state')}`]
    const args = ['run', totals, '--feed', `amounts=${pipe}`, '--print', 'passed', '--until-idle', ...quiet, ...data]
    for (const [run, values] of [[1, 2], [3]].entries()) {
      const running = startMillrace([...args, ...state])
      const writing = await open(pipe, 'w')
      for (const value of values) {
        await writing.write(`${JSON.stringify({ key: 'a', value, timestamp: value })}\n`)
        await eventually(`${value} is printed`, () => printed({ stdout: running.stdout() }).length === value)
      }
      await writing.close()
      const result = await running.result
      assert.equal(result.code, 0, result.stderr)
      assert.deepEqual(
        printed(result).map(({ value }) => value),
        [1, 2, 3].slice(0, run + 2),
      )
    }
  })

  test('says that a file has fewer lines than were stored of the one that had its name', async () => {
    const set = ['--set', `broker.bootstrap-servers=embedded:${join(folder, 'replaced')}`, ...quiet]
    const state = ['--set', `engine.state.dir=${join(folder, 'replaced-state')}`]
    const feed = file('replaced.ndjson', amounts(5))
    const args = ['run', totals, '--feed', `amounts=${feed}`, '--until-idle', ...set, ...state]
    assert.equal((await millrace(args)).code, 0)
    file('replaced.ndjson', amounts(3))
    const { code, stderr } = await millrace(args)
    assert.equal(code, 0, stderr)
    assert.match(
      stderr,
      /"warn".*replaced\.ndjson has 3 lines, and 5 of it are stored in 'amounts' already: nothing was/,
    )
  })

  test('sends no faster than the rate', async () => {
    const feed = file('paced.ndjson', amounts(100))
    const startedAt = performance.now()
    const result = await millrace([
      'run',
      totals,
      '--feed',
      `amounts=${feed}`,
      '--feed-rate',
      '50',
      '--until-idle',
      ...quiet,
    ])
    assert.equal(result.code, 0, result.stderr)
    assert.ok(performance.now() - startedAt > 1900)
  })

  test('on a broker that keeps its data, resumes a feed and prints each record of all runs once', async () => {
    const set = ['--set', `broker.bootstrap-servers=embedded:${join(folder, 'broker')}`, ...quiet]
    const state = ['--set', `engine.state.dir=${join(folder, 'state')}`]
    const first = amounts(300)
    const feed = file('resumed.ndjson', first)
    const args = ['run', totals, '--feed', `amounts=${feed}`, '--print', 'passed', '--print', 'totals', '--until-idle']
    assert.equal(
      printed(await millrace([...args, ...set, ...state])).filter(({ topic }) => topic === 'passed').length,
      300,
    )

    const again = await millrace([...args, ...set, ...state])
    assert.equal(printed(again).filter(({ topic }) => topic === 'passed').length, 300)
    assert.match(again.stderr, /300 lines are stored already/)

    const more = amounts(450)
    file('resumed.ndjson', more)
    const records = printed(await millrace([...args, ...set, ...state]))
    assert.equal(records.filter(({ topic }) => topic === 'passed').length, 450)
    assert.deepEqual(lastPerKey(records.filter(({ topic }) => topic === 'totals')), sums(more))
  })

  test('without a feed, ends when its sources are read to their end', async () => {
    const result = await millrace(['run', totals, '--print', 'totals', '--until-idle', ...quiet])
    assert.deepEqual([result.code, result.stdout], [0, ''], result.stderr)
  })

  test('goes on until a signal, then prints what was committed and ends with 0', async () => {
    const feed = file('signalled.ndjson', amounts(50))
    const running = startMillrace(['run', totals, '--feed', `amounts=${feed}`, '--print', 'passed', ...quiet])
    await eventually('the records are printed', () => running.stdout().trimEnd().split('\n').length === 50)
    running.child.kill('SIGTERM')
    const result = await running.result
    assert.equal(result.code, 0, result.stderr)
    assert.equal(printed(result).length, 50)
  })

  test('hears a signal that comes while it is still being loaded, and ends with 0; other commands end by it', async () => {
    // As soon as the first of what is behind the entry is looked for.
    const hook = `import { registerHooks } from 'node:module'
      let isSent = false
      registerHooks({
        resolve(specifier, context, next) {
          if (!isSent && specifier.endsWith('/program.ts')) isSent = process.kill(process.pid, 'SIGTERM')
          return next(specifier, context)
        },
      })`
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` }
    const run = await millrace(['run', totals, ...quiet], { env })
    assert.deepEqual([run.code, run.signal], [0, null], run.stderr)
    const other = await millrace(['topology', totals], { env })
    assert.deepEqual([other.code, other.signal], [null, 'SIGTERM'], other.stderr)
  })

  test('ends when the reader of its output has enough', async () => {
    const feed = file('piped.ndjson', amounts(20_000))
    const running = startMillrace(['run', totals, '--feed', `amounts=${feed}`, '--print', 'passed', ...quiet])
    running.child.stdout?.once('data', () => running.child.stdout?.destroy())
    const { code } = await running.result
    assert.equal(code, 0)
  })
})

describe('millrace run, with bad input', () => {
  test('ends in order where its output cannot be written, and says so', {
    skip: !existsSync('/dev/full'),
  }, async () => {
    const feed = file('unwritten.ndjson', amounts(20))
    const args = ['run', totals, '--feed', `amounts=${feed}`, '--print', 'passed', ...quiet]
    const { code, stderr } = await millrace(args, { stdoutTo: '/dev/full' })
    assert.equal(code, 1, stderr)
    assert.match(stderr, /STOPPING → STOPPED.*\n(.*\n)*millrace: Standard output took no more \(ENOSPC\)/)
    assert.doesNotMatch(stderr, /^\s+at /m, 'no stack trace')
  })

  test('names an unknown configuration key and the nearest one', async () => {
    const result = await millrace(['run', totals, '--until-idle', '--set', 'engine.lane.count=2'])
    assertRefused(result, /engine\.lane\.count.*engine\.lanes\.count/s)
  })

  test('reports all faults of the configuration at once', async () => {
    const args = ['run', totals, '--set', 'engine.lanes.count=none', '--set', 'runtime.http.port=99999']
    const result = await millrace(args)
    assertRefused(result, /engine\.lanes\.count/)
    assert.match(result.stderr, /runtime\.http\.port/)
  })

  test('says that a file of the configuration cannot be read', async () => {
    const kafka = ['--set', 'broker.bootstrap-servers=localhost:9092', '--set', 'broker.tls.ca-file=nowhere.pem']
    assertRefused(
      await millrace(['run', totals, ...quiet, ...kafka]),
      /^millrace: broker\.tls\.ca-file cannot be read/m,
    )
  })

  test('refuses folders of the broker and of the stores that cannot be folders', async () => {
    const taken = file('taken', [])
    const broker = ['--set', `broker.bootstrap-servers=embedded:${taken}`]
    const says = /^millrace: The embedded broker cannot have its files in .*taken: .* Name a folder that can be made/m
    assertRefused(await millrace(['run', totals, ...quiet, ...broker]), says)
    const below = ['--set', `broker.bootstrap-servers=embedded:${join(taken, 'below')}`]
    assertRefused(await millrace(['run', totals, ...quiet, ...below]), /cannot have its files in .*below: ENOTDIR/)
    const stores = ['--set', 'engine.state.store=lmdb', '--set', `engine.state.dir=${taken}`]
    assertRefused(await millrace(['run', totals, ...quiet, ...stores]), /The state folder .* cannot be used/)
  })

  test('says that a file system is read-only, whether the folders are there or not', async (t) => {
    const disk = mount('read-only', 'size=1m')
    if (disk === undefined) return t.skip(noMount)
    mkdirSync(join(disk, 'there', 'totals'), { recursive: true })
    mkdirSync(join(disk, 'there', 'topics'))
    remount(disk, 'ro')
    for (const dir of ['there', join('not', 'there')].map((name) => join(disk, name))) {
      const broker = ['--set', `broker.bootstrap-servers=embedded:${dir}`]
      const says = /cannot have its files in .*there: its file system is read-only\. Name a folder/
      assertRefused(await millrace(['run', totals, ...quiet, ...broker]), says)
      const stores = ['--set', 'engine.state.store=lmdb', '--set', `engine.state.dir=${dir}`]
      const ofStores = /The state folder .* cannot be used: its file system is read-only\. .* 'engine\.state\.dir'/
      assertRefused(await millrace(['run', totals, ...quiet, ...stores]), ofStores)
    }
  })

  test('says that there is no such application', async () => {
    assertRefused(await millrace(['run', join(folder, 'nowhere.ts')]), /no application module .*nowhere\.ts/)
  })

  const never = 'await new Promise(() => undefined)\nexport default 1\n'
  const modules: ReadonlyArray<readonly [name: string, text: string, says: RegExp]> = [
    ['exports-nothing.ts', 'export const x = 1\n', /does not export the result of defineApp/],
    ['exports-else.ts', 'export default { applicationId: "a" }\n', /does not export the result of defineApp/],
    ['exports-null.ts', 'export default null\n', /does not export the result of defineApp/],
    ['never.ts', never, /^millrace: the application module .*never\.ts was never loaded: it waits with `await`/m],
    ['malformed.ts', '\nexport default {\n', /cannot be loaded: .* \(malformed\.ts:\d\)/],
    ['throws.ts', 'throw new RangeError("no luck")\nexport default 1\n', /cannot be loaded: no luck \(throws\.ts:1\)/],
  ]
  for (const [name, text, says] of modules) {
    test(`says what is wrong with the module ${name}`, async () => {
      const path = join(folder, name)
      writeFileSync(path, text)
      assertRefused(await millrace(['run', path, '--until-idle', ...quiet]), says)
    })
  }

  test('takes an application that a compiler wrote as CommonJS', async () => {
    const millraceItself = JSON.stringify(join(import.meta.dirname, '..', '..', 'src', 'index.ts'))
    const path = join(folder, 'compiled.cjs')
    const lines = [
      '"use strict"',
      'Object.defineProperty(exports, "__esModule", { value: true })',
      `const millrace_1 = require(${millraceItself})`,
      'exports.default = (0, millrace_1.defineApp)({ applicationId: "compiled", build(topology) {',
      '  const { string: key, string: value } = millrace_1.serdes',
      '  topology.stream("words", { key, value }).mapValues((word) => word.toUpperCase()).to("loud") } })',
    ]
    writeFileSync(path, lines.join('\n'))
    const feed = file('words.ndjson', [{ key: 'a', value: 'quiet' }])
    const args = ['run', path, '--feed', `words=${feed}`, '--print', 'loud', '--until-idle', ...quiet]
    const result = await millrace(args)
    assert.equal(result.code, 0, result.stderr)
    assert.deepEqual(
      printed(result).map(({ value }) => value),
      ['QUIET'],
    )
  })

  test('feeds large records of one partition, each of which its topic takes, and names one that it does not take', async () => {
    const large = (length: number, n: number): unknown => ({
      ...{ key: `k${n}`, value: 'x'.repeat(length), timestamp: 1, partition: 0 },
    })
    const args = (feed: string): string[] => ['run', totals, '--feed', `amounts=${feed}`, '--until-idle', ...quiet]
    const fits = file('large.ndjson', [700_000, 600_000, 1_000_000, 500_000].map(large))
    const result = await millrace([...args(fits), '--print', 'amounts'])
    assert.equal(result.code, 0, result.stderr)
    assert.deepEqual(
      printed(result).map(({ value }) => String(value).length),
      [700_000, 600_000, 1_000_000, 500_000],
    )
    const refused = await millrace(args(file('too-large.ndjson', [10, 1_100_000].map(large))))
    assertRefused(
      refused,
      /^millrace: Line 2 of .*too-large\.ndjson is a record of 11\d+ bytes, and 'amounts' takes at most 1048588/m,
    )
  })

  test('sends a file that is given twice once, and says so', async () => {
    const feed = file('twice.ndjson', amounts(5))
    const feeds = [feed, `${folder}/./twice.ndjson`].flatMap((path) => ['--feed', `amounts=${path}`])
    const result = await millrace(['run', totals, ...feeds, '--print', 'passed', '--until-idle', ...quiet])
    assert.equal(result.code, 0, result.stderr)
    assert.equal(printed(result).length, 5)
    assert.match(
      result.stderr,
      /--feed amounts=.*twice\.ndjson is given 2 times, and its lines are sent once: .* a copy/,
    )
  })

  test('names the malformed line of a feed; what stands before it stays stored', async () => {
    const feed = file('malformed.ndjson', [{ key: 'a', value: 1, timestamp: 1 }, { key: 'b', value: 2 }, '{"key":"c",'])
    const args = ['run', totals, '--feed', `amounts=${feed}`, '--print', 'passed', '--until-idle', ...quiet]
    const result = await millrace(args)
    assertRefused(result, /^millrace: Line 3 of .*malformed\.ndjson is not JSON/m)
    assert.ok(printed(result).every((record) => record.key === 'a' || record.key === 'b'))
  })

  test('refuses a partition that the topic does not have', async () => {
    const feed = file('partition.ndjson', [{ key: 'a', value: 1, partition: 9 }])
    const result = await millrace(['run', totals, '--feed', `amounts=${feed}`, '--until-idle', ...quiet])
    assertRefused(result, /Line 1 of .* names partition 9, but 'amounts' has partitions 0 to 3/)
  })

  test('ends with 2 on a value that the serde of its source refuses, and says which record it was', async () => {
    const feed = file('refused.ndjson', [{ key: 'a', value: { no: 'number' }, timestamp: 5, partition: 2 }])
    const result = await millrace(['run', numbers, '--feed', `numbers=${feed}`, '--until-idle', ...quiet])
    assertRefused(result, /^millrace: .*numbers.*2/m)
  })

  test('goes on behind such a value where the policy says so', async () => {
    const lines = [
      { key: 'a', value: 'text', timestamp: 5 },
      { key: 'a', value: 4, timestamp: 6 },
    ]
    const feed = file('skipped.ndjson', lines)
    const args = ['run', numbers, '--feed', `numbers=${feed}`, '--print', 'doubled', '--until-idle', ...quiet]
    const result = await millrace([...args, '--set', 'errors.decoding=skip'])
    assert.equal(result.code, 0, result.stderr)
    assert.deepEqual(
      printed(result).map((record) => record.value),
      [8],
    )
  })

  test('ends with 1 where a function of the application throws', async () => {
    const feed = file('thrown.ndjson', [{ key: 'a', value: 13, timestamp: 5 }])
    const result = await millrace(['run', numbers, '--feed', `numbers=${feed}`, '--until-idle', ...quiet])
    assert.equal(result.code, 1, result.stderr)
    assert.match(result.stderr, /^millrace: .*thirteen is refused/m)
  })

  test('ends by itself with the exit code that the configuration gives to failures, where it says that it ends', async () => {
    const feed = file('thrown-42.ndjson', [{ key: 'a', value: 13, timestamp: 5 }])
    const settings = [
      'engine.lanes.count=1',
      'runtime.http.host=127.0.0.1',
      'runtime.http.port=0',
      'runtime.failure-exit-code=42',
      'runtime.exit-on-failure=true',
    ]
    // Nobody waits for it to become idle, and it has an HTTP interface: only the configuration makes it end.
    const result = await millrace([
      'run',
      numbers,
      '--feed',
      `numbers=${feed}`,
      ...settings.flatMap((s) => ['--set', s]),
    ])
    assert.equal(result.code, 42, result.stderr)
    assert.match(result.stderr, /^millrace: .*thirteen is refused/m)
    const idle = await millrace([
      ...['run', numbers, '--feed', `numbers=${feed}`, '--until-idle'],
      ...[...quiet, '--set', 'runtime.failure-exit-code=43'],
    ])
    assert.equal(idle.code, 43, idle.stderr)
    // What has a code of its own keeps it.
    const refused = file('refused-44.ndjson', [{ key: 'a', value: { no: 'number' }, timestamp: 5 }])
    const usage = await millrace([
      ...['run', numbers, '--feed', `numbers=${refused}`, '--until-idle'],
      ...[...quiet, '--set', 'runtime.failure-exit-code=44'],
    ])
    assert.equal(usage.code, 2, usage.stderr)
  })
})
