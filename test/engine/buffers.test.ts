/** What is read ahead is bounded in bytes over all partitions, seen as an operator sees it: through the metrics. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { handedOverBytes } from '../../src/base/counters.ts'
import { keySlot } from '../../src/base/hash.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { TestEngine } from './support/engine.ts'

const partitions = 256
const batchesEach = 4
const perBatch = 15
const kibibyte = 1024
const bound = 1024 * kibibyte

/** Bytes of the input, and of its largest batch. */
async function feed(engine: TestEngine): Promise<{ bytes: number; largest: number }> {
  await engine.broker.createTopics([{ topic: 'calls', partitions }])
  const padding = 'x'.repeat(kibibyte)
  const builder = new RecordBatchBuilder()
  let [n, bytes, largest] = [0, 0, 0]
  for (let round = 0; round < batchesEach; round++) {
    const batches = Array.from({ length: partitions }, (_, partition) => {
      for (let i = 0; i < perBatch; i++) {
        const value = Buffer.from(JSON.stringify({ n, ms: 1, padding }))
        builder.append(1_700_000_000_000 + n, Buffer.from(`k${n++}`), value, [])
      }
      bytes += builder.bytes
      largest = Math.max(largest, builder.bytes)
      return { topic: 'calls', partition, records: builder.finish() }
    })
    await engine.broker.produce({ transactionalId: null, batches })
  }
  return { bytes, largest }
}

async function figure(engine: TestEngine, name: string): Promise<number> {
  const answer = await fetch(new URL('/metrics', engine.runtime.url))
  const line = (await answer.text()).split('\n').find((each) => each.startsWith(`${name} `))
  assert.ok(line !== undefined, `${name} is no metric`)
  return Number(line.slice(name.length + 1))
}

describe('bytes read ahead', () => {
  test('stay within their bound with 256 partitions and a slow application, and nothing is left out', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', {
      'runtime.http.enabled': true,
      'runtime.http.host': '127.0.0.1',
      'runtime.http.port': 0,
      'broker.embedded.partitions': partitions,
      'engine.processing.buffered-max-bytes': bound,
      'lane.queue-bytes': 64 * kibibyte,
      'lane.max-in-flight': 16,
    })
    await engine.reaches('RUNNING')
    const { bytes, largest } = await feed(engine)
    assert.ok(bytes > 12 * bound, 'there is far more to read than may be buffered')
    let done = false
    const idle = engine.idle().finally(() => {
      done = true
    })
    while (!done) {
      assert.ok((await figure(engine, 'engine_source_buffered_bytes')) <= bound + largest)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    await idle
    assert.equal(await figure(engine, 'engine_source_buffered_limit_bytes'), bound)
    const peak = await figure(engine, 'engine_source_buffered_peak_bytes')
    assert.ok(peak <= bound + largest, `${peak} bytes were buffered, ${bound} are allowed and one batch of ${largest}`)
    assert.ok(peak > bound / 2, `no more than ${peak} bytes were ever buffered: the bound was not put to the test`)
    assert.equal((await engine.read('answers')).length, partitions * batchesEach * perBatch)
  })

  test('records that one lane hands to another are bounded, too: nobody is let in while they wait', async (t) => {
    const engine = await TestEngine.start(t, 'one-key', { 'lane.queue-bytes': 64 * kibibyte })
    await engine.reaches('RUNNING')
    // None of these keys is of the lane that all of them are re-keyed to.
    const other = 1 - (keySlot(Buffer.from('one')) % 2)
    const keys = Array.from({ length: 100 }, (_, i) => `k${i}`).filter((key) => keySlot(Buffer.from(key)) % 2 === other)
    const text = 'x'.repeat(4 * kibibyte)
    const count = 4000
    const records = Array.from({ length: count }, (_, i) => ({ key: keys[i % keys.length] as string, value: text }))
    for (let at = 0; at < count; at += 100) await engine.put('many', records.slice(at, at + 100))
    let most = 0
    let done = false
    const idle = engine.idle().finally(() => {
      done = true
    })
    while (!done) {
      most = Math.max(most, handedOverBytes(engine.runtime.view.counters()?.lanes ?? []))
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    await idle
    assert.ok(most > 0, 'no record was ever seen to wait')
    assert.ok(most < kibibyte * kibibyte, `${most} bytes waited for one lane`)
    // A value is fed as JSON, with its quotation marks.
    assert.equal((await engine.read('sums')).length, count)
  })
})
