/** Two processes that share the work through repartition topics: each record meets the row of its time all the same. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { examples } from '../reference/examples.ts'
import { differences, expectedOf } from '../reference/results.ts'
import { applicationOf, configOf, fill, readResults, untilIdle } from '../reference/run-engine.ts'
import { kafkaForTests } from '../support/kafka.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const records = Number(process.env.TOPIC_ORDER_RECORDS ?? 2000)

describe('two processes and the topics between them', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'topic-order' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-topic-order-'))
  const runtimes: Runtime[] = []
  const told: string[] = []
  after(async () => {
    // Where the test has failed, some still run. The others have nothing left to end.
    await Promise.all(runtimes.map((runtime) => runtime.kill()))
    rmSync(folder, { recursive: true, force: true })
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  test('give every order the price of its time, one of them ended in between', async () => {
    const program = examples.pricedOrders(1, records, false)
    await fill(port, program)
    const application = applicationOf(folder, program)
    const start = async (name: string): Promise<Runtime> => {
      const runtime = await startRuntime({
        application,
        config: {
          ...configOf(join(folder, name), {
            lanes: 2,
            store: 'memory',
            commitMs: 50,
            split: 'repartition-topics',
          }),
          'broker.bootstrap-servers': broker.bootstrap,
          'engine.instance-id': name,
        },
        log: ({ level, message, fields }) => {
          if (level === 'error' || level === 'warn') told.push(`${name}: ${message} ${JSON.stringify(fields ?? {})}`)
        },
      })
      runtimes.push(runtime)
      return runtime
    }
    const first = await start('first')
    const second = await start('second')
    const third = await start('third')
    assert.equal(await second.stop(), 0, told.join('\n'))
    await Promise.all([untilIdle(first, 240_000), untilIdle(third, 240_000)])
    assert.deepEqual(await Promise.all([first.stop(), third.stop()]), [0, 0], told.join('\n'))
    assert.deepEqual(differences(program, expectedOf(program).results, await readResults(port, program)), [])
  })
})
