/**
 * Whether the simulators notice anything: `node test/simulation/notice.ts [seeds]` runs so many seeds of each, and ends with exit code 1
 * at the first violation. It is what mistakes that are put into the sources are judged by (`scripts/mutants.ts`).
 */
import { runSeed as joinOrder } from './join-order.ts'
import { runSeed as levelOrder } from './level-order.ts'
import { runSeed as world } from './run-seed.ts'
import { runSeed as slowFunctions } from './slow-functions.ts'
import { runSeed as topicOrder } from './topic-order.ts'

const seeds = Number(process.argv[2] ?? 60)
const simulators = { world, joinOrder, levelOrder, topicOrder, slowFunctions }

for (let seed = 1; seed <= seeds; seed++) {
  for (const [name, runSeed] of Object.entries(simulators)) {
    const [first] = (await runSeed(seed)).violations
    if (first === undefined) continue
    process.stdout.write(`${name}, seed ${seed}: ${first}\n`)
    process.exit(1)
  }
}
process.stdout.write(`${seeds} seeds of each simulator, nothing noticed\n`)
