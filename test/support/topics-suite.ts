/** `runtime.produce` and `runtime.read`, the same over both brokers. The application is test/engine/apps/running-sum.ts. */
import assert from 'node:assert/strict'
import { serdes } from 'millrace'
import type { Runtime } from 'millrace/runtime'
import { test } from 'node:test'

const perKey = 1500
const keys = ['ann', 'bob', 'cid', 'dee']

async function* manyRecords(): AsyncGenerator<{ key: string; value: number; timestamp: number }> {
  for (let i = 0; i < perKey; i++) for (const key of keys) yield { key, value: i, timestamp: 1000 + i }
}

async function collected<T>(reading: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of reading) all.push(item)
  return all
}

/** The tests share one runtime and run in this order. `skip` says why there is none. */
export function topicsSuite(runtimeOf: () => Runtime, skip: string | false = false): void {
  test('what is produced from a generator is processed in order, and read to its end', { skip }, async () => {
    const runtime = runtimeOf()
    assert.equal(await runtime.produce('numbers', manyRecords()), perKey * keys.length)
    const numbers = await collected(runtime.read<string, number>('numbers', { until: 'end' }))
    assert.equal(numbers.length, perKey * keys.length)
    for (const key of keys) {
      const values = numbers.filter((record) => record.key === key).map((record) => record.value)
      assert.deepEqual(
        values,
        Array.from({ length: perKey }, (_, i) => i),
      )
    }
    await runtime.untilIdle()
    const sums = await collected(runtime.read<string, number>('sums', { until: 'end' }))
    const last = new Map(sums.map(({ key, value }) => [key, value]))
    const expected = [0, 0, 0]
    for (let i = 0; i < perKey; i++) expected[i % 3]! += i * keys.length
    assert.deepEqual(
      [0, 1, 2].map((rest) => last.get(`mod-${rest}`)),
      expected,
    )
  })

  test('key, headers, partition and deletions come back as they were given', { skip }, async () => {
    const runtime = runtimeOf()
    const news = runtime.read('seen', { from: 'latest' })
    const first = news.next()
    // Whether the reader has begun shows only when something comes: it is written until it has.
    let stop = false
    const writing = (async () => {
      for (let i = 0; !stop; i++) {
        const record = { key: `new-${i}`, value: null, timestamp: 77, partition: 1, headers: [['trace', 'x']] as const }
        await runtime.produce('seen', [record])
      }
    })()
    const { value } = await first
    stop = true
    await writing
    assert.ok(value)
    assert.match(String(value.key), /^new-\d+$/)
    assert.deepEqual([value.value, value.timestamp, value.partition, value.headers], [null, 77, 1, [['trace', 'x']]])
    await news.return()
  })

  test('a reader ends by its signal', { skip }, async () => {
    const abort = new AbortController()
    const reading = collected(runtimeOf().read('sums', { from: 'latest', signal: abort.signal }))
    abort.abort()
    assert.ok(Array.isArray(await reading))
  })

  test('a topic that the application does not know wants serdes', { skip }, async () => {
    const runtime = runtimeOf()
    await assert.rejects(runtime.produce('number', [{ value: 1 }]), {
      code: 'USAGE',
      message: /neither reads nor writes the topic number.*Did you mean numbers\?/,
    })
    assert.throws(() => runtime.read('other'), { code: 'USAGE' })
    const own = { key: serdes.string, value: serdes.string }
    if (runtime.broker.kind === 'kafka') {
      await assert.rejects(runtime.produce('missing', [{ value: 'x' }], own), { code: 'TOPIC_MISSING' })
      await runtime.broker.createTopics([{ topic: 'other', partitions: 2 }])
    }
    await runtime.produce('other', [{ key: 'k', value: 'plain text', timestamp: 5 }], own)
    const [record] = await collected(runtime.read('other', { ...own, until: 'end' }))
    assert.deepEqual([record?.key, record?.value], ['k', 'plain text'])
    const wrong = collected(runtime.read('other', { value: serdes.json(), until: 'end' }))
    await assert.rejects(wrong, { code: 'DECODE_FAILED', message: /offset 0 of other, partition/ })
  })

  test('a record that cannot be written says which it is and why, and the next call goes on', { skip }, async () => {
    const runtime = runtimeOf()
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const cases: ReadonlyArray<readonly [object, RegExp]> = [
      [{ value: cyclic }, /Record 1 .* value that its serde refuses/],
      [{ value: 1, timestamp: 1.5 }, /Record 1 .* timestamp 1\.5/],
      [{ value: 1, partition: 99 }, /Record 1 .* partition 99; there are 4/],
    ]
    for (const [record, message] of cases) {
      const records = [{ value: 0, timestamp: 1 }, record as { value: number }]
      await assert.rejects(runtime.produce('numbers', records), { code: 'USAGE', message })
    }
    assert.equal(await runtime.produce('numbers', [{ key: 'eve', value: 1 }]), 1)
  })
}
