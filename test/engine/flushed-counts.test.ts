/** A schedule that tells what a store has and takes it out, while records come: none of them may be lost between the two. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { eventually } from '../support/millrace.ts'
import { firstTime, type In, TestEngine } from './support/engine.ts'

const partitions = 4
const random = new Random(3)
/** Half of them are of one key. */
const records: readonly In[] = Array.from({ length: 20_000 }, (_, n) => ({
  key: random.chance(0.5) ? 'hot' : `cold-${random.int(200)}`,
  value: n,
  timestamp: firstTime + n * 10,
}))
/** Event time goes on behind all of them, in each partition. */
const ends: readonly In[] = Array.from({ length: partitions }, (_, partition) =>
  [1, 2].map((hours) => ({ key: 'end', value: 1, partition, timestamp: firstTime + hours * 3_600_000 })),
).flat()
const expected = new Map([...Map.groupBy(records, ({ key }) => key)].map(([key, all]) => [key, all.length]))
const inOrder = (counts: ReadonlyMap<string | null, number>): unknown[] => [...counts].sort()

/** What has been told of each key, all in all. */
async function told(engine: TestEngine, topic: string): Promise<Map<string | null, number>> {
  const sums = new Map<string | null, number>()
  for (const { key, value } of await engine.read(topic)) sums.set(key, (sums.get(key) ?? 0) + (value as number))
  sums.delete('end')
  return sums
}

async function assertAll(engine: TestEngine): Promise<void> {
  await engine.idle()
  assert.deepEqual(inOrder(await told(engine, 'by-event-time')), inOrder(expected))
  const sum = async (): Promise<number> => [...(await told(engine, 'by-clock')).values()].reduce((a, b) => a + b, 0)
  // Where it does not, what differs says more than that it took too long.
  await eventually('the clock has brought the rest', async () => (await sum()) >= records.length, 20_000).catch(
    () => undefined,
  )
  assert.deepEqual(inOrder(await told(engine, 'by-clock')), inOrder(expected))
}

const config = { 'broker.embedded.partitions': partitions }

describe('counts that a schedule takes out of their store', () => {
  for (const lanes of [1, 2, 4])
    test(`are all told, with ${lanes} lanes`, async (t) => {
      const engine = await TestEngine.start(t, 'flushed-counts', { ...config, 'engine.lanes.count': lanes })
      await engine.put('in', [...records, ...ends])
      await assertAll(engine)
    })

  test('are all told over stops on the way, from stores on disk', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-flushed-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const onDisk = {
      ...config,
      'broker.bootstrap-servers': `embedded:${join(folder, 'broker')}`,
      'engine.state.dir': join(folder, 'state'),
      'engine.state.store': 'lmdb',
    }
    for (const part of [0, 1, 2]) {
      const engine = await TestEngine.start(t, 'flushed-counts', onDisk)
      const size = Math.ceil(records.length / 3)
      const before = (await engine.read('by-event-time')).length
      await engine.put('in', [...records.slice(part * size, (part + 1) * size), ...(part === 2 ? ends : [])])
      if (part === 2) await assertAll(engine)
      else await eventually('some are told', async () => (await engine.read('by-event-time')).length > before)
      assert.equal(await engine.stop(), 0)
    }
  })
})
