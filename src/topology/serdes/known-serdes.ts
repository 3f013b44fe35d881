/** Which serdes wrote the bytes that records carry along, so that whoever writes them again need not read them. */
import type { Serde } from '../../serde/serde.ts'
import type { CompiledNode, CompiledSource } from '../compiled.ts'

export interface KnownSerdes {
  readonly key: Serde<unknown> | undefined
  readonly value: Serde<unknown> | undefined
}

/** By node; undefined where several might have, as where streams are merged. */
export function knownSerdes(
  nodes: readonly Pick<CompiledNode, 'index' | 'parents'>[],
  sources: readonly Pick<CompiledSource, 'node' | 'keySerde' | 'valueSerde'>[],
): Map<number, KnownSerdes> {
  const known = new Map<number, KnownSerdes>()
  for (const source of sources) known.set(source.node, { key: source.keySerde, value: source.valueSerde })
  for (const node of nodes) {
    const parents = node.parents.map((parent) => known.get(parent))
    const first = parents[0]
    if (!first) continue
    const key = parents.every((parent) => parent?.key === first.key) ? first.key : undefined
    const value = parents.every((parent) => parent?.value === first.value) ? first.value : undefined
    known.set(node.index, { key, value })
  }
  return known
}
