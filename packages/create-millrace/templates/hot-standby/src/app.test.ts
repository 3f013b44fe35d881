import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Runtime, startEmbeddedBroker, startRuntime } from 'millrace/runtime'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Total } from './app.ts'

test('readings add up for each sensor', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const readings = driver.input<string, number>('readings')
  await readings.pipe('kitchen', 21)
  await readings.pipe('kitchen', 22)
  driver.output('totals').expect([{ value: { readings: 1, sum: 21 } }, { value: { readings: 2, sum: 43 } }])
})

test('another pod goes on where the active one stopped', async () => {
  const broker = await startEmbeddedBroker({ partitions: 1 })
  const pod = (id: string): Promise<Runtime> =>
    startRuntime({
      application: new URL('./app.ts', import.meta.url),
      broker,
      config: {
        'ha.mode': 'hot-standby',
        'ha.pod-id': id,
        'engine.state.store': 'memory',
        'runtime.http.enabled': false,
      },
      log: () => undefined,
    })
  const is = async (runtime: Runtime, state: string): Promise<void> => {
    while (runtime.ha?.status()?.selfState !== state) await sleep(20)
  }
  const first = await pod('a')
  await is(first, 'ACTIVE')
  await first.produce('readings', [{ key: 'kitchen', value: 21 }])
  await first.untilIdle()
  const second = await pod('b')
  await is(second, 'READY_STANDBY')
  await first.stop()
  await is(second, 'ACTIVE')
  await second.produce('readings', [{ key: 'kitchen', value: 22 }])
  await second.untilIdle()
  const totals: Total[] = []
  for await (const { value } of second.read<string, Total>('totals', { until: 'end' })) totals.push(value)
  assert.deepEqual(totals.at(-1), { readings: 2, sum: 43 })
  await second.stop()
  await broker.close()
})
