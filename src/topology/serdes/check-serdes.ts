/** Whether what an application gave as serdes are such: at run time a missing name or function is met far from where it is missing. */
import type { Serde } from '../../serde/serde.ts'
import type { OperatorSpec } from '../operator-spec.ts'
import { invalid, type PhysicalNode, type StoreDefinition } from '../physical.ts'

/** Where a serde was given. */
type Given = Readonly<Record<string, unknown>>

const isSerdeField = (name: string): boolean => name.endsWith('Serde') || name === 'windowedInner'

/** @throws EngineError `TOPOLOGY_INVALID` where a serde is none. */
export function checkSerdes(
  nodes: readonly PhysicalNode[],
  specs: readonly OperatorSpec[],
  stores: ReadonlyMap<string, StoreDefinition>,
): void {
  nodes.forEach(({ name, source }, i) => {
    checkFields(source as unknown as Given | undefined, name)
    checkFields(specs[i] as unknown as Given, name)
  })
  for (const store of stores.values()) {
    const user = nodes.find(({ stores: own, hiddenStores }) => [...own, ...hiddenStores].includes(store.name))
    const whose = user === undefined ? '' : ` of ${user.name}`
    checkFields(store as unknown as Given, `the store ${store.name}${whose}`)
  }
}

function checkFields(given: Given | undefined, owner: string): void {
  for (const [field, serde] of Object.entries(given ?? {})) {
    if (!isSerdeField(field) || serde === undefined) continue
    const fault = faultOf(serde)
    if (fault === undefined) continue
    const what = field === 'keySerde' ? 'key' : field === 'valueSerde' ? 'value' : field.replace(/Serde$/, '')
    throw invalid(
      `${owner} was given a ${what} serde that is none: ${fault}; give an object with the text "name" and the functions ` +
        '"serialize" and "deserialize", such as serdes.string',
    )
  }
}

function faultOf(serde: unknown): string | undefined {
  if (typeof serde !== 'object' || serde === null) return `it is of type ${serde === null ? 'null' : typeof serde}`
  const { name, serialize, deserialize, parts } = serde as Partial<Serde<unknown>>
  // What is made of others has all of it whatever they are.
  for (const part of parts ?? []) {
    const fault = faultOf(part)
    if (fault !== undefined) return fault
  }
  const missing = [
    ...(typeof name === 'string' ? [] : ['name']),
    ...(typeof serialize === 'function' ? [] : ['serialize']),
    ...(typeof deserialize === 'function' ? [] : ['deserialize']),
  ]
  if (missing.length === 0) return undefined
  const isPair = 'key' in serde || 'value' in serde
  return `it has no ${missing.join(', no ')}${isPair ? ', and is a pair of key and value where one of them is wanted' : ''}`
}
