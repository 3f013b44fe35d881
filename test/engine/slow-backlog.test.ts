/**
 * A backlog before slow functions, in a process that is killed twice under way: it commits step by step, restarts for
 * nothing, and has done each record once and in order. `scripts/slow-matrix.ts` runs the long ones, on Kafka too.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kinds } from './support/backlog/kinds.ts'
import { Scene } from './support/backlog/scene.ts'

/** However slow the machine is. */
const seconds = 200
const failsSeconds = 3

describe('an application over a backlog', () => {
  const scenes = [
    ['sync-20', 'lmdb'],
    ['one-key', 'memory'],
    ['failing-service', 'lmdb'],
  ] as const
  for (const [name, store] of scenes) {
    test(`${name}, with ${store} stores, killed under way`, async (t) => {
      const kind = kinds[name]?.(20_000)
      assert.ok(kind)
      const scene = new Scene({
        ...kind,
        ...(kind.failsSeconds !== undefined && { failsSeconds }),
        name: `backlog-${name}`,
        store,
        kills: 2,
        seconds,
        short: true,
      })
      const { committed, faults, complaints, steps, longestGapMs, kills } = await scene.play()
      t.diagnostic(`${committed} committed in ${steps} steps, longest gap ${longestGapMs} ms, ${kills} kills`)
      assert.deepEqual(faults, [])
      assert.deepEqual(complaints, [])
      assert.ok(committed > 0)
      assert.ok(kills === 2 || committed === kind.backlog.length)
    })
  }
})
