/** What schemas are made of. Each carries the type of what it describes, for the compiler alone. */
import { lifecycleStates } from '../../view/view.ts'

declare const described: unique symbol

export type Schema<T = unknown> = Readonly<Record<string, unknown>> & { readonly [described]?: T }

/** The type of what a schema describes. */
export type Described<S extends Schema> = S extends Schema<infer T> ? T : never

export const string: Schema<string> = { type: 'string' }
export const boolean: Schema<boolean> = { type: 'boolean' }
export const number: Schema<number> = { type: 'number' }
export const integer: Schema<number> = { type: 'integer' }
export const count: Schema<number> = { type: 'integer', minimum: 0 }
export const timestamp: Schema<string> = { type: 'string', format: 'date-time' }
export const duration: Schema<string> = { type: 'string', pattern: '^PT' }
export const strings = list(string)
export const share: Schema<number> = { type: 'number', minimum: 0, maximum: 1 }
export const state = oneOf(lifecycleStates)
export const upDown = oneOf(['UP', 'DOWN'])
export const threadState = oneOf(['RUNNABLE', 'WAITING', 'BLOCKED'])
/** An object whose fields are not promised. */
export const some: Schema<object> = { type: 'object' }

export function oneOf<const T extends string>(values: readonly T[]): Schema<T> {
  return { type: 'string', enum: [...values] }
}

export function list<T>(items: Schema<T>): Schema<readonly T[]> {
  return { type: 'array', items }
}

export function map<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return { type: 'object', additionalProperties: values }
}

export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  return { anyOf: [schema, { type: 'null' }] }
}

type Fields = Readonly<Record<string, Schema>>
type DescribedObject<F extends Fields> = {
  readonly [Name in keyof F as Name extends `${string}?` ? never : Name]: Described<F[Name]>
} & {
  readonly [Name in keyof F as Name extends `${infer Bare}?` ? Bare : never]?: Described<F[Name]>
}

/** Fields whose name ends in `?` may be missing. */
export function object<F extends Fields>(fields: F): Schema<DescribedObject<F>> {
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const [name, schema] of Object.entries(fields)) {
    const optional = name.endsWith('?')
    properties[optional ? name.slice(0, -1) : name] = schema
    if (!optional) required.push(name)
  }
  return { type: 'object', properties, required }
}
