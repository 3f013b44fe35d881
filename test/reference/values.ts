/** The functions of random programs: all of them take and give values of one shape, `{ i, a, g, h }`. */
import type { Expr, Json } from '../../conformance/expr.ts'

export const constant = (value: Json): Expr => ({ fn: 'const', value })
export const field = (name: string, of: Expr = { fn: 'value' }): Expr => ({ fn: 'field', name, of })
const add = (a: Expr, b: Expr): Expr => ({ fn: 'add', a, b })
const sub = (a: Expr, b: Expr): Expr => ({ fn: 'sub', a, b })
const mul = (a: Expr, n: number): Expr => ({ fn: 'mul', a, b: constant(n) })
const mod = (a: Expr, n: number): Expr => ({ fn: 'mod', a, n })
/** One of `n` keys. */
export const keyOf = (a: Expr, n: number): Expr => ({ fn: 'concat', parts: [constant('k'), mod(a, n)] })
const shape = (i: Expr, a: Expr, g: Expr, h: Expr): Expr => ({ fn: 'object', fields: { i, a, g, h } })
const isNull = (of: Expr): Expr => ({ fn: 'isNull', of })
const either = (cond: Expr, yes: Expr, no: Expr): Expr => ({ fn: 'if', cond, then: yes, else: no })

const value: Expr = { fn: 'value' }
const agg: Expr = { fn: 'agg' }
const left: Expr = { fn: 'left' }
const right: Expr = { fn: 'right' }

export const isThere: Expr = { fn: 'not', of: isNull(value) }
export const someOf = (n: number, rest: number): Expr => ({
  fn: 'not',
  of: { fn: 'eq', a: mod(field('a'), n), b: constant(rest) },
})
export const small: Expr = { fn: 'lt', a: field('a'), b: constant(400) }

export const otherValue = (by: number): Expr =>
  shape(field('i'), mod(add(mul(field('a'), by), field('h')), 1009), field('g'), mod(add(field('h'), constant(by)), 7))
export const doubled: Expr = { fn: 'list', items: [value, otherValue(5)] }

/** What comes of two values; a missing one counts as nothing. */
export const joined: Expr = shape(
  either(isNull(left), field('i', right), field('i', left)),
  mod(add(mul(field('a', left), 3), field('a', right)), 1009),
  either(isNull(right), field('g', left), field('g', right)),
  mod(add(field('h', left), mul(field('h', right), 2)), 7),
)

export const nothing = constant({ i: 0, a: 0, g: 'k0', h: 0 })

const sums = (a: Expr, b: Expr, step: Expr): Expr => {
  const sum = mod(add(field('a', a), field('a', b)), 1009)
  return shape(add(field('i', a), step), sum, keyOf(sum, 12), mod(add(field('h', a), field('h', b)), 7))
}

/** Gives the same whatever the order: how many, and sums. */
export const summing: Expr = sums(agg, value, constant(1))
export const mergingSums: Expr = sums(left, right, field('i', right))
export const takingOut: Expr = shape(
  sub(field('i', agg), constant(1)),
  mod(sub(field('a', agg), field('a')), 1009),
  keyOf(mod(sub(field('a', agg), field('a')), 1009), 12),
  mod(sub(field('h', agg), field('h')), 7),
)
export const reducingSums: Expr = sums(agg, value, field('i'))

/** Tells every order from any other. */
export const following: Expr = shape(
  field('i'),
  mod(add(mul(field('a', agg), 3), field('a')), 1009),
  field('g'),
  mod(add(field('h', agg), field('h')), 7),
)

/** A count as a value. */
export const ofCount: Expr = shape(value, value, keyOf(value, 12), mod(value, 7))
export const innerKey: Expr = { fn: 'field', name: 'key', of: { fn: 'key' } }
