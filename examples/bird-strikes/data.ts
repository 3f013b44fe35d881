/** Reports of bird strikes from the package `vega-datasets`, and the families of the animals they name. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Species, Strike } from './app.ts'

/** A record as `millrace run --feed` takes it, one on a line. */
export interface FeedRecord<T> {
  readonly key: string
  readonly value: T
  readonly timestamp: number
}

/** By report number, in the order of the file. */
export function strikes(): Array<FeedRecord<Strike>> {
  const require = createRequire(import.meta.url)
  const file = join(dirname(require.resolve('vega-datasets')), '..', 'data', 'birdstrikes.csv')
  const [, ...lines] = readFileSync(file, 'utf8').trim().split(/\r?\n/)
  return lines.map((line, i) => {
    const [airport = '', , , date = '', operator = '', state = '', , size = '', species = '', , , , cost = ''] =
      csvFields(line)
    return {
      key: `report-${i + 1}`,
      value: { airport, operator, state, species, size: size as Strike['size'], cost: Number(cost) },
      timestamp: Date.parse(date),
    }
  })
}

const families = ['gull', 'hawk', 'vulture', 'sparrow', 'dove', 'goose', 'duck', 'owl', 'swallow', 'kestrel'] as const

/** Every species that a report names and whose name says its family. */
export function species(): Array<FeedRecord<Species>> {
  const all = strikes()
  const names = new Set(all.map((strike) => strike.value.species))
  const timestamp = all.reduce((least, strike) => Math.min(least, strike.timestamp), Number.POSITIVE_INFINITY)
  return [...names].flatMap((name) => {
    const family = families.find((word) => name.toLowerCase().includes(word))
    return family === undefined ? [] : [{ key: name, value: { family }, timestamp }]
  })
}

/** The fields of one line; a quoted field may hold commas. */
function csvFields(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    (match) => match[1]?.replaceAll('""', '"') ?? match[2] ?? '',
  )
}
