/** What the handles of the DSL hold inside. It is not part of the public surface. */
import { GraphNode } from '../topology/graph.ts'
import { repartitionNames } from '../topology/names.ts'
import type { OperatorSpec, UserFn } from '../topology/operator-spec.ts'
import { noWatermark, type PhysicalBuilder } from '../topology/physical.ts'
import { type AnySerde, type Build, type KeyInfo, ownKeySerde, partitionSerde, valueSerdeOr } from './build.ts'
import type { TableModel } from './table-model.ts'

/** The key under which a handle keeps its parts. */
export const inner: unique symbol = Symbol('millrace.handle')

export interface StreamParts {
  readonly build: Build
  /** The last operator. A repartition that is named after the stream takes its name. */
  readonly name: string
  readonly node: GraphNode
  readonly key: KeyInfo
  readonly value: AnySerde | undefined
  /**
   * Whether keys have changed since the last repartition. An operator that needs the records of a key together then
   * repartitions first.
   */
  readonly rekeyed: boolean
  /** The repartition made for an unnamed join of this stream. The next join uses it, too. */
  readonly memo: { joinRepartition?: GraphNode }
}

export interface TableParts {
  readonly build: Build
  readonly name: string
  readonly node: GraphNode
  readonly key: KeyInfo
  readonly value: AnySerde | undefined
  readonly model: TableModel
}

/** Adds a processor below a stream. */
export function addProcessor(
  parts: { readonly build: Build; readonly node: GraphNode },
  name: string,
  spec: OperatorSpec,
  options: { keyChanging?: boolean; valueChanging?: boolean } = {},
): GraphNode {
  const write = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addProcessor(name, () => spec, node.parentNames())
  return parts.build.graph.add(parts.node, new GraphNode(name, { ...options, write }))
}

/** The parts of a stream behind one more operator. */
export function following(parts: StreamParts, node: GraphNode, change: Partial<StreamParts>): StreamParts {
  const { build, key, value, rekeyed } = parts
  return { build, key, value, rekeyed, ...change, name: node.name, node, memo: {} }
}

export interface BoundaryShape {
  readonly key: KeyInfo
  readonly value: AnySerde | undefined
  readonly carriesChanges?: boolean
  readonly toPartition?: (value: unknown) => number | undefined
}

export function handOffSpec(topic: string, shape: BoundaryShape): OperatorSpec {
  return {
    op: 'handOff',
    topic,
    boundary: -1,
    keySerde: ownKeySerde(shape.key),
    valueSerde: valueSerdeOr(shape.value),
    windowedInner: partitionSerde(shape.key, true),
    toPartition: shape.toPartition,
    carriesChanges: shape.carriesChanges ?? false,
  }
}

export function addBoundarySource(
  builder: PhysicalBuilder,
  name: string,
  topic: string,
  base: string,
  shape: { key: AnySerde; value: AnySerde },
): void {
  builder.addSource(name, {
    kind: 'boundary',
    topics: [topic],
    pattern: undefined,
    keySerde: shape.key,
    valueSerde: shape.value,
    watermark: noWatermark,
    timestampExtractor: undefined,
    isTable: false,
    expectsNull: false,
    schedule: undefined,
    boundaryBase: base.endsWith('-repartition') ? base.slice(0, -'-repartition'.length) : base,
  })
}

/** A repartition: a filter for records without a key, a hand-off, and a source. It is not yet part of the graph. */
export function makeRepartition(build: Build, base: string, shape: BoundaryShape, mergeable: boolean): GraphNode {
  const names = repartitionNames(build.names, base)
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    const drop = node.options.repartition?.dropsNullKeys ?? true
    builder.addProcessor(names.filter, () => ({ op: 'nullKeyFilter', drop }), node.parentNames())
    builder.addSink(names.sink, () => handOffSpec(names.topic, shape), [names.filter])
    addBoundarySource(builder, names.source, names.topic, names.topic, {
      key: ownKeySerde(shape.key),
      value: valueSerdeOr(shape.value),
    })
  }
  const remake = mergeable ? (newBase: string): GraphNode => makeRepartition(build, newBase, shape, false) : undefined
  return new GraphNode(names.source, {
    kind: 'repartition',
    repartition: { base, topic: names.topic, mergeable, dropsNullKeys: true, remake },
    write,
  })
}

/** The stream repartitioned by its key. */
export function repartitioned(parts: StreamParts, base: string, mergeable: boolean): StreamParts {
  const node = makeRepartition(parts.build, base, { key: parts.key, value: parts.value }, mergeable)
  parts.build.graph.add(parts.node, node)
  return following(parts, node, { rekeyed: false })
}

export const asUserFn = (fn: unknown): UserFn => fn as UserFn
