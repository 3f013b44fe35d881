/**
 * Whether the simulators notice anything: `node test/simulation/notice.ts [seeds]` runs so many seeds of each, and ends with exit code 1
 * at the first violation. It is what mistakes that are put into the sources are judged by (`scripts/mutants.ts`).
 */
import { runSeed as pods } from '../simulation-ha/run-seed.ts'
import { runSeed as atLeastOnce } from './at-least-once.ts'
import { runSeed as drawnTopologies } from './drawn-topologies.ts'
import { runSeed as globalTables } from './global-tables.ts'
import { runSeed as joinOrder } from './join-order.ts'
import { runSeed as largeRecords } from './large-records.ts'
import { runSeed as levelOrder } from './level-order.ts'
import { runSeed as movingPartitions } from './moving-partitions.ts'
import { runSeed as world } from './run-seed.ts'
import { runSeed as schedules } from './schedules.ts'
import { runSeed as slowFunctions } from './slow-functions.ts'
import { runSeed as starts } from './starts.ts'
import { runSeed as topicOrder } from './topic-order.ts'

const seeds = Number(process.argv[2] ?? 60)
type RunSeed = (seed: number) => Promise<{ readonly violations: readonly string[] }>
const realPods: RunSeed = (seed) => pods(seed, undefined, 'real')
const simulators: Readonly<Record<string, RunSeed>> = {
  world,
  atLeastOnce,
  joinOrder,
  levelOrder,
  topicOrder,
  schedules,
  slowFunctions,
  movingPartitions,
  drawnTopologies,
  starts,
  globalTables,
  largeRecords,
  realPods,
}

for (let seed = 1; seed <= seeds; seed++) {
  for (const [name, runSeed] of Object.entries(simulators)) {
    const [first] = (await runSeed(seed)).violations
    if (first === undefined) continue
    process.stdout.write(`${name}, seed ${seed}: ${first}\n`)
    process.exit(1)
  }
}
process.stdout.write(`${seeds} seeds of each simulator, nothing noticed\n`)
