/** With at-least-once nothing holds results back: they leave ahead of their commit, and none is lost though processes are killed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { defineApp, serdes } from '../../src/index.ts'
import type { In } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const out = { key: serdes.string, value: serdes.json<number>() }

/** Counts by a new key, so that records go from lane to lane. */
const counting = defineApp({
  applicationId: 'sim',
  build: (topology) =>
    topology
      .stream('in', { key: serdes.string, value: serdes.json<string>() })
      .selectKey((value) => value)
      .groupByKey({ key: serdes.string, value: serdes.json<string>() })
      .count()
      .toStream()
      .to('out', out),
})

const longMs = 60_000

const committed = (engine: VirtualEngine): Promise<unknown> => engine.broker.committedOffsets('sim', null, true)

for (const [guarantee, seen] of [
  ['at-least-once', 1],
  ['exactly-once', 0],
] as const) {
  test(`of a record that came alone ${seen === 1 ? 'the result is' : 'no result is'} seen before its commit (${guarantee})`, async () => {
    const engine = new VirtualEngine({
      compile: () => counting.compile(),
      settings: { guarantee, lanes: 2, commitIntervalMs: longMs, commitIdleIntervalMs: longMs },
    })
    await engine.start()
    await engine.runs()
    // The first one is committed at once.
    await engine.put('in', [{ key: 'a', value: 'zero', timestamp: 1000 }])
    await engine.passes(2000)
    for (const [i, word] of ['one', 'two', 'three'].entries()) {
      const before = await committed(engine)
      await engine.put('in', [{ key: 'a', value: word, timestamp: 1000 + i }])
      await engine.passes(2000)
      assert.deepEqual(await committed(engine), before)
      const results = await engine.read('out')
      assert.equal(results.filter(({ key }) => key === word).length, seen)
    }
  })
}

test('results do not wait for the offsets of the commit before', async () => {
  const { promise: stored, resolve: store } = Promise.withResolvers<void>()
  let holds = false
  let held = 0
  const engine = new VirtualEngine({
    compile: () => counting.compile(),
    settings: { guarantee: 'at-least-once', lanes: 2, commitIntervalMs: 20, commitIdleIntervalMs: 20 },
    tamper: async (name, args, call) => {
      if (holds && name === 'commitOffsets') {
        held++
        await stored
      }
      return await call(args)
    },
  })
  await engine.start()
  await engine.runs()
  await engine.settled()
  holds = true
  for (const word of ['one', 'two']) {
    await engine.put('in', [{ key: 'a', value: word, timestamp: 1000 }])
    await engine.passes(1000)
    assert.deepEqual(
      (await engine.read('out')).filter(({ key }) => key === word).map(({ value }) => value),
      [1],
    )
  }
  assert.equal(held, 1)
  store()
  await engine.settled()
})

const seeds = 20
const words = ['red', 'green', 'blue', 'grey']

test(`every result is seen in its order though processes are killed, ${seeds} seeds`, async () => {
  let kills = 0
  let repeated = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const random = new Random(seed)
    const settings = { lanes: 1 + random.int(3), commitIntervalMs: 20 + random.int(200), commitIdleIntervalMs: 20 }
    const engine = new VirtualEngine({
      compile: () => counting.compile(),
      settings: { guarantee: 'at-least-once', ...settings },
    })
    const sent = new Map<string, number>()
    await engine.start()
    await engine.runs()
    for (let n = 0; n < 40; n++) {
      const records = Array.from({ length: random.int(8) }, (_, i): In => {
        const word = words[random.int(words.length)] as string
        sent.set(word, (sent.get(word) ?? 0) + 1)
        return { key: `k${random.int(5)}`, value: word, timestamp: 1000 + n * 10 + i }
      })
      if (records.length > 0) await engine.put('in', records)
      await engine.passes(random.int(40))
      if (random.int(8) > 0) continue
      kills++
      await engine.start()
      await engine.runs()
    }
    await engine.settled()
    const results = await engine.read('out')
    for (const [word, count] of sent) {
      const told = results.filter(({ key }) => key === word).map(({ value }) => value as number)
      let highest = 0
      for (const value of told) {
        assert.ok(value <= highest + 1, `seed ${seed}: ${word} goes from ${highest} to ${value}`)
        if (value <= highest) repeated++
        highest = Math.max(highest, value)
      }
      assert.ok(highest >= count, `seed ${seed}: of ${count} ${word} ${highest} were counted`)
    }
    engine.kill()
  }
  assert.ok(kills > seeds, `${kills} kills`)
  assert.ok(repeated > 0, 'no process was killed between a result and its commit')
})
