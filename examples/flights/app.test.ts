import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import app, { type LateHour } from './app.ts'

const ten = Date.UTC(2001, 0, 1, 10)
const minute = 60_000

async function driverWithAirports(): Promise<TopologyTestDriver> {
  const driver = new TopologyTestDriver(app)
  const ohare = { name: "O'Hare", city: 'Chicago', state: 'IL' }
  await driver.input('airports').pipe('ORD', ohare, { timestamp: ten - minute })
  return driver
}

const flight = (delay: number) => ({ origin: 'ORD', destination: 'LAS', delay, distance: 1515 })

describe('late flights', () => {
  test('are counted per airport and hour, and told once when the hour is over', async () => {
    const driver = await driverWithAirports()
    const flights = driver.input('flights')
    await flights.pipe('ORD', flight(20), { timestamp: ten })
    await flights.pipe('ORD', flight(40), { timestamp: ten + 30 * minute })
    assert.deepEqual(driver.output('late-by-hour').readAll(), [])
    await flights.pipe('ORD', flight(16), { timestamp: ten + 90 * minute })
    // The hour is over once the airports, of whom nothing new comes, are left out of its clock.
    assert.deepEqual(driver.output('late-by-hour').readAll(), [])
    await driver.advanceWallClock('1s')
    const [hour, ...more] = driver.output<{ key: string; start: number }, LateHour>('late-by-hour').readAll()
    assert.deepEqual(more, [])
    assert.equal(hour?.key.key, 'ORD')
    assert.equal(hour?.key.start, ten)
    assert.deepEqual(hour?.value, { airport: "O'Hare, Chicago", flights: 2, minutes: 60 })
  })

  test('leave out flights in time', async () => {
    const driver = await driverWithAirports()
    const flights = driver.input('flights')
    await flights.pipe('ORD', flight(15), { timestamp: ten })
    await flights.pipe('ORD', flight(-5), { timestamp: ten })
    await flights.pipe('ORD', flight(99), { timestamp: ten + 180 * minute })
    await driver.advanceWallClock('1s')
    assert.deepEqual(driver.output('late-by-hour').readAll(), [])
  })

  test('go by the code of an airport that nobody has named', async () => {
    const driver = new TopologyTestDriver(app)
    const flights = driver.input('flights')
    await flights.pipe('XYZ', flight(20), { timestamp: ten })
    await flights.pipe('XYZ', flight(20), { timestamp: ten + 180 * minute })
    await driver.advanceWallClock('1s')
    const [hour] = driver.output<{ key: string; start: number }, LateHour>('late-by-hour').readAll()
    assert.equal(hour?.value?.airport, 'XYZ')
  })
})
