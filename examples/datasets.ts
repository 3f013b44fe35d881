/** Real data for the examples, from the development dependency `vega-datasets`. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { csvFields } from './flights/data.ts'

export interface Fed<T> {
  readonly key: string
  readonly value: T
  readonly timestamp: number
}

function read(name: string): string {
  const require = createRequire(import.meta.url)
  return readFileSync(join(dirname(require.resolve('vega-datasets')), '..', 'data', name), 'utf8')
}

function rows(name: string): string[][] {
  const [, ...lines] = read(name).trim().split(/\r?\n/)
  return lines.map(csvFields)
}

/** In the order in which they happened. */
function inOrder<T>(records: Array<Fed<T>>): Array<Fed<T>> {
  return records.sort((a, b) => a.timestamp - b.timestamp)
}

export interface Strike {
  readonly id: number
  readonly airport: string
  readonly operator: string
  readonly damage: string
  readonly species: string
  readonly dollars: number
}

/** Aircraft that struck birds, reported to the Federal Aviation Administration; by the operator of the aircraft. */
export function strikes(): Array<Fed<Strike>> {
  return inOrder(
    rows('birdstrikes.csv').map(
      ([airport = '', , damage = '', date = '', operator = '', , , , species = '', ...rest], id) => {
        const dollars = Number(rest[3])
        return {
          key: operator,
          value: { id, airport, operator, damage, species, dollars },
          timestamp: Date.parse(date),
        }
      },
    ),
  )
}

export interface Departure {
  readonly id: string
  readonly origin: string
  readonly destination: string
  readonly delay: number
  readonly miles: number
}

/** 2,000 flights of early 2001, by airport of origin. */
export function departures(): Array<Fed<Departure>> {
  const flights = JSON.parse(read('flights-2k.json')) as Array<{
    date: string
    delay: number
    distance: number
    origin: string
    destination: string
  }>
  return inOrder(
    flights.map(({ date, delay, distance, origin, destination }, n) => {
      const timestamp = Date.parse(`${date.replaceAll('/', '-').replace(' ', 'T')}Z`)
      return { key: origin, value: { id: `f${n}`, origin, destination, delay, miles: distance }, timestamp }
    }),
  )
}

/** Names of airports by their codes. */
export function airportNames(): ReadonlyMap<string, string> {
  return new Map(rows('airports.csv').map(([code = '', name = '']) => [code, name]))
}

export interface Shock {
  readonly id: string
  readonly place: string
  readonly magnitude: number
}

/** A week of earthquakes, as the United States Geological Survey told them, by their identity. */
export function shocks(): Array<Fed<Shock>> {
  const { features } = JSON.parse(read('earthquakes.json')) as {
    features: Array<{ id: string; properties: { mag: number | null; place: string; time: number } }>
  }
  return inOrder(
    features.map(({ id, properties: { mag, place, time } }) => ({
      key: id,
      value: { id, place, magnitude: mag ?? 0 },
      timestamp: time,
    })),
  )
}

export interface Weather {
  readonly date: string
  readonly highest: number
}

/** The weather of Seattle, day by day from 2012 to 2015. */
export function weather(): Array<Fed<Weather>> {
  return rows('seattle-weather.csv').map(([date = '', , highest = '']) => ({
    key: 'Seattle',
    value: { date, highest: Number(highest) },
    timestamp: Date.parse(`${date}T00:00:00Z`),
  }))
}
