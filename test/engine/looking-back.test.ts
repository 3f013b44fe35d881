/** What a processor finds in stores that forget does not depend on which other records wait for a function. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstTime, type In, TestEngine } from './support/engine.ts'

const click = (key: string, n: number, at: number, slow = 0): In => ({
  key,
  value: { n, slow },
  timestamp: firstTime + at,
})

/** By key, in their order. */
async function found(engine: TestEngine, topic: string): Promise<Record<string, unknown[]>> {
  const byKey: Record<string, unknown[]> = {}
  for (const { key, value } of await engine.read(topic)) byKey[key as string] = [...(byKey[key as string] ?? []), value]
  return byKey
}

interface Seen {
  readonly windows: readonly number[]
  readonly sessions: readonly number[]
  readonly row: number
  readonly time: number
}

for (const slow of [0, 300]) {
  const how = slow === 0 ? 'at once' : 'beside one that waits'
  test(`what is forgotten follows from the record's own time: ${how}`, async (t) => {
    const engine = await TestEngine.start(t, 'looking-back', { 'broker.embedded.partitions': 1 })
    await engine.put('clicks', [
      click('ann', 1, 0),
      click('bob', 2, 3_000),
      click('bob', 3, 5_000, slow),
      // Before this one event time had come to 3 s, before the next one to 18 s.
      click('ann', 4, 20_000),
      click('ann', 5, 21_000),
      click('bob', 6, 22_000),
      // Nothing is put for this one: the windows before it are the newest, and their time is over all the same.
      click('nobody', 0, 40_000),
      click('ann', 7, 41_000),
      click('bob', 8, 41_001),
    ])
    await engine.idle()
    for (const topic of ['behind', 'within']) {
      const { ann, bob } = (await found(engine, topic)) as Record<string, Seen[]>
      const of = (what: keyof Seen): unknown => [ann, bob].map((all) => all?.map((seen) => seen[what]))
      const windows = [
        [[], [1], [4], []],
        [[], [2], [], []],
      ]
      assert.deepEqual(of('windows'), windows, topic)
      assert.deepEqual(of('sessions'), windows, topic)
      const rows = [
        [0, 0, 4, 0],
        [0, 2, 0, 0],
      ]
      assert.deepEqual(of('row'), rows, topic)
      const times = [
        [0, 20_000, 21_000, 41_000],
        [3_000, 5_000, 22_000, 41_001],
      ]
      const before = firstTime - 2_000
      assert.deepEqual(
        of('time'),
        times.map((all) => all.map((at) => before + at)),
        topic,
      )
    }
    assert.deepEqual(await found(engine, 'counted'), { ann: [1, 1, 2, 1], bob: [1, 2, 1, 1], nobody: [1] })
  })
}
