/** One seed, run and judged. */
import type { StoreSpec } from '../../src/state/contract.ts'
import { checkRun } from './checkers.ts'
import { type Derived, type Mutant, World } from './world.ts'
import { application } from './workload.ts'

export { mutants } from './mutants.ts'

export interface Verdict {
  readonly seed: number
  readonly derived: Derived
  readonly violations: readonly string[]
  /** What the engine reported, in order. */
  readonly story: string
  readonly restarts: number
}

let specs: ReadonlyMap<string, StoreSpec> | undefined

export async function runSeed(seed: number, mutant?: Mutant): Promise<Verdict> {
  specs ??= application({ next: () => undefined }).compile().stores
  const world = new World({ seed, ...(mutant && { mutant }) })
  await world.run()
  const { cluster, inputs, stores, remains, violations, derived, facts } = world
  if (violations.length === 0) {
    const check = checkRun({ cluster, inputs, stores, remains, specs, violate: (what) => world.violate(what) })
    if (!(await world.scheduler.drive(check))) world.violate('a transaction of the end stays open')
  }
  const told = facts.filter((fact) => fact.type !== 'restore-progress')
  const story = told.map((fact) => ('cause' in fact ? `${fact.type} (${fact.cause})` : fact.type)).join(', ')
  return { seed, derived, violations, story, restarts: told.filter((fact) => fact.type === 'restarting').length }
}
