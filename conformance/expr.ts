/** The language in which scenarios write their user functions. Every value is JSON: null, never undefined. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

export interface Expr {
  readonly fn: string
  readonly [argument: string]: unknown
}

export type Env = Readonly<Record<string, Json>>

class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
}

/** What `fail` throws: a function of the application fails on what it is given. */
export class FunctionFailed extends Error {
  override readonly name = 'FunctionFailed'
}

/** JSON text with the fields of objects in ascending order of their names, without spaces. */
export function canonical(value: Json | undefined): string {
  if (value === undefined || value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item as Json)).join(',')}]`
  if (typeof value !== 'object') return JSON.stringify(value)
  const object = value as { readonly [name: string]: Json }
  const fields = Object.keys(object)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(object[name])}`)
  return `{${fields.join(',')}}`
}

type Evaluator = (expr: Expr, env: Env) => Json

const isInteger = (value: Json): value is number => typeof value === 'number' && Number.isInteger(value)
const isObject = (value: Json): value is { readonly [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: Json): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : [])
const textOf = (value: Json): string => (typeof value === 'string' ? value : canonical(value))

const argument = (expr: Expr, name: string, env: Env): Json => evaluate(expr[name] as Expr, env)
const integer = (expr: Expr, name: string, env: Env): number => {
  const value = argument(expr, name, env)
  return isInteger(value) ? value : 0
}

function variable(name: string, env: Env): Json {
  if (!Object.hasOwn(env, name)) throw new ExpressionError(`the variable ${name} is not known here`)
  return env[name] ?? null
}

const subject: Evaluator = (expr, env) => ('of' in expr ? argument(expr, 'of', env) : variable('value', env))
const named: Evaluator = (expr, env) => variable(expr.fn, env)

/** -0 is no JSON integer. */
const plain = (value: number): number => (value === 0 ? 0 : value)

const arithmetic =
  (apply: (a: number, b: number) => number): Evaluator =>
  (expr, env) =>
    plain(apply(integer(expr, 'a', env), integer(expr, 'b', env)))

const comparison =
  (holds: (a: number, b: number) => boolean): Evaluator =>
  (expr, env) => {
    const a = argument(expr, 'a', env)
    const b = argument(expr, 'b', env)
    return isInteger(a) && isInteger(b) && holds(a, b)
  }

const extreme =
  (pick: (a: number, b: number) => number): Evaluator =>
  (expr, env) => {
    const a = argument(expr, 'a', env)
    const b = argument(expr, 'b', env)
    if (isInteger(a) && isInteger(b)) return pick(a, b)
    return isInteger(a) ? a : isInteger(b) ? b : null
  }

function without(list: readonly Json[], item: Json): Json {
  const text = canonical(item)
  const at = list.findIndex((element) => canonical(element) === text)
  return at < 0 ? [...list] : [...list.slice(0, at), ...list.slice(at + 1)]
}

function failing(expr: Expr, env: Env): Json {
  if (argument(expr, 'when', env) === true)
    throw new FunctionFailed(`${expr.as as string} refuses ${canonical(argument(expr, 'about', env))}`)
  return argument(expr, 'of', env)
}

function modulus(expr: Expr, env: Env): Json {
  const n = expr.n as number
  return plain(((integer(expr, 'a', env) % n) + n) % n)
}

const functions: Readonly<Record<string, Evaluator>> = {
  key: named,
  value: named,
  agg: named,
  left: named,
  right: named,
  const: (expr) => (expr.value as Json | undefined) ?? null,
  field: (expr, env) => {
    const object = subject(expr, env)
    const name = expr.name as string
    return isObject(object) && Object.hasOwn(object, name) ? (object[name] as Json) : null
  },
  object: (expr, env) =>
    Object.fromEntries(
      Object.entries(expr.fields as Record<string, Expr>).map(([name, e]) => [name, evaluate(e, env)]),
    ),
  set: (expr, env) => {
    const object = subject(expr, env)
    return { ...(isObject(object) ? object : {}), [expr.name as string]: argument(expr, 'to', env) }
  },
  list: (expr, env) => (expr.items as readonly Expr[]).map((item) => evaluate(item, env)),
  append: (expr, env) => [...listOf(argument(expr, 'list', env)), argument(expr, 'item', env)],
  remove: (expr, env) => without(listOf(argument(expr, 'list', env)), argument(expr, 'item', env)),
  join: (expr, env) => [...listOf(argument(expr, 'a', env)), ...listOf(argument(expr, 'b', env))],
  size: (expr, env) => listOf(argument(expr, 'of', env)).length,
  add: arithmetic((a, b) => a + b),
  sub: arithmetic((a, b) => a - b),
  mul: arithmetic((a, b) => a * b),
  mod: modulus,
  min: extreme(Math.min),
  max: extreme(Math.max),
  str: (expr, env) => textOf(argument(expr, 'of', env)),
  concat: (expr, env) => (expr.parts as readonly Expr[]).map((part) => textOf(evaluate(part, env))).join(''),
  gt: comparison((a, b) => a > b),
  ge: comparison((a, b) => a >= b),
  lt: comparison((a, b) => a < b),
  le: comparison((a, b) => a <= b),
  eq: (expr, env) => canonical(argument(expr, 'a', env)) === canonical(argument(expr, 'b', env)),
  isNull: (expr, env) => argument(expr, 'of', env) === null,
  not: (expr, env) => argument(expr, 'of', env) !== true,
  and: (expr, env) => (expr.of as readonly Expr[]).every((e) => evaluate(e, env) === true),
  or: (expr, env) => (expr.of as readonly Expr[]).some((e) => evaluate(e, env) === true),
  fail: failing,
  if: (expr, env) => argument(expr, argument(expr, 'cond', env) === true ? 'then' : 'else', env),
}

export function evaluate(expr: Expr, env: Env): Json {
  const fn = functions[expr.fn]
  if (fn === undefined) throw new ExpressionError(`unknown function ${expr.fn}`)
  return fn(expr, env)
}

/** What a scenario shows of a value: an endless window ends at null, nothing is null. */
export function jsonOf(value: unknown): Json {
  if (value === undefined || value === null) return null
  if (typeof value !== 'object') return value as Json
  if ('key' in value && 'start' in value && 'end' in value) {
    const { key, start, end } = value as { key: unknown; start: number; end: number }
    return { key: jsonOf(key), start, end: end === Number.MAX_SAFE_INTEGER ? null : end }
  }
  return value as Json
}
