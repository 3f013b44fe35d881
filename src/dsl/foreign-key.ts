/**
 * The operators behind a foreign-key join. A left row subscribes to the right row that it names. The right side keeps
 * the subscriptions. It answers each of them at once, and all subscriptions of a row again whenever the row changes. On
 * the left side an answer meets its row again, and is dropped when that row has changed meanwhile.
 */
import { bytes } from '../serde/primitive.ts'
import { GraphNode } from '../topology/graph.ts'
import { answerSerde, type SubscriptionAnswer, subscriptionSerde } from '../topology/serdes/internal-serdes.ts'
import { checkOptions } from '../topology/check-given.ts'
import type { OperatorSpec, UserFn } from '../topology/operator-spec.ts'
import type { PhysicalBuilder, StoreDefinition } from '../topology/physical.ts'
import { type AnySerde, type KeyInfo, ownKeySerde, settingsOf, tableStore, valueSerdeOr } from './build.ts'
import { addBoundarySource, handOffSpec, type TableParts } from './handle.ts'
import { getterStores, SourceTable, type TableJoinShape } from './table-model.ts'
import { type Stored, storedOptions } from './types.ts'

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

/** What the steps of one join share. */
interface ForeignJoin {
  readonly left: TableParts
  readonly right: TableParts
  readonly on: UserFn
  readonly shape: TableJoinShape
  readonly names: ForeignNames
  readonly primaryKeySerde: AnySerde
  readonly foreignKeySerde: AnySerde
  readonly leftValueSerde: AnySerde
  readonly store: StoreDefinition
}

export function addForeignKeyJoin(
  left: TableParts,
  right: TableParts,
  on: UserFn,
  shape: TableJoinShape,
  options: Stored | undefined,
): TableParts {
  checkOptions<Stored & { on?: unknown }>(shape.leftOuter ? 'leftJoin' : 'join', options, {
    ...storedOptions,
    on: true,
  })
  right.model.enableOldValues(true)
  left.model.enableOldValues(true)
  const names = foreignNames(left, options?.name)
  const join: ForeignJoin = {
    left,
    right,
    on,
    shape,
    names,
    primaryKeySerde: ownKeySerde(left.key),
    foreignKeySerde: ownKeySerde(right.key),
    leftValueSerde: valueSerdeOr(left.value),
    store: {
      name: names.store,
      kind: 'key-value',
      keySerde: bytesSerde,
      valueSerde: subscriptionSerde as AnySerde,
      timestamped: true,
      changelog: true,
    },
  }
  const answers = addRightSide(join, addSend(join))
  const result: { model?: SourceTable } = {}
  return addResult(left, addResolve(join, answers, result), result, names.result, options)
}

function processor(
  left: TableParts,
  parent: GraphNode,
  name: string,
  spec: () => OperatorSpec,
  more: (builder: PhysicalBuilder) => void,
): GraphNode {
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(name, spec, node.parentNames())
    more(builder)
  }
  return left.build.graph.add(parent, new GraphNode(name, { write }))
}

interface Hop {
  readonly sink: string
  readonly source: string
  readonly topic: string
  readonly key: KeyInfo
  readonly value: AnySerde
  readonly toPartition?: (value: unknown) => number | undefined
}

function addHop(left: TableParts, parents: readonly GraphNode[], hop: Hop): GraphNode {
  const { graph } = left.build
  const { sink, source, topic, key, value } = hop
  const spec = handOffSpec(topic, hop)
  const writeSink = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addSink(sink, () => spec, node.parentNames())
  const writeSource = (builder: PhysicalBuilder): void =>
    addBoundarySource(builder, source, topic, topic, { key: ownKeySerde(key), value })
  const sinkNode = graph.add(parents, new GraphNode(sink, { write: writeSink }))
  return graph.add(sinkNode, new GraphNode(source, { write: writeSource }))
}

/** Adds the step in which left rows subscribe. Returns the source at which their subscriptions arrive. */
function addSend(join: ForeignJoin): GraphNode {
  const { left, names, on, primaryKeySerde, foreignKeySerde, leftValueSerde } = join
  const { leftOuter } = join.shape
  let versioned = false
  const spec = (): OperatorSpec => ({
    op: 'foreignKeySend',
    foreignKey: on,
    leftOuter,
    primaryKeySerde,
    foreignKeySerde,
    leftValueSerde,
    versioned,
  })
  const send = new GraphNode(names.send, {
    onVersionedParent: () => {
      versioned = true
    },
    write: (builder, node) => builder.addProcessor(names.send, spec, node.parentNames()),
  })
  left.build.graph.add(left.node, send)
  return addHop(left, [send], {
    sink: names.sendSink,
    source: names.receiveSource,
    topic: names.registrationTopic,
    key: join.right.key,
    value: subscriptionSerde as AnySerde,
  })
}

/** Adds the step that keeps subscriptions and answers them. Returns the source at which the answers arrive. */
function addRightSide(join: ForeignJoin, receiveSource: GraphNode): GraphNode {
  const { left, right, names, primaryKeySerde, foreignKeySerde, store } = join
  const receive = processor(
    left,
    receiveSource,
    names.receive,
    () => ({ op: 'foreignKeyReceive', store: names.store, foreignKeySerde }),
    (builder) => builder.addStore(store, names.receive),
  )
  const getter = right.model.getter()
  const joinForeign = processor(
    left,
    receive,
    names.joinForeign,
    () => ({ op: 'foreignKeyJoin', right: getter, primaryKeySerde }),
    (builder) => builder.connect(names.joinForeign, ...getterStores(getter)),
  )
  let versioned = false
  const spec = (): OperatorSpec => ({
    op: 'foreignTableJoin',
    store: names.store,
    foreignKeySerde,
    primaryKeySerde,
    versioned,
  })
  const foreignTable = new GraphNode(names.foreignTable, {
    onVersionedParent: () => {
      versioned = true
    },
    write: (builder, node) => {
      builder.addProcessor(names.foreignTable, spec, node.parentNames())
      builder.addStore(store, names.foreignTable)
    },
  })
  left.build.graph.add(right.node, foreignTable)
  return addHop(left, [joinForeign, foreignTable], {
    sink: names.responseSink,
    source: names.responseSource,
    topic: names.responseTopic,
    key: left.key,
    value: answerSerde(valueSerdeOr(right.value)) as AnySerde,
    // Back to where the left row lies, which need not be where its key says.
    toPartition: (answer) => (answer as SubscriptionAnswer).partition,
  })
}

function addResolve(join: ForeignJoin, responseSource: GraphNode, result: { model?: SourceTable }): GraphNode {
  const { left, names, on, leftValueSerde } = join
  const { leftOuter, joiner } = join.shape
  const getter = left.model.getter()
  return processor(
    left,
    responseSource,
    names.resolve,
    () => ({
      op: 'foreignKeyResolve',
      foreignKey: on,
      left: getter,
      leftValueSerde,
      leftOuter,
      joiner,
      result: result.model?.output().store,
    }),
    (builder) => builder.connect(names.resolve, ...getterStores(getter)),
  )
}

function addResult(
  left: TableParts,
  resolve: GraphNode,
  result: { model?: SourceTable },
  name: string,
  options: Stored | undefined,
): TableParts {
  const { build, key } = left
  const settings = settingsOf('a join', options?.store)
  const storeName = settings.name ?? build.names.store(`${prefix}OUTPUT-`)
  const definition = tableStore({ name: storeName, key, valueSerde: undefined, settings, emit: options?.emit })
  const model = new SourceTable(definition, settings.name !== undefined || options?.emit === 'per-commit')
  result.model = model
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
