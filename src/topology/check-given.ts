/**
 * Whether what an application gave where a function belongs is one. Types hold nobody who writes JavaScript, nor an
 * `import` that is undefined: without this each record would fail, far from where the function is missing.
 */
import type { OperatorSpec } from './operator-spec.ts'
import { invalid, type PhysicalNode } from './physical.ts'

/** What a sentence calls something that stands where something else belongs. */
export function shownInstead(given: unknown): string {
  if (typeof given === 'string') return `the text '${given}'`
  if (typeof given === 'function') return 'a function'
  if (typeof given !== 'object' || given === null) return String(given)
  const { name } = given as { readonly name?: unknown }
  return `${Array.isArray(given) ? 'a list' : 'an object'}${typeof name === 'string' ? ` named ${name}` : ''}`
}

type Field = 'fn' | 'predicate' | 'fold' | 'add' | 'subtract' | 'joiner' | 'merge' | 'init' | 'foreignKey'

/** By the field of an operator's spec: what the function in it is for. */
const functions: Readonly<Record<Field, string>> = {
  fn: 'its function',
  predicate: 'its predicate',
  fold: 'the function that folds a value in',
  add: 'the function that adds a row',
  subtract: 'the function that takes a row out',
  joiner: 'the function that joins two values',
  merge: 'the function that merges two sessions',
  init: 'the function that makes the first aggregate',
  foreignKey: 'the function that chooses the key of the other row',
}

/** Whether the spec goes without it. */
function isLeftOut(field: Field, spec: OperatorSpec): boolean {
  if (field === 'merge') return spec.op === 'windowAggregate' && spec.window.type !== 'session'
  // A reduce begins with its first value, and a table is joined by the record's own key.
  return field === 'init' || (field === 'foreignKey' && spec.op === 'streamTableJoin')
}

/** @throws EngineError `TOPOLOGY_INVALID` where something else stands for a function. */
export function checkFunctions(nodes: readonly PhysicalNode[], specs: readonly OperatorSpec[]): void {
  nodes.forEach(({ name }, i) => {
    const spec = specs[i] as OperatorSpec & Partial<Record<Field, unknown>>
    for (const [field, what] of Object.entries(functions) as Array<[Field, string]>) {
      if (!(field in spec) || typeof spec[field] === 'function') continue
      if (spec[field] === undefined && isLeftOut(field, spec)) continue
      throw notFunction(name, what, spec[field])
    }
  })
}

export function notFunction(name: string, what: string, given: unknown): Error {
  return invalid(`${name} has ${shownInstead(given)} for ${what}; give a function`)
}
