/** The week of earthquakes from the USGS in the package `vega-datasets`. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Shock } from './app.ts'

/** A record as `millrace run --feed` takes it, one on a line. */
export interface FeedRecord<T> {
  readonly key: string
  readonly value: T
  readonly timestamp: number
}

interface Feature {
  readonly properties: { readonly mag: number | null; readonly place: string; readonly time: number }
}

/** `4km W of Castaic, CA` is in `CA`; a place without a comma is its own region. */
export function regionOf(place: string): string {
  return place.slice(place.lastIndexOf(',') + 1).trim()
}

/** All shocks in the order in which they happened, by region. */
export function shocks(): Array<FeedRecord<Shock>> {
  const require = createRequire(import.meta.url)
  const file = join(dirname(require.resolve('vega-datasets')), '..', 'data', 'earthquakes.json')
  const { features } = JSON.parse(readFileSync(file, 'utf8')) as { readonly features: readonly Feature[] }
  return features
    .map(({ properties: { mag, place, time } }) => ({
      key: regionOf(place),
      value: { magnitude: mag ?? 0, place },
      timestamp: time,
    }))
    .sort((a, b) => a.timestamp - b.timestamp)
}
