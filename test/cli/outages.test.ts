import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { freePort } from '../../scripts/free-ports.ts'
import { BrokerError, type BrokerPort } from '../../src/broker/port.ts'
import { Feeder } from '../../src/cli/feed/feed.ts'
import { parseFeed } from '../../src/cli/feed/feed-reader.ts'
import { ProgressLine } from '../../src/cli/progress.ts'
import { consume, TestEngine } from '../engine/support/engine.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-outages-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A broker whose next calls nobody answers, in turns before and after they are carried out. */
function unanswered(broker: BrokerPort, calls: { left: number }): BrokerPort {
  return new Proxy(broker, {
    get: (target, property) => {
      const value = Reflect.get(target, property, target)
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        const isLost = calls.left > 0
        if (isLost && calls.left-- % 2 === 0) throw new BrokerError('UNREACHABLE', 'kafka-1:9092 is not reachable')
        const answer = await Reflect.apply(value, target, args)
        if (isLost) throw new BrokerError('NETWORK_EXCEPTION', 'the connection to kafka-1:9092 was lost')
        return answer
      }
    },
  })
}

describe('the command line and a broker that is gone for a while', () => {
  for (const [kind, marked] of [
    ['a file', true],
    ['the standard input', false],
  ] as const) {
    test(`a feed of ${kind} waits for the broker, and stores every line once`, async (t) => {
      const engine = await TestEngine.start(t, 'running-sum')
      const path = join(folder, 'numbers.ndjson')
      const lines = Array.from({ length: 12_000 }, (_, i) => JSON.stringify({ key: `k${i % 9}`, value: i }))
      writeFileSync(path, lines.join('\n'))
      const notes: string[] = []
      const calls = { left: 5 }
      const feeder = new Feeder({
        broker: unanswered(engine.broker, calls),
        topology: () => engine.runtime.view.topology(),
        rate: undefined,
        progress: new ProgressLine(),
        note: (message) => {
          notes.push(message)
          // The outage of the first look-up is over: the next one hits a write.
          if (/answers again/.test(message) && notes.length < 3) calls.left = 3
        },
        warn: (message) => assert.fail(message),
        signal: new AbortController().signal,
      })
      const feed = parseFeed(`numbers=${path}`)
      // Of what cannot be read again the broker keeps no mark.
      await feeder.run([marked ? feed : { ...feed, mark: undefined }])
      const stored = (await consume(engine.broker, 'numbers')).map(({ value }) => Number(value))
      assert.deepEqual(
        stored.toSorted((a, b) => a - b),
        Array.from({ length: 12_000 }, (_, i) => i),
      )
      assert.match(notes[0] ?? '', /The feed waits for the broker: .*kafka-1:9092/)
      assert.equal(notes.filter((note) => /answers again/.test(note)).length, 2)
    })
  }

  test('a feed says again that it waits, for as long as an outage lasts', async (t) => {
    const engine = await TestEngine.start(t, 'running-sum')
    const path = join(folder, 'few.ndjson')
    writeFileSync(path, JSON.stringify({ key: 'k', value: 1 }))
    const calls = { left: Number.POSITIVE_INFINITY }
    const warnings: string[] = []
    const feeder = new Feeder({
      broker: unanswered(engine.broker, calls),
      topology: () => engine.runtime.view.topology(),
      rate: undefined,
      progress: new ProgressLine(),
      note: () => undefined,
      warn: (message) => {
        warnings.push(message)
        calls.left = 0
      },
      untilIdle: true,
      signal: AbortSignal.timeout(60_000),
    })
    await feeder.run([parseFeed(`numbers=${path}`)])
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] as string, /^The feed has waited for the broker for \d+ s, and goes on by itself once/)
    assert.equal((await consume(engine.broker, 'numbers')).length, 1)
  })

  for (const [when, code] of [
    ['before the signal', 'CLOSED'],
    ['behind the signal', 'CLOSED'],
    ['behind the signal', 'UNREACHABLE'],
  ] as const) {
    test(`a feed whose client is closed ${when} says nothing of the broker (${code})`, async () => {
      const path = join(folder, 'none.ndjson')
      writeFileSync(path, JSON.stringify({ key: 'k', value: 1 }))
      const ended = new AbortController()
      const topics = async (): Promise<never> => {
        if (when === 'before the signal') setImmediate(() => ended.abort())
        else ended.abort()
        throw new BrokerError(code, 'The client of Kafka is closed; start the application again.', 'unreachable')
      }
      const told: string[] = []
      const feeder = new Feeder({
        broker: { topics } as unknown as BrokerPort,
        topology: () => null,
        rate: undefined,
        progress: new ProgressLine(),
        note: (message) => told.push(message),
        warn: (message) => told.push(message),
        signal: ended.signal,
      })
      await feeder.run([parseFeed(`numbers=${path}`)])
      assert.deepEqual(told, [])
    })
  }

  const noLimit = process.platform === 'win32' ? 'there is no limit for files here' : false
  test('a feed warns of a full disk, and ends a run that is to end by itself', { skip: noLimit }, async () => {
    const feed = join(folder, 'large.ndjson')
    const lines = Array.from({ length: 4000 }, (_, i) => JSON.stringify({ key: 'k', value: 'x'.repeat(2000) + i }))
    writeFileSync(feed, lines.join('\n'))
    const app = join(import.meta.dirname, '..', 'engine', 'apps', 'large-rows.ts')
    const broker = join(folder, 'full')
    const off = ['--set', 'runtime.http.enabled=false', '--set', `broker.bootstrap-servers=embedded:${broker}`]
    const run = ['run', app, '--feed', `in=${feed}`, '--set', 'broker.embedded.partitions=1', ...off]
    const { code, stderr } = await millrace([...run, '--until-idle'], { largestFileKib: 2048 })
    assert.equal(code, 1, stderr)
    const told = stderr.split('\n').filter((line) => line.includes('"component":"feed"'))
    assert.equal(told.length, 1, stderr)
    assert.match(told[0] as string, /"level":"warn".*The feed waits until the broker can store records again: .*EFBIG/)
    const last = stderr.trimEnd().split('\n').at(-1) as string
    assert.match(
      last,
      /^millrace: The feed was given up, because .* for \d+ s: .*Look at the disk and its free space\.$/,
    )
    const again = startMillrace(run, { largestFileKib: 2048 })
    await eventually('it warns again', () => /The feed has waited until .*EFBIG/.test(again.stderr()))
    again.child.kill('SIGTERM')
    assert.equal((await again.result).code, 0)
  })

  test('with --print, SIGTERM takes readiness away while what was read is still processed', async () => {
    const feed = join(folder, 'calls.ndjson')
    writeFileSync(feed, `${JSON.stringify({ key: 'a', value: { n: 1, ms: 4000 } })}\n`)
    const app = join(import.meta.dirname, '..', 'engine', 'apps', 'slow-calls.ts')
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const http = ['--set', 'runtime.http.host=127.0.0.1', '--set', `runtime.http.port=${port}`]
    const run = startMillrace(['run', app, '--feed', `calls=${feed}`, '--print', 'answers', ...http])
    const ready = async (): Promise<number> => (await fetch(`${url}/health/ready`)).status
    await eventually('it is ready', async () => (await ready().catch(() => 0)) === 200)
    // The record is with its function.
    await eventually('the record is read', async () => {
      const { assignment } = (await (await fetch(`${url}/consumer`)).json()) as { assignment?: object }
      const { totalLag } = (await (await fetch(`${url}/offsets`)).json()) as { totalLag?: number }
      return assignment !== undefined && totalLag === 1
    })
    run.child.kill('SIGTERM')
    await eventually('readiness is gone', async () => (await ready().catch(() => 0)) !== 200)
    assert.equal(await ready(), 503, 'it still answers')
    assert.equal(run.stdout(), '', 'and is not done')
    const { code, stdout, stderr } = await run.result
    assert.equal(code, 0, stderr)
    assert.equal(stdout.trimEnd().split('\n').length, 1)
  })
})
