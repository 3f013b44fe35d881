import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Windowed } from 'millrace'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type Flight } from './app.ts'

const minute = 60_000

test('an hour is told once, when it is over', async (t) => {
  const driver = new TopologyTestDriver(app)
  t.after(() => driver.close())
  const flights = driver.input<string, Flight>('flights')
  const hours = driver.output<Windowed<string>, number>('late-by-origin')
  await flights.pipe('1', { origin: 'SFO', delay: 20 }, { timestamp: 5 * minute })
  await flights.pipe('2', { origin: 'SFO', delay: 15 }, { timestamp: 6 * minute })
  await flights.pipe('3', { origin: 'SFO', delay: 90 }, { timestamp: 59 * minute })
  assert.deepEqual(hours.readAll(), [])
  await flights.pipe('4', { origin: 'LAX', delay: 30 }, { timestamp: 130 * minute })
  const told = hours.readAll().map(({ key, value }) => [key.key, key.start, value])
  assert.deepEqual(told, [['SFO', 0, 2]])
})
