/** One seed, run and judged. */
import { checkWorld } from './checkers.ts'
import type { Derived } from './derived.ts'
import type { Mutant } from './sim-pod.ts'
import { World } from './world.ts'

export interface Verdict {
  readonly seed: number
  readonly derived: Derived
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly steps: number
  /** Epochs in which a pod was promoted. */
  readonly promotions: number
}

export async function runSeed(seed: number, mutant?: Mutant): Promise<Verdict> {
  const world = new World(seed, mutant)
  await world.run()
  await checkWorld(world)
  const { derived, violations, story, scheduler, promotions } = world
  return { seed, derived, violations, story, steps: scheduler.steps, promotions: promotions.length }
}
