/** The verifier itself: it takes results that are right, and finds each kind of fault in results that are not. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { batchOf, readAll, type ReadRecord, type TestRecord } from '../support/broker-io.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { VerifierTool } from './verifier/harness.ts'

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false
const partitions = 2
const windowMs = 10_000

type Output = 'echo' | 'sum' | 'list' | 'window' | 'count'
const outputs = ['echo', 'sum', 'list', 'window', 'count'] as const satisfies readonly Output[]
type Results = Record<Output, TestRecord[][]>

describe('the exactly-once verifier', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  let tool: VerifierTool
  let port: BrokerPort
  let runs = 0

  before(async () => {
    port = connectKafka({ bootstrapServers: [broker.bootstrap], clientId: 'verifier-test' })
    tool = await VerifierTool.compile(broker)
  })
  after(async () => {
    await port.close()
    tool.dispose()
    if (!('skip' in kafka)) await kafka.stop()
  })

  /** What an engine without a fault writes. */
  function resultsOf(input: readonly ReadRecord[][]): Results {
    const none = (): TestRecord[][] => Array.from({ length: partitions }, () => [])
    const results: Results = { echo: none(), sum: none(), list: none(), window: none(), count: none() }
    const [sums, lists, counts] = [new Map<string, number>(), new Map<string, string>(), new Map<string, number>()]
    input.forEach((records, partition) => {
      const write = (output: Output, key: string, value: string): void => {
        results[output][partition]?.push({ key, value })
      }
      const counted = (name: string): string => {
        counts.set(name, (counts.get(name) ?? 0) + 1)
        return String(counts.get(name))
      }
      for (const { key, value, timestamp } of records) {
        const [name, [sequence, amount, group]] = [key ?? '', (value ?? '').split('|') as [string, string, string]]
        sums.set(name, (sums.get(name) ?? 0) + Number(amount))
        lists.set(name, lists.has(name) ? `${lists.get(name)},${sequence}` : sequence)
        const window = `${name}@${timestamp - (timestamp % windowMs)}`
        write('echo', name, value ?? '')
        write('sum', name, String(sums.get(name)))
        write('list', name, lists.get(name) ?? '')
        write('window', window, counted(window))
        // One partition for all: these counts are over keys of every partition.
        results.count[0]?.push({ key: group, value: counted(group) })
      }
    })
    return results
  }

  async function verdictOf(spoil: (results: Results) => void) {
    const prefix = `verifier${++runs}`
    await tool.create(prefix, partitions)
    await tool.produce(prefix, { records: 400, keys: 10, rate: 0, seed: 7 })
    const input = await Promise.all(
      Array.from({ length: partitions }, (_, partition) => readAll(port, `${prefix}-in`, partition)),
    )
    const results = resultsOf(input)
    spoil(results)
    for (const [output, all] of Object.entries(results)) {
      for (const [partition, records] of all.entries()) {
        if (records.length === 0) continue
        const batch = { topic: `${prefix}-${output}`, partition, records: batchOf(records) }
        await port.produce({ transactionalId: null, batches: [batch] })
      }
    }
    // Time for the reader to see everything, also on a busy machine; what is missing then is missing.
    return tool.verify(prefix, 10_000, null)
  }

  const names = (errors: readonly string[], output: Output): boolean => errors.some((e) => e.startsWith(`${output} `))
  const records = (results: Results, output: Output): TestRecord[] => results[output][0] as TestRecord[]

  test('takes results that are right', async () => {
    const verdict = await verdictOf(() => undefined)
    assert.deepEqual(verdict.errors, [])
    assert.equal(verdict.inputs, 400)
  })

  test('finds results that were written twice, in every output', async () => {
    const verdict = await verdictOf((results) => {
      for (const output of outputs) {
        const all = records(results, output)
        all.splice(30, 0, all[29] as TestRecord)
      }
    })
    for (const output of outputs) assert.ok(names(verdict.errors, output), `${output}: ${verdict.errors.join('\n')}`)
  })

  test('finds last results that are missing, in every output', async () => {
    const verdict = await verdictOf((results) => {
      for (const output of outputs) records(results, output).pop()
    })
    for (const output of outputs) assert.ok(names(verdict.errors, output), `${output}: ${verdict.errors.join('\n')}`)
  })

  test('finds two swapped inputs in echo and list', async () => {
    const swap = (all: TestRecord[]): void => {
      const at = all.findIndex((record, i) => i > 20 && all.slice(0, i).some((before) => before.key === record.key))
      const before = all.findLastIndex((record, i) => i < at && record.key === all[at]?.key)
      ;[all[before], all[at]] = [all[at] as TestRecord, all[before] as TestRecord]
    }
    const verdict = await verdictOf((results) => {
      swap(records(results, 'echo'))
      swap(records(results, 'list'))
    })
    assert.ok(names(verdict.errors, 'echo') && names(verdict.errors, 'list'), verdict.errors.join('\n'))
  })

  test('finds a state that was computed from a lost or doubled input', async () => {
    const verdict = await verdictOf((results) => {
      const all = records(results, 'sum')
      all[50] = { ...(all[50] as TestRecord), value: String(Number(all[50]?.value) + 1_000_000) }
    })
    assert.match(verdict.errors.join('\n'), /which it never was/)
  })
})
