/**
 * Whether what an application gave where a function belongs is one, and whether options are those that there are. Types
 * hold nobody who writes JavaScript, nor an `import` that is undefined: without this each record would fail, far from where
 * the function is missing, and a misspelled option would be as if it were not there.
 */
import { nearestName } from '../config/nearest.ts'
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

declare const namesOf: unique symbol

/**
 * The names of the options of a type, which the compiler holds against it: none may be missing, or it would be refused, and
 * none may be too many. Several spread into one another make those of all their types.
 */
export type Names<Options> = Readonly<Record<keyof Options, true>> & { readonly [namesOf]?: keyof Options }

/** A pair of serdes is given to many operators in one piece. One of them that has no use for both is given nothing wrong. */
const pairOfSerdes: ReadonlySet<string> = new Set(['key', 'value'])

/**
 * @param taker who takes the options, as in `count` or `the watermark of stream`.
 * @throws EngineError `TOPOLOGY_INVALID` for what is no object, and for an option that there is not.
 */
export function checkOptions<Options>(
  taker: string,
  given: Options | undefined,
  names: Names<NoInfer<Options>>,
): asserts given is (Options & object) | undefined {
  if (given === undefined) return
  if (typeof given !== 'object' || given === null)
    throw invalid(`${taker} has ${shownInstead(given)} for its options; give an object: { name: '…' }`)
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined || Object.hasOwn(names, option) || pairOfSerdes.has(option)) continue
    const known = Object.keys(names)
    // A short name is near to any other short one.
    const near = nearestName(option, known, Math.max(1, Math.floor(option.length / 4)))
    const instead = near === undefined ? `it has ${known.join(', ')}` : `did you mean '${near}'?`
    throw invalid(`${taker} has no option '${option}'; ${instead}`)
  }
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
