/** A changelog that is deleted on a real Kafka behind the group's offsets. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'
import { millrace } from '../support/millrace.ts'

const app = join(import.meta.dirname, '..', 'cli', 'apps', 'totals.ts')
const folder = mkdtempSync(join(tmpdir(), 'millrace-lost-'))

describe('a changelog that was deleted on Kafka', async () => {
  const kafka = await kafkaForTests()
  const skip = 'skip' in kafka ? kafka.skip : false
  const servers = 'skip' in kafka ? '' : kafka.bootstrap
  const connect = () => connectKafka({ bootstrapServers: [servers], clientId: 'test', requestTimeoutMs: 10_000 })

  const lines = (from: number, to: number): string =>
    Array.from({ length: to - from }, (_, i) => from + i)
      .map((n) => `${JSON.stringify({ key: `k${n % 7}`, value: n, timestamp: n })}\n`)
      .join('')
  const totals = (to: number): Map<string, number> => {
    const sums = new Map<string, number>()
    for (let n = 0; n < to; n++) sums.set(`k${n % 7}`, (sums.get(`k${n % 7}`) ?? 0) + n)
    return sums
  }
  const feed = join(folder, 'amounts.ndjson')
  const run = (...more: readonly string[]) => {
    const settings = [
      `broker.bootstrap-servers=${servers}`,
      'runtime.http.enabled=false',
      'engine.lanes.count=2',
      'engine.state.store=lmdb',
      `engine.state.dir=${join(folder, 'state')}`,
      ...more,
    ]
    const set = settings.flatMap((setting) => ['--set', setting])
    return millrace(['run', app, '--feed', `amounts=${feed}`, ...set, '--print', 'totals', '--until-idle'])
  }
  const lastTotals = (stdout: string): Map<string, number> =>
    new Map(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { key: string; value: number })
        .map(({ key, value }) => [key, value]),
    )

  before(async () => {
    writeFileSync(feed, lines(0, 500))
    if (skip) return
    const broker = await connect()
    await broker.createTopics(['amounts', 'passed', 'totals'].map((topic) => ({ topic, partitions: 4 })))
    await broker.close()
  })
  after(async () => {
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await (kafka as TestKafka).stop()
  })

  test('is refused, then written anew from the stores on disk, and no total is wrong', { skip }, async () => {
    const first = await run()
    assert.equal(first.code, 0, first.stderr)
    assert.deepEqual(lastTotals(first.stdout), totals(500))
    const broker = await connect()
    const changelogs = (await broker.topics(null))
      .map(({ topic }) => topic)
      .filter((topic) => topic.endsWith('-changelog'))
    assert.ok(changelogs.length > 0)
    await broker.deleteTopics(changelogs)
    await broker.close()
    appendFileSync(feed, lines(500, 700))
    const refused = await run()
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /CHANGELOG_LOST/)
    const again = await run('engine.state.lost-changelogs=write-anew')
    assert.equal(again.code, 0, again.stderr)
    assert.deepEqual(lastTotals(again.stdout), totals(700))
    rmSync(join(folder, 'state'), { recursive: true })
    appendFileSync(feed, lines(700, 800))
    const rebuilt = await run()
    assert.equal(rebuilt.code, 0, rebuilt.stderr)
    assert.deepEqual(lastTotals(rebuilt.stdout), totals(800))
  })
})
