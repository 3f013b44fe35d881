/** What a processor finds in stores that forget does not depend on which other records wait for a function. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstTime, type In, TestEngine } from './support/engine.ts'

const click = (key: string, n: number, at: number, slow = 0): In => ({
  key,
  value: { n, slow },
  timestamp: firstTime + at,
})

for (const slow of [0, 300]) {
  test(`what is forgotten follows from the record's own time: ${slow === 0 ? 'at once' : 'beside one that waits'}`, async (t) => {
    const engine = await TestEngine.start(t, 'looking-back', { 'broker.embedded.partitions': 1 })
    await engine.put('clicks', [
      click('ann', 1, 0),
      click('bob', 2, 3_000, slow),
      // Before this one event time had come to 1 s, before the next one to 18 s.
      click('ann', 3, 20_000),
      click('ann', 4, 21_000),
      click('bob', 5, 22_000),
      // Nothing is put for this one: the rows before it are the newest, and their time is over all the same.
      click('nobody', 0, 40_000),
      click('ann', 6, 41_000),
      click('bob', 7, 41_001),
    ])
    await engine.idle()
    for (const topic of ['behind', 'within']) {
      const found = new Map<string, unknown[]>()
      for (const { key, value } of await engine.read(topic)) {
        const { windows, sessions } = value as Record<'windows' | 'sessions', number[]>
        assert.deepEqual(sessions, windows)
        found.set(key as string, [...(found.get(key as string) ?? []), windows])
      }
      assert.deepEqual(Object.fromEntries(found), { ann: [[], [1], [3], []], bob: [[], [], []] }, topic)
    }
  })
}
