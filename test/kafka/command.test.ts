/** The command line on a real Kafka: the same as on the embedded broker. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { kafkaForTests, type TestKafka } from '../support/kafka.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'

const app = join(import.meta.dirname, '..', 'cli', 'apps', 'totals.ts')
const folder = mkdtempSync(join(tmpdir(), 'millrace-command-'))

describe('the command on Kafka', async () => {
  const kafka = await kafkaForTests()
  const skip = 'skip' in kafka ? kafka.skip : false
  const servers = 'skip' in kafka ? '' : kafka.bootstrap

  const input = Array.from({ length: 3000 }, (_, i) => ({ key: `k${i % 7}`, value: i, timestamp: i }))
  const feed = join(folder, 'amounts.ndjson')
  const settings = [
    `broker.bootstrap-servers=${servers}`,
    'runtime.http.enabled=false',
    'engine.lanes.count=2',
    'engine.state.store=memory',
  ]
  const args = ['run', app, '--feed', `amounts=${feed}`, ...settings.flatMap((setting) => ['--set', setting])]
  const prints = ['--print', 'passed', '--print', 'totals', '--until-idle']

  before(async () => {
    writeFileSync(feed, input.map((record) => `${JSON.stringify(record)}\n`).join(''))
    if (skip) return
    const broker = await connectKafka({ bootstrapServers: [servers], clientId: 'test', requestTimeoutMs: 10_000 })
    await broker.createTopics(['amounts', 'passed', 'totals'].map((topic) => ({ topic, partitions: 4 })))
    await broker.close()
  })
  after(async () => {
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await (kafka as TestKafka).stop()
  })

  test('resumes a feed after kill -9, and prints each record once', { skip }, async () => {
    const first = startMillrace([...args, '--feed-rate', '500'])
    // In the middle of the feed, however long a busy machine takes to start.
    await eventually('it runs', () => /→ RUNNING/.test(first.stderr()) || first.child.exitCode !== null)
    await sleep(1500)
    first.child.kill('SIGKILL')
    assert.equal((await first.result).signal, 'SIGKILL')

    const { code, stdout, stderr } = await millrace([...args, ...prints])
    assert.equal(code, 0, stderr)
    const lines = stdout.trimEnd().split('\n')
    const records = lines.map((line) => JSON.parse(line) as { topic: string; key: string; value: number })
    const passed = records.filter((record) => record.topic === 'passed').map((record) => record.value)
    assert.deepEqual(
      passed.toSorted((a, b) => a - b),
      input.map((record) => record.value),
    )
    const totals = new Map(records.filter((record) => record.topic === 'totals').map(({ key, value }) => [key, value]))
    const expected = new Map<string, number>()
    for (const { key, value } of input) expected.set(key, (expected.get(key) ?? 0) + value)
    assert.deepEqual(totals, expected)
  })
})
