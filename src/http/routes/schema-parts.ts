/** What schemas are made of. */
import { lifecycleStates } from '../../view/view.ts'

export type Schema = Readonly<Record<string, unknown>>

export const string: Schema = { type: 'string' }
export const boolean: Schema = { type: 'boolean' }
export const integer: Schema = { type: 'integer' }
export const count: Schema = { type: 'integer', minimum: 0 }
export const timestamp: Schema = { type: 'string', format: 'date-time' }
export const strings: Schema = list(string)
export const share: Schema = { type: 'number', minimum: 0, maximum: 1 }
export const state: Schema = { type: 'string', enum: [...lifecycleStates] }
export const upDown: Schema = { type: 'string', enum: ['UP', 'DOWN'] }
export const threadState: Schema = { type: 'string', enum: ['RUNNABLE', 'WAITING', 'BLOCKED'] }

export function list(items: Schema): Schema {
  return { type: 'array', items }
}

export function map(values: Schema): Schema {
  return { type: 'object', additionalProperties: values }
}

export function nullable(schema: Schema): Schema {
  return { anyOf: [schema, { type: 'null' }] }
}

/** Fields whose name ends in `?` may be missing. */
export function object(fields: Readonly<Record<string, Schema>>): Schema {
  const properties: Record<string, Schema> = {}
  const required: string[] = []
  for (const [name, schema] of Object.entries(fields)) {
    const optional = name.endsWith('?')
    properties[optional ? name.slice(0, -1) : name] = schema
    if (!optional) required.push(name)
  }
  return { type: 'object', properties, required }
}
