/** Each example on real data, beside an answer that a few plain lines compute apart. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { TopologyTestDriver } from 'millrace/testing'
import alerts, { type Silence, silentAfterMs } from './alerts/app.ts'
import backfill, { type Month } from './backfill/app.ts'
import { airportNames, type Departure, departures, type Fed, type Shock, shocks, strikes, weather } from './datasets.ts'
import deduplication from './deduplication/app.ts'
import fraud, { knownAfter, type Suspicion, suspicious } from './fraud/app.ts'
import lateJoins, { type Trip } from './late-joins/app.ts'
import outbox, { type OutboxRow } from './outbox/app.ts'
import sessions, { type Busy } from './sessions/app.ts'
import topN, { type Place, ranked } from './top-n/app.ts'

const day = 86_400_000
const hour = 3_600_000

function driverOf(
  t: TestContext,
  app: ConstructorParameters<typeof TopologyTestDriver>[0],
  lanes = 2,
): TopologyTestDriver {
  const driver = new TopologyTestDriver(app, { lanes })
  t.after(() => driver.close())
  return driver
}

/** What is left open at the end is closed by a record that comes long after. */
function closing<T>(records: ReadonlyArray<Fed<T>>, last: T): Array<Fed<T>> {
  const end = Math.max(...records.map(({ timestamp }) => timestamp))
  return [...records, { key: '(end)', value: last, timestamp: end + 365 * day }]
}

function byKey<T>(records: ReadonlyArray<Fed<T>>): Map<string, Array<Fed<T>>> {
  return Map.groupBy(records, ({ key }) => key)
}

test('fraud: claims that are five times what the company claims otherwise', async (t) => {
  const claims = strikes()
  const driver = driverOf(t, fraud)
  await driver.input('claims').pipeAll(claims)
  const found = driver
    .output<string, Suspicion>('suspicions')
    .readAll()
    .map(({ value }) => value.id)
  const expected: number[] = []
  for (const own of byKey(claims.filter(({ value }) => value.dollars > 0)).values()) {
    own.forEach(({ value }, n) => {
      const sum = own.slice(0, n).reduce((all, one) => all + one.value.dollars, 0)
      if (n >= knownAfter && value.dollars > (sum / n) * suspicious) expected.push(value.id)
    })
  }
  assert.ok(expected.length > 5, `${expected.length} of them`)
  assert.deepEqual(
    found.sort((a, b) => a - b),
    expected.sort((a, b) => a - b),
  )
})

test('sessions: busy times of airports', async (t) => {
  const flights = departures()
  const driver = driverOf(t, sessions)
  await driver.input('departures').pipeAll(closing(flights, flights[0]?.value as Departure))
  const found = driver
    .output<{ key: string }, Busy>('busy-times')
    .readAll()
    .map(({ value }) => JSON.stringify(value))
  const expected: string[] = []
  for (const own of byKey(flights).values()) {
    let busy: { departures: number; minutesLate: number; last: number } | undefined
    for (const { value, timestamp } of own) {
      if (busy === undefined || timestamp - busy.last > 6 * hour) {
        if (busy && busy.departures >= 3) expected.push(JSON.stringify({ ...busy, last: undefined }))
        busy = { departures: 0, minutesLate: 0, last: timestamp }
      }
      busy = {
        departures: busy.departures + 1,
        minutesLate: busy.minutesLate + Math.max(0, value.delay),
        last: timestamp,
      }
    }
    if (busy && busy.departures >= 3) expected.push(JSON.stringify({ ...busy, last: undefined }))
  }
  assert.ok(expected.length > 10)
  assert.deepEqual(found.sort(), expected.sort())
})

test('enrichment: a service over HTTP that fails now and then is asked again', async (t) => {
  const names = airportNames()
  let asked = 0
  const server = createServer((request, response) => {
    // Seldom enough that no call fails five times in a row.
    response.statusCode = ++asked % 40 === 0 ? 503 : 200
    response.end(JSON.stringify({ name: names.get(request.url?.split('/').at(-1) ?? '') ?? '' }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  process.env.AIRPORTS_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { default: enrichment } = await import('./enrichment/app.ts')
  const flights = departures().slice(0, 200)
  const driver = driverOf(t, enrichment)
  await driver.input('departures').pipeAll(flights)
  const found = driver.output<string, Departure & { name: string }>('named').readAll()
  assert.equal(found.length, flights.length)
  assert.ok(asked > flights.length, 'some were asked for again')
  for (const { key, value } of found) assert.equal(value.name, names.get(key))
  for (const [airport, own] of byKey(flights)) {
    const order = found.filter(({ key }) => key === airport).map(({ value }) => value.id)
    assert.deepEqual(
      order,
      own.map(({ value }) => value.id),
      'the flights of an airport keep their order',
    )
  }
})

test('deduplication: a feed that is read again and again tells each earthquake once', async (t) => {
  const once = shocks()
  const again = once.filter((_, n) => n % 3 === 0).map((shock) => ({ ...shock, timestamp: shock.timestamp + 5 * hour }))
  const driver = driverOf(t, deduplication)
  await driver.input('feed').pipeAll([...once, ...again].sort((a, b) => a.timestamp - b.timestamp))
  const found = driver
    .output<string, Shock>('shocks')
    .readAll()
    .map(({ key }) => key)
  assert.deepEqual(found.sort(), once.map(({ key }) => key).sort())
})

test('outbox: rows that come twice go once to the topic of their kind, in order', async (t) => {
  const rows = strikes()
    .slice(0, 600)
    .map(({ value, timestamp }, id) => {
      const kind = value.damage === 'None' ? 'unharmed' : 'damaged'
      return { key: String(id), value: { id, about: value.airport, kind, payload: value }, timestamp }
    })
  const driver = driverOf(t, outbox)
  // The reader of the table starts over from an older row, twice.
  await driver
    .input<string, OutboxRow>('outbox')
    .pipeAll([...rows.slice(0, 400), ...rows.slice(300, 500), ...rows.slice(450)])
  for (const kind of ['unharmed', 'damaged']) {
    const found = driver.output<string, OutboxRow>(`events.${kind}`).readAll()
    const expected = rows.filter(({ value }) => value.kind === kind)
    assert.equal(found.length, expected.length)
    for (const [about, own] of Map.groupBy(expected, ({ value }) => value.about)) {
      const order = found.filter(({ key }) => key === about)
      assert.deepEqual(
        order.map(({ value }) => value.id),
        own.map(({ value }) => value.id),
      )
      assert.deepEqual(
        order.map(({ headers }) => String(headers[0]?.[1])),
        own.map(({ value }) => String(value.id)),
      )
    }
  }
})

test('alerts: an airport without a departure for two days', async (t) => {
  const flights = departures()
  const driver = driverOf(t, alerts)
  await driver.input('departures').pipeAll(closing(flights, flights[0]?.value as Departure))
  const found = driver
    .output<string, Silence>('silences')
    .readAll()
    .map(({ key, value }) => `${key} ${value.since}`)
  const expected: string[] = []
  for (const [airport, own] of byKey(flights)) {
    own.forEach(({ timestamp }, n) => {
      const next = own[n + 1]?.timestamp ?? Number.POSITIVE_INFINITY
      // The timer of that very moment fires before the flight.
      if (next - timestamp >= silentAfterMs) expected.push(`${airport} ${timestamp}`)
    })
  }
  assert.ok(expected.length > 100)
  assert.deepEqual(found.sort(), expected.sort())
})

test('top n: the three airports of each day that lost the most minutes', async (t) => {
  const flights = departures()
  const driver = driverOf(t, topN)
  await driver.input('departures').pipeAll(closing(flights, flights[0]?.value as Departure))
  const found = new Map(
    driver
      .output<string, Place[]>('ranking')
      .readAll()
      .map(({ key, value }) => [key, value]),
  )
  const late = flights.filter(({ value }) => value.delay > 0)
  const days = Map.groupBy(late, ({ timestamp }) => new Date(timestamp).toISOString().slice(0, 10))
  assert.equal(found.size, days.size)
  for (const [date, own] of days) {
    const minutes = [...byKey(own)].map(([airport, all]) => ({
      airport,
      minutes: all.reduce((sum, { value }) => sum + value.delay, 0),
    }))
    assert.deepEqual(found.get(date), ranked(minutes), date)
  }
})

test('joins of late data: arrivals up to three hours late, in any order, and some that never come', async (t) => {
  const flights = departures().map((flight) => ({ ...flight, key: flight.value.id }))
  const landed = flights.filter((_, n) => n % 10 !== 0)
  const landings = landed.map(({ key, value, timestamp }, n) => {
    const at = timestamp + (value.miles / 8 + Math.max(0, value.delay)) * 60_000
    // Told up to three hours after: the topic is in the order in which they were told.
    return { topic: 'arrivals', key, value: { at }, timestamp: at, told: at + ((n * 7919) % 180) * 60_000 }
  })
  const all = [...flights.map((flight) => ({ topic: 'departures', ...flight, told: flight.timestamp })), ...landings]
  const end = Math.max(...all.map(({ told }) => told)) + 30 * day
  const driver = driverOf(t, lateJoins)
  await driver.pipeAll(all.sort((a, b) => a.told - b.told))
  for (const topic of ['departures', 'arrivals'])
    await driver.pipeAll([{ topic, key: '(end)', value: { id: '(end)', at: end }, timestamp: end }])
  const found = driver
    .output<string, Trip>('trips')
    .readAll()
    .map(({ value }) => value)
    .filter(({ id }) => id !== '(end)')
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  const known = new Set(landings.map(({ key }) => key))
  const expected = flights
    .map(({ key }) => ({ id: key, landed: known.has(key) }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  assert.deepEqual(found, expected)
})

test('backfill: history beside the live feed, days of both counted once', async (t) => {
  const days = weather()
  const live = days.filter(({ value }) => value.date >= '2015-01-01')
  const history = days.filter(({ value }) => value.date < '2015-02-15')
  const driver = driverOf(t, backfill)
  await driver.pipeAll([
    ...live.map((record) => ({ topic: 'live', ...record })),
    ...history.map((record) => ({ topic: 'history', ...record })),
  ])
  const found = new Map(
    driver
      .output<string, Month>('months')
      .readAll()
      .map(({ key, value }) => [key, value]),
  )
  const months = Map.groupBy(days, ({ value }) => value.date.slice(0, 7))
  assert.equal(found.size, months.size)
  for (const [month, own] of months) {
    const sum = Math.round(own.reduce((all, { value }) => all + value.highest, 0) * 10) / 10
    assert.equal(found.get(month)?.days, own.length, month)
    assert.ok(Math.abs((found.get(month)?.sum ?? 0) - sum) < 0.05, month)
  }
})
