/** One seed, run and judged. */
import { checkRun } from './checkers.ts'
import type { Derived } from './derived.ts'
import { mutants as ofProtocol } from './mutants.ts'
import { mutantsOfAnswers } from './mutants-of-answers.ts'
import { type Mutant, World } from './world.ts'
import { application } from './workload.ts'

/** Of the protocol, and of what the engine answers. */
export const mutants = [...ofProtocol, ...mutantsOfAnswers]

export interface Verdict {
  readonly seed: number
  readonly derived: Derived
  readonly violations: readonly string[]
  /** What the engine reported, in order. */
  readonly story: string
  readonly restarts: number
}

const specs = [false, true].map((folds) => application({ next: () => undefined }, folds).compile().stores)

/** A world that has run to its end, with this mistake in the sources meanwhile. */
export async function worldThatRan<W extends World>(mutant: Mutant | undefined, make: () => W): Promise<W> {
  const undo = mutant?.patch?.()
  const world = make()
  try {
    await world.run()
  } catch (error) {
    // An assertion of the engine notices a mistake as well as a checker does.
    if (mutant === undefined) throw error
    world.violate(String(error))
  } finally {
    undo?.()
  }
  return world
}

export async function runSeed(seed: number, mutant?: Mutant): Promise<Verdict> {
  const world = await worldThatRan(mutant, () => new World({ seed, ...(mutant && { mutant }) }))
  const { cluster, inputs, stores, remains, violations, derived, facts } = world
  if (violations.length === 0) {
    const folds = derived.foldsMs > 0
    const run = { cluster, inputs, stores, remains, folds, specs: specs[folds ? 1 : 0] as (typeof specs)[number] }
    const check = checkRun({ ...run, violate: (what) => world.violate(what) })
    if (!(await world.scheduler.drive(check))) world.violate('a transaction of the end stays open')
  }
  const told = facts.filter((fact) => fact.type !== 'restore-progress')
  const story = told.map((fact) => ('cause' in fact ? `${fact.type} (${fact.cause})` : fact.type)).join(', ')
  return { seed, derived, violations, story, restarts: told.filter((fact) => fact.type === 'restarting').length }
}
