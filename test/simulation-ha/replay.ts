/**
 * Runs seeds: `node test/simulation-ha/replay.ts [first] [how many] [mutant]`; `HA_SIM_ENGINE=real` runs
 * the real engine. Prints each violation with everything that
 * the seed decided and what happened.
 */
import { mutants } from './mutants.ts'
import { runSeed } from './run-seed.ts'

const [first = '1', count = '1', name] = process.argv.slice(2)
const mutant = mutants.find((m) => m.name === name)
if (name !== undefined && mutant === undefined) {
  process.stderr.write(`there is no mutant ${name}; there are ${mutants.map((m) => m.name).join(', ')}\n`)
  process.exit(2)
}
let violated = 0
for (let seed = Number(first); seed < Number(first) + Number(count); seed++) {
  const { violations, derived, story } = await runSeed(
    seed,
    mutant,
    process.env.HA_SIM_ENGINE === 'real' ? 'real' : undefined,
  )
  if (violations.length === 0 && Number(count) > 1) continue
  if (violations.length > 0) violated++
  process.stdout.write(`${JSON.stringify({ seed, derived, violations }, null, 2)}\n${story.join('\n')}\n`)
}
process.stdout.write(`${count} seeds, ${violated} violated\n`)
process.exitCode = violated > 0 ? 1 : 0
