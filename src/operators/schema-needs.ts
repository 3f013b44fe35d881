/** Which serdes of a topology use a schema registry, and for what. */
import type { SchemaLink, SchemaNeed } from '../serde/schemas.ts'
import type { Serde } from '../serde/serde.ts'
import type { CompiledTopology } from '../topology/compiled.ts'

type AnySerde = Serde<unknown>

type Visit = (serde: AnySerde, writes: boolean, where: string) => void

/** All that the serdes have to know before a record is processed. */
export function schemaNeeds(topology: CompiledTopology): SchemaNeed[] {
  const needs: SchemaNeed[] = []
  visitSerdes(topology, (serde, writes, where) => needs.push(...(serde.schemas?.needs(writes, where) ?? [])))
  return needs
}

/** Gives the serdes what they look schemas up in. What they need has to be known by then. */
export function connectSerdes(topology: CompiledTopology, link: SchemaLink): void {
  const connected = new Set<AnySerde>()
  visitSerdes(topology, (serde) => {
    if (serde.schemas === undefined || connected.has(serde)) return
    connected.add(serde)
    serde.schemas.connect(link)
  })
}

function visitSerdes(topology: CompiledTopology, visit: Visit): void {
  for (const { kind, topics, name, keySerde, valueSerde, readsValue } of topology.sources) {
    const writes = kind === 'boundary' || kind === 'scheduled'
    const where = kind === 'topics' || kind === 'global' ? `the stream of ${topics.join(', ') || name}` : name
    visitParts(keySerde, writes, where, visit)
    if (readsValue || writes) visitParts(valueSerde, writes, where, visit)
  }
  for (const { name, spec } of topology.nodes) {
    const where = spec.op === 'sink' && typeof spec.topic === 'string' ? `the sink to ${spec.topic}` : name
    for (const part of Object.values(spec)) if (isSerde(part)) visitParts(part, true, where, visit)
  }
  for (const { name, keySerde, valueSerde } of topology.stores.values()) {
    visitParts(keySerde, true, `the store ${name}`, visit)
    visitParts(valueSerde, true, `the store ${name}`, visit)
  }
}

function visitParts(serde: AnySerde, writes: boolean, where: string, visit: Visit): void {
  visit(serde, writes, where)
  for (const part of serde.parts ?? []) visitParts(part, writes, where, visit)
}

function isSerde(part: unknown): part is AnySerde {
  return typeof part === 'object' && part !== null && 'serialize' in part && 'deserialize' in part
}
