/** Records that wait for a timer's function, beside others of the same event time that do not. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keySlot } from '../../src/base/hash.ts'
import { type In, TestEngine } from './support/engine.ts'

const rounds = 20

describe('a record that waits for a timer of its task', () => {
  test('is not overtaken behind a re-key by one that came after it at the same watermark', async (t) => {
    const engine = await TestEngine.start(t, 'slow-timers', { 'broker.embedded.partitions': 2 })
    await engine.reaches('RUNNING')
    engine.runtime.commands.pause()
    await engine.reaches('PAUSED')
    const keysOf = (partition: number): readonly string[] =>
      Array.from({ length: 100 }, (_, i) => `k${i}`).filter((key) => keySlot(Buffer.from(key)) % 2 === partition)
    const records: In[] = []
    for (let n = 0; n < rounds; n++) {
      const at = 1_700_000_000_000 + n * 1000
      const [a, z] = keysOf(0)
      const [b] = keysOf(1)
      // In the order in which they are dispatched. The watermark has come to at + 10 before the third one, and stays there.
      records.push({ key: a!, partition: 0, timestamp: at, value: { n: 5 * n, timerAt: at + 5 } })
      records.push({ key: z!, partition: 0, timestamp: at + 10, value: { n: 5 * n + 1 } })
      records.push({ key: a!, partition: 0, timestamp: at + 5, value: { n: 5 * n + 2, slowMs: 20 } })
      records.push({ key: b!, partition: 1, timestamp: at + 10, value: { n: 5 * n + 3 } })
      records.push({ key: b!, partition: 1, timestamp: at + 6, value: { n: 5 * n + 4 } })
    }
    await engine.put('steps', records)
    engine.runtime.commands.unpause()
    await engine.idle()
    const told = (await engine.read('in-order')).map(({ value }) => (value as { n: number }).n)
    assert.deepEqual(
      told,
      records.map((_, n) => n),
    )
  })
})
