/** One seed, run and judged. */
import { checkWorld } from './checkers.ts'
import type { Derived } from './derived.ts'
import type { Mutant } from './sim-pod.ts'
import { ModelStage } from './model-stage.ts'
import { RealStage } from './real-stage.ts'
import { World } from './world.ts'

export { mutants } from './mutants.ts'

export interface Verdict {
  readonly seed: number
  readonly derived: Derived
  readonly violations: readonly string[]
  readonly story: readonly string[]
  readonly steps: number
  /** Epochs in which a pod was promoted. */
  readonly promotions: number
}

const engineOf = (mutant: Mutant | undefined): 'model' | 'real' => (mutant?.breaks ? 'real' : 'model')

/** `real`: the pods run the real engine with its lanes, which takes ten times as long. */
export async function runSeed(seed: number, mutant?: Mutant, engine = engineOf(mutant)): Promise<Verdict> {
  const world = new World(seed, engine === 'model' ? new ModelStage() : new RealStage(seed), mutant)
  const mend = mutant?.breaks?.()
  try {
    await world.run()
    await checkWorld(world)
  } finally {
    mend?.()
  }
  const { derived, violations, story, scheduler, promotions } = world
  return { seed, derived, violations, story, steps: scheduler.steps, promotions: promotions.length }
}
