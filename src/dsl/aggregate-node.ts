/** Makes the operator of an aggregate, with the repartition before it where keys changed. */
import { GraphNode, type WindowClose } from '../topology/graph.ts'
import { repartitionNames } from '../topology/names.ts'
import type { OperatorSpec, WindowSpec } from '../topology/operator-spec.ts'
import type { PhysicalBuilder, StoreDefinition } from '../topology/physical.ts'
import { makeRepartition, type StreamParts } from './handle.ts'
import type { AggregateTable } from './table-model.ts'

/** A grouping, with the repartition that its aggregates share if it has a name. */
export interface GroupParts extends StreamParts {
  readonly groupName: string | undefined
  readonly shared: { repartition: GraphNode | undefined }
}

/** The node that aggregates of this grouping follow. */
export function groupedParent(parts: GroupParts, storeName: string): GraphNode {
  if (!parts.rekeyed) return parts.node
  const base = parts.groupName ?? storeName
  const shape = { key: parts.key, value: parts.value }
  if (parts.shared.repartition !== undefined && parts.groupName !== undefined) {
    // The numbers are used up all the same.
    repartitionNames(parts.build.names, base)
    return parts.shared.repartition
  }
  const node = makeRepartition(parts.build, base, shape, true)
  parts.shared.repartition = node
  parts.build.graph.add(parts.node, node)
  return node
}

function windowClose(window: WindowSpec): WindowClose {
  if (window.type === 'unlimited') return { graceMs: 0, inclusiveEnd: false, closeAfterIdleMs: undefined }
  const { graceMs, closeAfterIdleMs } = window
  if (window.type === 'session') return { graceMs: graceMs + window.gapMs, inclusiveEnd: true, closeAfterIdleMs }
  return { graceMs, inclusiveEnd: window.type === 'sliding', closeAfterIdleMs }
}

function progressStore(store: string): StoreDefinition {
  return {
    name: `${store}-closed`,
    kind: 'key-value',
    keySerde: undefined,
    valueSerde: undefined,
    timestamped: false,
    changelog: true,
  }
}

export interface AggregateShape {
  readonly name: string
  readonly definition: StoreDefinition
  readonly window: WindowSpec | undefined
  readonly spec: (output: ReturnType<AggregateTable['output']>) => OperatorSpec
  /** False: another operator added the store already. */
  readonly addsStore?: boolean
  /** How far its windows were closed is kept too. */
  readonly finalOnly?: boolean
}

export function addAggregate(
  parts: GroupParts,
  parent: GraphNode,
  shape: AggregateShape,
  model: AggregateTable,
): GraphNode {
  const { name, definition, window } = shape
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(name, () => shape.spec(model.output()), node.parentNames())
    if (shape.addsStore ?? true) builder.addStore(definition, name)
    else builder.connect(name, definition.name)
    if (shape.finalOnly) builder.addHiddenStore(progressStore(definition.name), name)
  }
  const node = new GraphNode(name, {
    outputVersioned: definition.kind === 'versioned',
    ...(window ? { windowClose: windowClose(window) } : {}),
    write,
  })
  return parts.build.graph.add(parent, node)
}
