import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { airports, departure, flights, ndjson } from './data.ts'

describe('the data of the example', () => {
  test('holds 20,000 flights in the order of their departure', () => {
    const all = flights()
    assert.equal(all.length, 20_000)
    assert.ok(all.every((flight, i) => i === 0 || flight.timestamp >= (all[i - 1]?.timestamp ?? 0)))
    assert.equal(new Date(all[0]?.timestamp ?? 0).toISOString(), '2001-01-01T00:47:00.000Z')
    assert.deepEqual(all[0]?.key, all[0]?.value.origin)
  })

  test('reads local times as UTC', () => {
    assert.equal(departure('2001/03/31 22:27'), Date.UTC(2001, 2, 31, 22, 27))
  })

  test('holds an airport for every flight, quoted names included', () => {
    const byCode = new Map(airports().map(({ key, value }) => [key, value]))
    assert.equal(byCode.get('ORD')?.name, "Chicago O'Hare International")
    assert.deepEqual(
      flights().filter((flight) => !byCode.has(flight.key)),
      [],
    )
    assert.deepEqual(byCode.get('53A'), { name: 'Dr. C.P. Savage, Sr.', city: 'Montezuma', state: 'GA' })
  })

  test('is written one record on a line', () => {
    const lines = ndjson(flights().slice(0, 2)).split('\n')
    assert.equal(lines.length, 3)
    assert.deepEqual(JSON.parse(lines[1] ?? ''), flights()[1])
  })
})
