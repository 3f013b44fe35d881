/** Two processes of one group over a real Kafka: whoever is asked for a key of the other says where it is, and the command goes there. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { produce } from '../engine/support/engine.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually, millrace } from '../support/millrace.ts'
import { EngineProcess } from './verifier/harness.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const keys = Array.from({ length: 40 }, (_, n) => `key-${n}`)
const patienceMs = 240_000

interface Told {
  readonly status: number
  readonly body: { readonly rows?: readonly unknown[]; readonly error?: string; readonly address?: string }
}

describe('a key that another process has', { skip }, () => {
  const bootstrap = 'skip' in kafka ? 'nowhere:1' : kafka.bootstrap
  const folder = mkdtempSync(join(tmpdir(), 'millrace-owner-'))
  const port = connectKafka({ bootstrapServers: [bootstrap], clientId: 'feed' })
  const processes: EngineProcess[] = []

  before(async () => {
    await port.createTopics([{ topic: 'shared-events', partitions: 6 }])
    await produce(
      port,
      'shared-events',
      keys.map((key) => ({ key, value: {}, timestamp: 1_700_000_000_000 })),
      6,
    )
  })
  after(async () => {
    for (const each of processes) each.dispose()
    await port.close()
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function begin(name: string): Promise<EngineProcess> {
    const process = new EngineProcess({
      prefix: `owner-${name}`,
      bootstrap,
      stateFolder: join(folder, name),
      application: join('..', '..', 'engine', 'apps', 'shared-counts.ts'),
      announces: true,
      settings: {
        'runtime.endpoints.stores.enabled': 'true',
        'runtime.http.auth.token': 'open-sesame',
        'engine.instance-id': name,
        'engine.state.store': 'memory',
        'engine.lanes.count': '1',
        'topology.sub-topology-split': 'repartition-topics',
        'commit-barrier.interval-ms': '100',
      },
    })
    processes.push(process)
    await process.start()
    await process.untilReady(patienceMs)
    return process
  }

  async function rows(process: EngineProcess, key: string): Promise<Told> {
    const headers = { authorization: 'Bearer open-sesame' }
    const response = await fetch(`${process.url}/stores/counts?key=${key}`, { headers })
    return { status: response.status, body: (await response.json()) as Told['body'] }
  }

  test('is told with its address, and followed by the command with its token', async () => {
    const [one, two] = [await begin('one'), await begin('two')]
    const byStatus = async (): Promise<Map<number, string[]>> => {
      const said = await Promise.all(keys.map(async (key) => ({ key, ...(await rows(one, key)) })))
      for (const { status, body, key } of said) {
        if (status === 421) assert.equal(body.address, two.url, key)
        else if (status === 503) assert.match(body.error ?? '', /retry|restored|not complete|state is/, key)
        else assert.equal(status, 200, JSON.stringify(body))
      }
      return new Map(
        [...Map.groupBy(said, ({ status }) => status)].map(([status, list]) => [status, list.map(({ key }) => key)]),
      )
    }
    let shared = new Map<number, string[]>()
    await eventually(
      'each of them has some of the keys',
      async () => {
        shared = await byStatus()
        return shared.has(421) && shared.has(200) && !shared.has(503)
      },
      patienceMs,
    )
    for (const key of shared.get(421) ?? []) {
      await eventually(
        `the other one has ${key}`,
        async () => (await rows(two, key)).body.rows?.length === 1,
        patienceMs,
      )
    }
    const [theirs] = shared.get(421) as [string]
    const args = ['stores', 'counts', '--key', theirs, '--url', one.url, '-o', 'json']
    const asked = await millrace(args, { env: { RUNTIME_HTTP_AUTH_TOKEN: 'open-sesame' } })
    assert.equal(asked.code, 0, asked.stderr)
    const [row] = (JSON.parse(asked.stdout) as { rows: Array<{ key: string; value: number }> }).rows
    assert.deepEqual([row?.key, row?.value], [theirs, 1])
    // A key that nobody ever saw has an owner all the same, who says that there is none.
    const none = await millrace(['stores', 'counts', '--key', 'nobody', '--url', one.url, '-o', 'json'], {
      env: { RUNTIME_HTTP_AUTH_TOKEN: 'open-sesame' },
    })
    assert.deepEqual((JSON.parse(none.stdout) as { rows: unknown[] }).rows, [], none.stderr)
  })
})
