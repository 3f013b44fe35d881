/** What is wrong with the JSON of an Avro schema: its shape, and names that Avro forbids. What names stand for is not looked at. */
import { namedTypes } from './avro-schema.ts'

/** Undefined: nothing. */
export function avroShapeFault(schema: unknown): string | undefined {
  return shapeFault(schema, 'the schema')
}

function shapeFault(node: unknown, what: string): string | undefined {
  if (typeof node === 'string') return undefined
  if (Array.isArray(node)) {
    if (node.length === 0) return `${what} is a union of nothing`
    return firstFault(node, (branch, i) => shapeFault(branch, `branch ${i} of ${what}`))
  }
  if (typeof node !== 'object' || node === null) return `${what} is ${JSON.stringify(node)}, which is no type`
  const { type, items, values } = node as Readonly<Record<string, unknown>>
  if (type === undefined) return `${what} has no type`
  if (typeof type !== 'string') return shapeFault(type, `the type of ${what}`)
  if (namedTypes.has(type)) return namedFault(node as Readonly<Record<string, unknown>>, type, what)
  if (type === 'array') return shapeFault(items ?? null, `what the array holds in ${what}`)
  return type === 'map' ? shapeFault(values ?? null, `what the map holds in ${what}`) : undefined
}

function namedFault(node: Readonly<Record<string, unknown>>, type: string, what: string): string | undefined {
  const { name, namespace, fields, symbols } = node
  if (typeof name !== 'string') return `${what} is of the type ${type} and has no name`
  if (!isName(name)) return `${what}, of the type ${type}, is called ${forbidden(name)}`
  if (typeof namespace === 'string' && namespace !== '' && !isName(namespace))
    return `the namespace of ${name} is ${forbidden(namespace)}`
  if (type === 'enum') {
    if (!(Array.isArray(symbols) && symbols.length > 0)) return `the enum ${name} has no symbols`
    const wrong = symbols.find((symbol) => !isPlain(symbol))
    return wrong === undefined ? undefined : `a symbol of the enum ${name} is ${forbidden(wrong)}`
  }
  if (type === 'fixed') return undefined
  if (!Array.isArray(fields)) return `${what} is a record without a list of fields`
  return firstFault(fields, (field, i) => fieldFault(field, `field ${i} of ${name}`))
}

function fieldFault(field: unknown, what: string): string | undefined {
  const { name, type } = (field ?? {}) as Readonly<Record<string, unknown>>
  if (typeof name !== 'string') return `${what} has no name`
  if (!isPlain(name)) return `${what} is called ${forbidden(name)}`
  return type === undefined ? `${what} has no type` : shapeFault(type, `the type of the field ${name}`)
}

/** A name with its namespace, or a namespace: names with points between them. */
function isName(text: string): boolean {
  return text.replace(/^\./, '').split('.').every(isPlain)
}

function isPlain(text: unknown): boolean {
  return typeof text === 'string' && /^[A-Za-z_][A-Za-z0-9_]*$/.test(text)
}

function forbidden(text: unknown): string {
  return `${JSON.stringify(text)}, and names in Avro are made of letters, digits and _, without a digit in front`
}

function firstFault(list: readonly unknown[], faultOf: (each: unknown, i: number) => string | undefined) {
  for (const [i, each] of list.entries()) {
    const fault = faultOf(each, i)
    if (fault !== undefined) return fault
  }
  return undefined
}
