/** The embedded broker as a thread of its own: connections, the end of the process, and what a killed one leaves. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { Random } from '../../../src/base/random.ts'
import { startEmbeddedBroker } from '../../../src/broker/embedded/start.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { temporaryFolder } from './embedded-support.ts'
import { batchOf, newTopic, Producer, readToEnd, refused, valuesOf } from './support.ts'

const workload = join(import.meta.dirname, 'embedded-workload.ts')

/** Ends the process hard after so many milliseconds of work, and gives what it acknowledged until then. */
async function killedAfter(folder: string, workMs: number): Promise<{ committed: number; fed: number }> {
  const child: ChildProcess = spawn(process.execPath, [workload, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  while (!output.includes('begun')) {
    assert.equal(child.exitCode, null, 'the workload ended by itself')
    await sleep(5)
  }
  await sleep(workMs)
  child.kill('SIGKILL')
  await once(child, 'close')
  const told = { committed: 0, fed: 0 }
  for (const [, what, count] of output.matchAll(/^(committed|fed) (\d+)$/gm)) {
    told[what as keyof typeof told] = Number(count)
  }
  return told
}

async function checkConsistent(client: BrokerPort): Promise<{ committed: number; fed: number }> {
  const [offset] = await client.committedOffsets('workload', [{ topic: 'left', partition: 0 }], true)
  const committed = Math.max(offset?.offset ?? 0, 0)
  const expected = Array.from({ length: committed }, (_, i) => `${i}`)
  assert.deepEqual(await valuesOf(client, 'left'), expected)
  assert.deepEqual(await valuesOf(client, 'right'), expected)
  return { committed, fed: 0 }
}

describe('the embedded broker as a thread', () => {
  test('kill -9 at any moment: what was acknowledged is stored once, what was not is not there in part', async (t) => {
    const folder = temporaryFolder(t)
    const random = new Random(Number(process.env.SEED ?? 20))
    for (let round = 0; round < 8; round++) {
      const told = await killedAfter(folder, random.int(120))
      const broker = await startEmbeddedBroker({ folder, partitions: 4 })
      const client = broker.client()
      // The successor takes the transactional id over, which decides what was open.
      await Producer.start(client, 'workload')
      const { committed } = await checkConsistent(client)
      assert.ok(committed >= told.committed && committed <= told.committed + 1, `${committed}, ${told.committed} told`)
      const lines = await client.feedMark('fed', 'lines')
      assert.ok(lines >= told.fed, `${lines} lines, ${told.fed} told`)
      const fed: string[] = []
      for (const partition of [0, 1, 2]) {
        for (const { value } of (await readToEnd(client, 'fed', { partition })).records) fed.push(value ?? '')
      }
      assert.deepEqual(
        fed.map(Number).sort((a, b) => a - b),
        Array.from({ length: lines }, (_, i) => i),
      )
      await broker.close()
    }
  })

  test('a second process on the folder is refused while the first runs', async (t) => {
    const folder = temporaryFolder(t)
    const broker = await startEmbeddedBroker({ folder, partitions: 1 })
    await refused(startEmbeddedBroker({ folder, partitions: 1 }), 'STORAGE_LOCKED')
    await broker.close()
    await (await startEmbeddedBroker({ folder, partitions: 1 })).close()
  })

  test('neither an idle broker nor an idle connection keeps a process alive; a call under way does', async (t) => {
    const module = join(import.meta.dirname, '../../../src/broker/embedded/start.ts')
    const program = join(temporaryFolder(t), 'program.mjs')
    writeFileSync(
      program,
      `const { startEmbeddedBroker } = await import(${JSON.stringify(module)})
      const broker = await startEmbeddedBroker({ partitions: 1 })
      const client = broker.client()
      await client.createTopics([{ topic: 't', partitions: 1 }])
      const partitions = [{ topic: 't', partition: 0, offset: 0, maxBytes: 1 }]
      await client.fetch({ partitions, maxWaitMs: 200, maxBytes: 1, isolation: 'read_committed' })
      console.log('done')`,
    )
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
    const [code] = await once(child, 'close')
    assert.equal(code, 0)
    assert.equal(output, 'done\n')
  })

  test('a connection can be sent to another thread and used there', async () => {
    const broker = await startEmbeddedBroker({ partitions: 1 })
    const port = broker.connect()
    const source = `
      import { workerData, parentPort } from 'node:worker_threads'
      const { clientOverPort } = await import(workerData.module)
      const client = clientOverPort(workerData.port)
      await client.createTopics([{ topic: 'from-afar', partitions: 2 }])
      parentPort.postMessage(await client.topics(null))
      await client.close()`
    const worker = new Worker(source, {
      eval: true,
      workerData: { port, module: join(import.meta.dirname, '../../../src/broker/embedded/client.ts') },
      transferList: [port],
    })
    const [topics] = (await once(worker, 'message')) as [ReadonlyArray<{ topic: string; partitions: number }>]
    assert.deepEqual(
      topics.map(({ topic, partitions }) => [topic, partitions]),
      [['from-afar', 2]],
    )
    await broker.close()
  })

  test('calls that wait when the broker closes fail as unreachable, and so do later ones', async () => {
    const broker = await startEmbeddedBroker({ partitions: 1 })
    const client = broker.client()
    const topic = await newTopic(client)
    assert.equal(client.connected, true)
    const partitions = [{ topic, partition: 0, offset: 0, maxBytes: 1 }]
    const fetching = client.fetch({ partitions, maxWaitMs: 60_000, maxBytes: 1, isolation: 'read_committed' })
    const failing = refused(fetching, 'UNREACHABLE')
    await broker.close()
    await failing
    assert.equal(client.connected, false)
    await refused(client.topics(null), 'UNREACHABLE')
  })

  test('one closed connection leaves the others alone', async () => {
    const broker = await startEmbeddedBroker({ partitions: 1 })
    const [one, other] = [broker.client(), broker.client()]
    const topic = await newTopic(one)
    await one.close()
    await refused(one.topics(null), 'UNREACHABLE')
    await other.produce({ transactionalId: null, batches: [{ topic, partition: 0, records: batchOf(['a']) }] })
    assert.deepEqual(await valuesOf(other, topic), ['a'])
    await broker.close()
  })

  test('the first write to a topic makes it, with the default number of partitions', async () => {
    const broker = await startEmbeddedBroker({ partitions: 3 })
    const client = broker.client()
    await client.produce({ transactionalId: null, batches: [{ topic: 'new', partition: 2, records: batchOf(['a']) }] })
    assert.equal((await client.topics(['new']))[0]?.partitions, 3)
    const elsewhere = [{ topic: 'newer', partition: 3, records: batchOf(['a']) }]
    await refused(client.produce({ transactionalId: null, batches: elsewhere }), 'UNKNOWN_TOPIC_OR_PARTITION')
    await broker.close()
  })
})
