/** Which sessions a late record still reaches: its own watermark decides, not what else is under way. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes, session, type Windowed } from 'millrace'
import { TopologyTestDriver } from 'millrace/testing'

type Emission = 'on-update' | 'per-commit' | 'on-close'

function application(emit: Emission, retention: string | undefined) {
  return defineApp({
    applicationId: 'visits',
    build(topology) {
      topology
        .stream('clicks', { key: serdes.string, value: serdes.json<number>() })
        .mapValues(async (ms) => {
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
          return ms
        })
        .groupByKey()
        .windowedBy(session('3s', { grace: '10s' }), { emit })
        .count({ store: { name: 'visits', ...(retention === undefined ? {} : { retention }) } })
        .toStream()
        .to('visits')
    },
  })
}

/** The sessions of ann that are left, each with its count. */
async function sessions(emit: Emission, slowMs: number, retention?: string): Promise<string[]> {
  const driver = new TopologyTestDriver(application(emit, retention), { commits: 'interval' })
  await driver.input<string, number>('clicks').pipeAll([
    { key: 'ann', value: 0, timestamp: 0 },
    { key: 'bob', value: slowMs, timestamp: 1000 },
    { key: 'ann', value: 0, timestamp: 6000 },
    { key: 'cid', value: 0, timestamp: 15_000 },
    // It lies between both sessions of ann; the first one is over by now.
    { key: 'ann', value: 0, timestamp: 3000 },
    { key: 'cid', value: 0, timestamp: 60_000 },
  ])
  await driver.commit()
  const left = new Map<string, number | null>()
  for (const { key, value } of driver.output<Windowed<string>, number | null>('visits').readAll()) {
    if (key?.key !== 'ann') continue
    if (value === null) left.delete(`${key.start}-${key.end}`)
    else left.set(`${key.start}-${key.end}`, value)
  }
  driver.close()
  return [...left].map(([window, n]) => `${window}: ${n}`).sort()
}

describe('a late record between two sessions', () => {
  for (const emit of ['on-update', 'per-commit', 'on-close'] as const) {
    for (const slowMs of [0, 30]) {
      const beside = slowMs === 0 ? 'nothing waits' : 'an older record waits for a function'
      test(`joins the one that is still open, ${emit}, while ${beside}`, async () => {
        assert.deepEqual(await sessions(emit, slowMs), ['0-0: 1', '3000-6000: 2'])
      })
    }
  }

  test('joins both where the store keeps sessions for longer', async () => {
    for (const slowMs of [0, 30]) assert.deepEqual(await sessions('on-update', slowMs, '1m'), ['0-6000: 3'])
  })
})
