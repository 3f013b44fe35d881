// Counts late flights per airport and window straight from the dataset, without the engine: what the engine must give.
// node examples/flights/count.mjs <window minutes> [advance minutes]
import { readFileSync } from 'node:fs'

const [size, advance = size] = process.argv.slice(2).map((minutes) => Number(minutes) * 60_000)
const file = new URL('../../node_modules/vega-datasets/data/flights-20k.json', import.meta.url)
const counts = {}
for (const { date, delay, origin } of JSON.parse(readFileSync(file, 'utf8'))) {
  if (delay <= 15) continue
  const time = Date.parse(`${date.replaceAll('/', '-').replace(' ', 'T')}:00Z`)
  for (let start = time - (time % advance); start > time - size; start -= advance) {
    counts[`${origin}@${start}`] = (counts[`${origin}@${start}`] ?? 0) + 1
  }
}
console.log(JSON.stringify(counts))
