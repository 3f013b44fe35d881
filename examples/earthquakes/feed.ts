/** Writes the shocks to standard output: `node examples/earthquakes/feed.ts > shocks.ndjson`. */
import { shocks } from './data.ts'

for (const shock of shocks()) process.stdout.write(`${JSON.stringify(shock)}\n`)
