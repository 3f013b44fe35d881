/** One seed: its program, the settings that it is run with, and what is wrong. */
import { Random } from '../../src/base/random.ts'
import { generate } from './generate.ts'
import { generateWindowed } from './generate-more.ts'
import type { Program } from './program.ts'
import { foldedFaults, foldedPromises, mixed } from './per-commit.ts'
import { differences, type Expected, expectedOf, lettersWrong, type Results } from './results.ts'
import { runEngine, type Setting } from './run-engine.ts'
import { unusualSettings } from './unusual.ts'

/** With each number of lanes, the other settings drawn by the program's seed. */
export function settingsOf(program: Program, lanes: readonly number[] = [1, 2, 4]): Setting[] {
  return lanes.map((count) => {
    const random = new Random(program.seed * 16 + count)
    return {
      lanes: count,
      store: random.chance(0.5) ? 'lmdb' : 'memory',
      commitMs: random.pick([5, 20, 100, 500]),
      config: unusualSettings(random, program),
      ...(process.env.REFERENCE_OPTIMIZED === '1' && { optimized: true }),
      ...(process.env.REFERENCE_SPLIT === 'repartition-topics' && { split: 'repartition-topics' as const }),
    }
  })
}

export function titleOf({ lanes, store, commitMs, split, folds, optimized, config = {} }: Setting): string {
  const others = [
    ...(split === undefined ? [] : [split]),
    ...(folds ? ['told per commit'] : []),
    ...(optimized ? ['optimized'] : []),
    ...Object.entries(config).map(([key, value]) => `${key}=${value}`),
  ]
  return [`${lanes} lanes`, store, `${commitMs} ms`, ...others].join(', ')
}

export async function faultsOf(program: Program, setting: Setting, expected: Expected): Promise<string[]> {
  const { results, letters, problems } = await runEngine(program, setting)
  return [
    ...wrongIn(program, setting, expected.results, results),
    ...lettersWrong(program, expected, letters),
    ...problems,
  ]
}

/** What differs from the model, of what the settings promise. */
export function wrongIn(program: Program, { folds }: Setting, expected: Results, found: Results): string[] {
  if (!folds) return differences(program, expected, found)
  const promises = foldedPromises(program)
  const nodes = program.nodes.flatMap((node) => {
    const promised = node.op === 'to' ? promises.get(node.topic ?? '') : undefined
    if (promised === 'open' || promised === 'updates' || promised === 'some' || promised === 'groups') return []
    return [promised === undefined ? node : { ...node, promised }]
  })
  return [...differences({ ...program, nodes }, expected, found), ...foldedFaults(promises, expected, found)]
}

export interface Failure {
  readonly program: Program
  readonly setting: Setting
  readonly faults: readonly string[]
}

interface FailureOptions {
  readonly folds?: boolean
  readonly fails?: boolean
  /** With `folds`: some tables tell every update nevertheless. */
  readonly mixes?: boolean
  /** Tables by window are joined. */
  readonly windowed?: boolean
}

/** The first setting with which a seed goes wrong. */
export async function failureOf(
  seed: number,
  records: number,
  lanes?: readonly number[],
  { folds = false, fails = false, mixes = false, windowed = false }: FailureOptions = {},
): Promise<Failure | undefined> {
  const whole = windowed ? generateWindowed(seed, records) : generate(seed, { records, fails })
  const program = mixes ? mixed(whole) : whole
  const expected = expectedOf(program)
  for (const each of settingsOf(program, lanes)) {
    const setting = folds ? { ...each, folds } : each
    const faults = await faultsOf(program, setting, expected)
    if (faults.length > 0) return { program, setting, faults }
  }
  return undefined
}
