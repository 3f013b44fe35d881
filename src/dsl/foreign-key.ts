/**
 * The operators behind a foreign-key join. A left row subscribes at the right row it names; the right side keeps the
 * subscriptions, answers them, and answers all of a row's subscriptions whenever it changes; the answer meets the left
 * row again, and is dropped when that has changed meanwhile.
 */
import { bytes } from '../serde/primitive.ts'
import { GraphNode } from '../topology/graph.ts'
import { answerSerde, subscriptionSerde } from '../topology/internal-serdes.ts'
import type { OperatorSpec, UserFn } from '../topology/operator-spec.ts'
import type { PhysicalBuilder, StoreDefinition } from '../topology/physical.ts'
import { type AnySerde, keyInfo, ownKeySerde, settingsOf, tableStore, valueSerdeOr } from './build.ts'
import { addBoundarySource, handOffSpec, type TableParts } from './handle.ts'
import { getterStores, SourceTable, type TableJoinShape } from './table-model.ts'
import type { Stored } from './types.ts'

const prefix = 'KTABLE-FK-JOIN-'
const bytesSerde = bytes as AnySerde

interface ForeignNames {
  readonly registrationTopic: string
  readonly send: string
  readonly sendSink: string
  readonly receiveSource: string
  readonly store: string
  readonly receive: string
  readonly joinForeign: string
  readonly foreignTable: string
  readonly responseTopic: string
  readonly responseSink: string
  readonly responseSource: string
  readonly resolve: string
  readonly result: string
}

function foreignNames(parts: TableParts, name: string | undefined): ForeignNames {
  const { names } = parts.build
  const next = (suffix: string, generated: string): string => names.suffixOrGenerate(name, suffix, generated)
  return {
    registrationTopic: `${next('-subscription-registration', `${prefix}SUBSCRIPTION-REGISTRATION-`)}-topic`,
    send: next('-subscription-registration-processor', `${prefix}SUBSCRIPTION-REGISTRATION-`),
    sendSink: next('-subscription-registration-sink', 'KTABLE-SINK-'),
    receiveSource: next('-subscription-registration-source', 'KTABLE-SOURCE-'),
    store: next('-subscription-store', `${prefix}SUBSCRIPTION-STATE-STORE-`),
    receive: next('-subscription-receive', `${prefix}SUBSCRIPTION-PROCESSOR-`),
    joinForeign: next('-subscription-join-foreign', `${prefix}SUBSCRIPTION-PROCESSOR-`),
    foreignTable: next('-foreign-join-subscription', `${prefix}SUBSCRIPTION-PROCESSOR-`),
    responseTopic: `${next('-subscription-response', `${prefix}SUBSCRIPTION-RESPONSE-`)}-topic`,
    responseSink: next('-subscription-response-sink', 'KTABLE-SINK-'),
    responseSource: next('-subscription-response-source', 'KTABLE-SOURCE-'),
    resolve: next('-subscription-response-resolver', `${prefix}SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-`),
    result: next('-result', `${prefix}OUTPUT-`),
  }
}

export function addForeignKeyJoin(
  left: TableParts,
  right: TableParts,
  on: UserFn,
  shape: TableJoinShape,
  options: Stored | undefined,
): TableParts {
  const { build } = left
  const { graph } = build
  const { leftOuter, joiner } = shape
  right.model.enableOldValues(true)
  left.model.enableOldValues(true)
  const names = foreignNames(left, options?.name)
  const primaryKeySerde = ownKeySerde(left.key)
  const foreignKeySerde = ownKeySerde(right.key)
  const leftValueSerde = valueSerdeOr(left.value)
  const answer = answerSerde(valueSerdeOr(right.value)) as AnySerde
  const subscription = subscriptionSerde as AnySerde
  const versioned = { left: false, right: false }
  const processor = (
    parent: GraphNode | readonly GraphNode[],
    name: string,
    spec: () => OperatorSpec,
    more: (builder: PhysicalBuilder) => void = () => undefined,
  ): GraphNode => {
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addProcessor(name, spec, node.parentNames())
      more(builder)
    }
    return graph.add(parent, new GraphNode(name, { write }))
  }
  const boundary = (
    parents: readonly GraphNode[],
    sink: string,
    source: string,
    topic: string,
    key: AnySerde,
    value: AnySerde,
  ): GraphNode => {
    const spec = handOffSpec(topic, { key: keyInfo(key), value })
    const writeSink = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addSink(sink, () => spec, node.parentNames())
    const writeSource = (builder: PhysicalBuilder): void =>
      addBoundarySource(builder, source, topic, topic, { key, value })
    const sinkNode = graph.add(parents, new GraphNode(sink, { write: writeSink }))
    return graph.add(sinkNode, new GraphNode(source, { write: writeSource }))
  }
  const send = graph.add(
    left.node,
    new GraphNode(names.send, {
      onVersionedParent: () => {
        versioned.left = true
      },
      write: (builder, node) =>
        builder.addProcessor(
          names.send,
          () => ({
            op: 'foreignKeySend',
            foreignKey: on,
            leftOuter,
            primaryKeySerde,
            foreignKeySerde,
            leftValueSerde,
            versioned: versioned.left,
          }),
          node.parentNames(),
        ),
    }),
  )
  const receiveSource = boundary(
    [send],
    names.sendSink,
    names.receiveSource,
    names.registrationTopic,
    foreignKeySerde,
    subscription,
  )
  const store: StoreDefinition = {
    name: names.store,
    kind: 'key-value',
    keySerde: bytesSerde,
    valueSerde: subscription,
    timestamped: true,
    changelog: true,
  }
  const receive = processor(
    receiveSource,
    names.receive,
    () => ({ op: 'foreignKeyReceive', store: names.store, foreignKeySerde }),
    (builder) => builder.addStore(store, names.receive),
  )
  const rightGetter = right.model.getter()
  const joinForeign = processor(
    receive,
    names.joinForeign,
    () => ({ op: 'foreignKeyJoin', right: rightGetter, primaryKeySerde }),
    (builder) => builder.connect(names.joinForeign, ...getterStores(rightGetter)),
  )
  const foreignTable = graph.add(
    right.node,
    new GraphNode(names.foreignTable, {
      onVersionedParent: () => {
        versioned.right = true
      },
      write: (builder, node) => {
        builder.addProcessor(
          names.foreignTable,
          () => ({
            op: 'foreignTableJoin',
            store: names.store,
            foreignKeySerde,
            primaryKeySerde,
            versioned: versioned.right,
          }),
          node.parentNames(),
        )
        builder.addStore(store, names.foreignTable)
      },
    }),
  )
  const responseSource = boundary(
    [joinForeign, foreignTable],
    names.responseSink,
    names.responseSource,
    names.responseTopic,
    primaryKeySerde,
    answer,
  )
  const leftGetter = left.model.getter()
  const resolve = processor(
    responseSource,
    names.resolve,
    () => ({ op: 'foreignKeyResolve', left: leftGetter, leftValueSerde, leftOuter, joiner }),
    (builder) => builder.connect(names.resolve, ...getterStores(leftGetter)),
  )
  return addResult(left, resolve, names.result, options)
}

function addResult(left: TableParts, resolve: GraphNode, name: string, options: Stored | undefined): TableParts {
  const { build, key } = left
  const settings = settingsOf(options?.store)
  const storeName = settings.name ?? build.names.store(`${prefix}OUTPUT-`)
  const definition = tableStore({ name: storeName, key, valueSerde: undefined, settings })
  const model = new SourceTable(definition, settings.name !== undefined)
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(name, () => ({ op: 'tableSource', ...model.output() }), node.parentNames())
    if (model.kept) builder.addStore(definition, name)
  }
  const node = build.graph.add(
    resolve,
    new GraphNode(name, { outputVersioned: definition.kind === 'versioned', write }),
  )
  return { build, name, node, key, value: settings.value as AnySerde | undefined, model }
}
