/**
 * Runs seeds: `node test/simulation/replay.ts [first] [how many] [mutant]`. Prints each violation with everything that
 * the seed decided.
 */
import { mutants, runSeed } from './run-seed.ts'

const [first = '1', count = '1', name] = process.argv.slice(2)
const mutant = mutants.find((m) => m.name === name)
if (name !== undefined && mutant === undefined) {
  process.stderr.write(`there is no mutant ${name}; there are ${mutants.map((m) => m.name).join(', ')}\n`)
  process.exit(2)
}
let violated = 0
for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const { violations, derived, story } = await runSeed(seed, mutant)
  if (violations.length === 0 && Number(count) > 1) continue
  if (violations.length > 0) violated++
  process.stdout.write(`${JSON.stringify({ seed, derived, violations, story }, null, 2)}\n`)
}
process.stdout.write(`${count} seeds, ${violated} violated\n`)
process.exitCode = violated > 0 ? 1 : 0
