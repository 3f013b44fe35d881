/** A commit remembers how far event time has come, and the next start takes everything up to there for done. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeTag } from '../../src/engine/commit/tag.ts'
import { defineApp, serdes, tumbling } from '../../src/index.ts'
import { lastByKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const windowMs = 100
const time = 1_000_000

test('a commit that waits for a slow function has what timers told up to the watermark that it remembers', async () => {
  const slow = Promise.withResolvers<void>()
  let isAsked = false
  const application = defineApp({
    applicationId: 'sim',
    build: (topology) =>
      topology
        .stream('in', { key: serdes.string, value: serdes.json<number>() })
        .mapValues((value, key) => {
          if (key !== 'slow') return value
          isAsked = true
          return slow.promise.then(() => value)
        })
        .groupByKey()
        .windowedBy(tumbling(windowMs), { emit: 'on-close' })
        .count()
        .toStream()
        .map((count, { key }) => [key, count])
        .to('out', { key: serdes.string, value: serdes.json<number>() }),
  })
  const partitions = [0, 1].map((partition) => ({ topic: 'in', partition }))
  const engine = new VirtualEngine({
    compile: () => application.compile(),
    settings: { lanes: 1, commitIntervalMs: 500, commitIdleIntervalMs: 500 },
  })
  await engine.start()
  await engine.runs()
  await engine.put(
    'in',
    partitions.map(({ partition }) => ({ key: 'first', value: 1, timestamp: time - 1, partition })),
  )
  await engine.settled()
  await engine.put('in', [
    { key: 'quick', value: 1, timestamp: time, partition: 0 },
    { key: 'slow', value: 1, timestamp: time + 1, partition: 0 },
    { key: 'last', value: 1, timestamp: time + 10 * windowMs, partition: 0 },
    { key: 'last', value: 1, timestamp: time + 10 * windowMs, partition: 1 },
  ])
  await engine.until('the function is asked', () => isAsked)
  // By then a commit waits for it.
  await engine.passes(1000)
  slow.resolve()
  const watermark = async (): Promise<number> => {
    const offsets = await engine.broker.committedOffsets('sim', partitions, true)
    return Math.max(...offsets.map(({ metadata }) => decodeTag(metadata)?.watermark ?? 0))
  }
  let remembered = 0
  await engine.until('it is committed', () => {
    void watermark().then((at) => {
      remembered = at
    })
    return remembered >= time + windowMs
  })
  engine.kill()
  assert.deepEqual(lastByKey(await engine.read('out')), { first: 2, quick: 1, slow: 1 })
})
