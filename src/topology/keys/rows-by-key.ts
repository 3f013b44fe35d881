/** Which rows a record will read. Often that is known before it is decoded: those of its own key. */
import type { CompiledNode, CompiledSource, CompiledTopology } from '../compiled.ts'
import type { StoreRefSpec } from '../operator-spec.ts'

/** The key-value store in which records of this source read the row of the key that they come with; undefined: none. */
export function rowsByKey(topology: CompiledTopology, source: CompiledSource): string | undefined {
  const pending = [source.node]
  for (let at = 0; at < pending.length; at++) {
    const node = topology.nodes[pending[at] as number]
    if (node === undefined) continue
    const store = storeAt(node)
    if (store !== undefined) return store
    if (keepsKey(node)) pending.push(...node.children)
  }
  return undefined
}

function storeAt({ spec }: CompiledNode): string | undefined {
  const keyed = (store: StoreRefSpec | undefined): string | undefined =>
    store?.kind === 'key-value' ? store.name : undefined
  switch (spec.op) {
    case 'tableSource':
    case 'streamAggregate':
      return keyed(spec.store)
    case 'streamTableJoin': {
      const { getter, foreignKey, grace } = spec
      if (foreignKey !== undefined || grace !== undefined || getter.kind !== 'store' || getter.global) return undefined
      return keyed({ name: getter.store, kind: getter.storeKind })
    }
    default:
      return undefined
  }
}

function keepsKey({ spec }: CompiledNode): boolean {
  switch (spec.op) {
    case 'source':
    case 'passThrough':
    case 'filter':
    case 'mapValues':
    case 'flatMapValues':
    case 'peek':
    case 'branch':
    case 'nullKeyFilter':
      return true
    default:
      return false
  }
}
