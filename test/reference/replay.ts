/**
 * `node test/reference/replay.ts <seed> [records] [lanes]`: the seed's program against the model, and what is left of it
 * when it is made smaller as long as it fails. REFERENCE_TRIES: how often a smaller one is run before it counts as well;
 * REFERENCE_FAILS=1: with functions that fail; REFERENCE_WITHIN_MS: for how long one may commit nothing.
 */
import { generate } from './generate.ts'
import { Unsupported } from './model/parts.ts'
import type { Program, ProgramNode } from './program.ts'
import { differences, expectedOf, lettersWrong } from './results.ts'
import { runDriver } from './run-driver.ts'
import { runEngine } from './run-engine.ts'
import { settingsOf, titleOf } from './seed.ts'
import { shrink } from './shrink.ts'

const [seed = 1, records = 10_000, lanes] = process.argv.slice(2).map(Number)
const tries = Number(process.env.REFERENCE_TRIES ?? 2)
/** One that commits nothing for longer counts as hanging. */
const withinMs = Number(process.env.REFERENCE_WITHIN_MS ?? 20_000)
const say = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

function show({ nodes, disorder, partitions }: Program): void {
  say(`disorder ${disorder}, ${partitions} partitions`)
  for (const { id, op, from, ...rest } of nodes as readonly ProgramNode[])
    say(`  ${id} = ${op}(${[from ?? []].flat().join(', ')}) ${JSON.stringify(rest)}`)
}

/** Undefined for one that the model does not know, as some are that are left of a smaller one. */
function modelled(candidate: Program): ReturnType<typeof expectedOf> | undefined {
  try {
    return expectedOf(candidate)
  } catch (error) {
    if (error instanceof Unsupported) return undefined
    throw error
  }
}

const program = generate(seed, { records, fails: process.env.REFERENCE_FAILS === '1' })
const driver =
  program.policy === undefined ? differences(program, expectedOf(program).results, await runDriver(program)) : []
if (driver.length > 0) say(`The test driver differs as well:\n  ${driver.join('\n  ')}`)
let failed = false
for (const setting of settingsOf(program, lanes === undefined ? undefined : [lanes])) {
  let last: readonly string[] = []
  const fails = async (candidate: Program): Promise<boolean> => {
    const expected = modelled(candidate)
    if (expected === undefined) return false
    for (let n = 0; n < tries; n++) {
      const { results, letters, problems } = await runEngine(candidate, setting, withinMs)
      const wrong = [
        ...differences(candidate, expected.results, results),
        ...lettersWrong(candidate, expected, letters),
      ]
      const faults = [...wrong, ...problems]
      if (faults.length === 0) continue
      last = faults
      return true
    }
    return false
  }
  const isWrong = await fails(program)
  say(`seed ${seed}, ${titleOf(setting)}: ${isWrong ? `\n  ${last.join('\n  ')}` : 'as the model'}`)
  if (!isWrong) continue
  failed = true
  const least = await shrink(program, fails, (line) => say(`still wrong with ${line}`))
  show(least)
  say(`${least.records} records:\n  ${last.join('\n  ')}`)
  break
}
process.exitCode = failed ? 1 : 0
