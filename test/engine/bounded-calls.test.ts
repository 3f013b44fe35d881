/** As many calls of a function at once as the application allows, whichever operator makes them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { byKey, firstTime, type In, TestEngine } from './support/engine.ts'

interface Seen {
  readonly most: number
  readonly count: number
}

test('processors, aggregates and joins make as many calls at once as they may, and a join asks again', async (t) => {
  const engine = await TestEngine.start(t, 'bounded-calls', { 'engine.lanes.count': 1 })
  const keys = 20
  const records = Array.from({ length: 3 * keys }, (_, n): In => {
    return { key: `k${n % keys}`, value: n, timestamp: firstTime + n }
  })
  await engine.put('others', records.slice(0, keys))
  await engine.put('calls', records)
  await engine.idle()
  for (const topic of ['process', 'table', 'self', 'stream']) {
    const calls = (await engine.read(topic)).map(({ value }) => value as number)
    assert.equal(calls.length, records.length, topic)
    assert.ok(Math.max(...calls) <= 2, `${Math.max(...calls)} calls of ${topic} at once`)
  }
  for (const topic of ['aggregate', 'window']) {
    const seen = byKey<Seen>(await engine.read(topic))
    assert.equal(Object.keys(seen).length, keys, topic)
    for (const list of Object.values(seen)) {
      assert.deepEqual(
        list.map(({ count }) => count),
        [1, 2, 3],
        topic,
      )
    }
    const most = Math.max(...Object.values(seen).flatMap((list) => list.map(({ most }) => most)))
    assert.ok(most <= 2, `${most} calls of ${topic} at once`)
  }
  const again = byKey<number>(await engine.read('again'))
  assert.deepEqual(
    again,
    Object.fromEntries(Array.from({ length: keys }, (_, i) => [`k${i}`, [i, i + keys, i + 2 * keys]])),
  )
})

test('records whose calls never come through become dead letters, and hold nobody up for good', async (t) => {
  const settings = { 'engine.lanes.count': 2, 'errors.processing': 'dead-letter', 'broker.embedded.partitions': 4 }
  const engine = await TestEngine.start(t, 'poison-calls', settings)
  const numbers = (from: number, to: number): In[] =>
    Array.from({ length: to - from }, (_, i): In => {
      return { key: `k${(from + i) % 777}`, value: from + i, timestamp: firstTime + from + i }
    })
  const isPoison = (n: number): boolean => n % 211 === 7
  await engine.put('in', numbers(0, 10_000))
  const poison = numbers(0, 10_000).filter(({ value }) => isPoison(value as number)).length
  // Of the last one nothing is known until another call of its lane comes through: the service may be away.
  let put = 10_000
  const letters = (): Promise<unknown[]> => engine.read('poison-calls-dead-letters')
  while ((await letters()).length < poison) {
    assert.ok(put < 40_000, `${(await letters()).length} of ${poison} dead letters`)
    const more = numbers(put, put + 40).filter(({ value }) => !isPoison(value as number))
    await engine.put('in', more)
    put += 40
    await sleep(250)
  }
  await engine.idle()
  const told = (await engine.read('out')).map(({ value }) => value as number)
  assert.deepEqual(
    told.sort((a, b) => a - b),
    Array.from({ length: put }, (_, n) => n).filter((n) => !isPoison(n)),
  )
  assert.equal((await letters()).length, poison)
})
