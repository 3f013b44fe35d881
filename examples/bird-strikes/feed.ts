/** Writes a feed to standard output: `node examples/bird-strikes/feed.ts strikes > strikes.ndjson`. */
import { species, strikes } from './data.ts'

const feeds = { strikes, species } as const
const name = process.argv[2] ?? 'strikes'

if (name === 'strikes' || name === 'species') {
  for (const record of feeds[name]()) process.stdout.write(`${JSON.stringify(record)}\n`)
} else {
  process.stderr.write(`There is no feed '${name}'; name one of ${Object.keys(feeds).join(', ')}.\n`)
  process.exitCode = 2
}
