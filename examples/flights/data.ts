/** Real flights of early 2001 and the airports of the United States, from the package `vega-datasets`. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Airport, Flight } from './app.ts'

/** A record as `millrace run --feed` takes it, one on a line. */
export interface FeedRecord<T> {
  readonly key: string
  readonly value: T
  readonly timestamp: number
}

interface DatasetFlight extends Flight {
  /** `2001/01/14 21:55` */
  readonly date: string
}

/** Beside this file where the example was packed, else in the package that it comes from. */
function datasetFile(name: string): string {
  const packed = join(import.meta.dirname, 'data', name)
  if (existsSync(packed)) return packed
  const require = createRequire(import.meta.url)
  return join(dirname(require.resolve('vega-datasets')), '..', 'data', name)
}

/** The dataset gives local times without a zone; all are read as UTC. */
export function departure(date: string): number {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0] = date.split(/\D/).map(Number)
  return Date.UTC(year, month - 1, day, hour, minute)
}

/** 20,000 flights in the order of their departure, by airport of origin. */
export function flights(): Array<FeedRecord<Flight>> {
  const rows = JSON.parse(readFileSync(datasetFile('flights-20k.json'), 'utf8')) as DatasetFlight[]
  return rows
    .map(({ date, ...flight }) => ({ key: flight.origin, value: flight, timestamp: departure(date) }))
    .sort((a, b) => a.timestamp - b.timestamp)
}

/** Airports by their code, dated before the first flight. */
export function airports(): Array<FeedRecord<Airport>> {
  const [, ...lines] = readFileSync(datasetFile('airports.csv'), 'utf8').trim().split(/\r?\n/)
  const timestamp = Date.UTC(2001, 0, 1)
  return lines.map((line) => {
    const [code = '', name = '', city = '', state = ''] = csvFields(line)
    return { key: code, value: { name, city, state }, timestamp }
  })
}

/** The fields of one line; a quoted field may hold commas. */
export function csvFields(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    (match) => match[1]?.replaceAll('""', '"') ?? match[2] ?? '',
  )
}

export function ndjson(records: ReadonlyArray<FeedRecord<unknown>>): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join('')
}
