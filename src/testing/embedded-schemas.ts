/** Serdes over a registry in a test: all on one thread, without a network and without waiting. */
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import { SchemaStore } from '../serde/registry/schema-store.ts'
import { needKey, type SchemaNeed } from '../serde/schemas.ts'
import type { Serde } from '../serde/serde.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { connectSerdes, schemaNeeds } from '../operators/schema-needs.ts'

/** @throws EngineError `SCHEMA_REFUSED` where the registry lacks a schema or refuses one. */
export function connectEmbedded(topology: CompiledTopology, registry: EmbeddedRegistry): void {
  const needs = schemaNeeds(topology)
  if (needs.length > 0) connectSerdes(topology, storeOf(registry, needs))
}

/** As `connectEmbedded`, of one serde. */
export function connectSerde(serde: Serde<unknown>, registry: EmbeddedRegistry): void {
  serde.schemas?.connect(storeOf(registry, serde.schemas.needs(true, 'a serde of the test')))
}

function storeOf(registry: EmbeddedRegistry, needs: readonly SchemaNeed[]): SchemaStore {
  const store: SchemaStore = new SchemaStore((id) => {
    const schema = registry.known(id)
    const message = `The schema ${id} is not in the registry of this test.`
    store.take(schema === undefined ? { type: 'failed', id, message, againAfterMs: 0 } : { type: 'schema', schema })
  }, monotonic)
  store.take({ type: 'prepared', ...registry.prepare(needs, needKey) })
  return store
}

/** No time passes in a test by itself. */
function monotonic(): number {
  return 0
}
