/**
 * `node test/reference/sweep.ts <from> <to> [minutes]`: the programs of these seeds against the model, each with 1, 2 and
 * 4 lanes, its other settings drawn. It goes on where it stopped, by what REFERENCE_JOURNAL says. REFERENCE_RECORDS: how
 * long the input is; REFERENCE_LANES: `8` or `1,2,4`; REFERENCE_OPTIMIZED=1: with `topology.optimization: all`;
 * REFERENCE_FAILS=1: with functions that fail on some records, and values that cannot be decoded;
 * REFERENCE_WINDOWED=1: programs that join tables by window;
 * REFERENCE_AGAIN=1: what went wrong is run once more. One that goes wrong is replayed, and made smaller, by
 * `node test/reference/replay.ts <seed> <records> <lanes>`.
 */
import { generate } from './generate.ts'
import { generateWindowed } from './generate-more.ts'
import { Journal } from './journal.ts'
import { expectedOf } from './results.ts'
import { settingsOf, titleOf } from './seed.ts'

const [from = 1, to = from, minutes = 60] = process.argv.slice(2).map(Number)
const records = Number(process.env.REFERENCE_RECORDS ?? 10_000)
const lanes = (process.env.REFERENCE_LANES ?? '1,2,4').split(',').map(Number)
const fails = process.env.REFERENCE_FAILS === '1'
const windowed = process.env.REFERENCE_WINDOWED === '1'
const journal = new Journal(process.env.REFERENCE_JOURNAL ?? 'reference.ndjson', process.env.REFERENCE_AGAIN === '1')
const end = Date.now() + minutes * 60_000

const titles: string[] = []
for (let seed = from; seed <= to; seed++) {
  const program = windowed ? generateWindowed(seed, records) : generate(seed, { records, fails })
  const runs = settingsOf(program, lanes).map((setting) => ({
    title: `seed ${seed}, ${titleOf(setting)}, ${records} records${fails ? ', failing' : ''}${windowed ? ', windowed' : ''}`,
    setting,
  }))
  titles.push(...runs.map(({ title }) => title))
  const open = runs.filter(({ title }) => !journal.isDone(title))
  if (open.length === 0 || Date.now() >= end) continue
  const expected = expectedOf(program)
  for (const { title, setting } of open) await journal.run(title, program, setting, expected)
}
process.exitCode = journal.summary(titles) ? 0 : 1
