/** Records that change their key, and with it their lane: in the process, or through topics. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { byKey, firstTime, type In, lastByKey, type Out, TestEngine } from './support/engine.ts'

const words = ['ant', 'bee', 'cat', 'dog', 'elk', 'fox', 'gnu']

function input(seed: number): In[] {
  const random = new Random(seed)
  const start = Math.ceil(firstTime / 10_000) * 10_000
  return Array.from({ length: 3000 }, (_, n) => ({
    key: `user-${random.int(50)}`,
    value: random.pick(words),
    timestamp: start + n * 20 + random.int(900),
  }))
}

/** What the application must come to, by a few lines that know nothing of it. */
function expectation(records: readonly In[]) {
  const byWord: Record<string, number> = {}
  const windows: Record<string, number> = {}
  let even = 0
  for (const { value, timestamp } of records) {
    const word = value as string
    byWord[word] = (byWord[word] ?? 0) + 1
    if ((byWord[word] as number) % 2 === 0) even++
    const id = `${word}@${Math.floor((timestamp as number) / 10_000) * 10_000}`
    windows[id] = (windows[id] ?? 0) + 1
  }
  return { byWord, parity: { even, odd: records.length - even }, windows }
}

function windowsOf(records: readonly Out[]): Record<string, number> {
  const told: Record<string, number> = {}
  for (const { key, value } of records) {
    const [start, count] = value as [number, number]
    const id = `${key}@${start}`
    assert.equal(told[id], undefined, `${id} is told once`)
    told[id] = count
  }
  return told
}

/** Without the windows that the last records leave open. */
function closed(windows: Record<string, number>, records: readonly In[]): Record<string, number> {
  const end = Math.max(...records.map((r) => r.timestamp as number)) - 1000
  return Object.fromEntries(
    Object.entries(windows).filter(([id]) => Number(id.slice(id.indexOf('@') + 1)) + 11_000 <= end),
  )
}

async function check(engine: TestEngine, records: readonly In[]): Promise<void> {
  const expected = expectation(records)
  assert.deepEqual(lastByKey(await engine.read('by-word')), expected.byWord)
  const counts = byKey<number>(await engine.read('by-word'))
  for (const list of Object.values(counts))
    assert.deepEqual(
      list,
      list.map((_, i) => i + 1),
    )
  assert.deepEqual(lastByKey(await engine.read('by-parity')), expected.parity)
  const told = windowsOf(await engine.read('windows'))
  assert.deepEqual(closed(told, records), closed(expected.windows, records))
  for (const [id, count] of Object.entries(told)) assert.equal(count, expected.windows[id], id)
}

describe('records that change their key', () => {
  for (const lanes of [1, 2, 8]) {
    test(`reach the lane of each key, two levels deep: ${lanes} lanes`, async (t) => {
      const records = input(lanes)
      const engine = await TestEngine.start(t, 'two-levels', { 'engine.lanes.count': lanes })
      await engine.put('words', records)
      await engine.idle()
      await check(engine, records)
      const topics = (await engine.broker.topics(null)).map((info) => info.topic)
      assert.deepEqual(
        topics.filter((topic) => topic.endsWith('-repartition')),
        [],
      )
    })
  }

  for (const guarantee of ['exactly-once', 'at-least-once']) {
    test(`go through topics where the split says so (${guarantee})`, async (t) => {
      const records = input(9)
      const engine = await TestEngine.start(t, 'two-levels', {
        'topology.sub-topology-split': 'repartition-topics',
        'engine.processing.guarantee': guarantee,
      })
      await engine.put('words', records)
      await engine.idle()
      await check(engine, records)
      const topics = (await engine.broker.topics(null)).map((info) => info.topic)
      assert.ok(topics.some((topic) => topic.startsWith('two-levels-') && topic.endsWith('-repartition')))
    })
  }

  test('come to the same with the guarantee at-least-once', async (t) => {
    const records = input(10)
    const engine = await TestEngine.start(t, 'two-levels', { 'engine.processing.guarantee': 'at-least-once' })
    await engine.put('words', records)
    await engine.idle()
    await check(engine, records)
  })

  for (const lanes of [1, 4]) {
    test(`are joined, or told alone, though windows held them back for long: ${lanes} lanes`, async (t) => {
      const engine = await TestEngine.start(t, 'joined-finals', { 'engine.lanes.count': lanes })
      const keys = Array.from({ length: 12 }, (_, n) => `k${n + 10}`)
      const start = Math.ceil(firstTime / 1000) * 1000
      // Each of one time closes the windows of the time before.
      const records = [1, 10_001, 20_001, 30_001].flatMap((at) =>
        keys.map((key): In => ({ key, value: 1, timestamp: start + at })),
      )
      await engine.put('right', records)
      await engine.put('nothing', [{ key: 'nobody', value: '', timestamp: start + 30_001 }])
      await engine.put('left', records)
      await engine.idle()
      const told = async (topic: string): Promise<unknown[]> =>
        (await engine.read(topic)).map(({ value }) => value as string).sort()
      const thrice = (texts: readonly string[]): string[] => texts.flatMap((line) => [line, line, line])
      assert.deepEqual(await told('alone'), thrice(keys.map((key) => `${key}1 null`)))
      assert.deepEqual(await told('pairs'), thrice(keys.map((key) => `${key}1 ${key}1`)))
    })
  }
})
