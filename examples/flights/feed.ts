/** Writes a feed to standard output: `node examples/flights/feed.ts flights > flights.ndjson`. */
import { airports, flights, ndjson } from './data.ts'

const feeds = { flights, airports } as const
const name = process.argv[2] ?? 'flights'

if (name === 'flights' || name === 'airports') process.stdout.write(ndjson(feeds[name]()))
else {
  process.stderr.write(`There is no feed '${name}'; name one of ${Object.keys(feeds).join(', ')}.\n`)
  process.exitCode = 2
}
