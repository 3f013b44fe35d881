import type { Mutant } from './sim-pod.ts'
export const mutants: readonly Mutant[] = []
