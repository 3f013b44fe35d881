/** The graph nodes behind those operators that take more than a line. */
import { EngineError } from '../base/errors.ts'
import { checkOptions, type Names, notFunction, shownInstead } from '../topology/check-given.ts'
import { GraphNode, type WindowClose } from '../topology/graph.ts'
import { repartitionNames } from '../topology/names.ts'
import type { FunctionContext, OperatorSpec, RecordView, WindowSpec } from '../topology/operator-spec.ts'
import { invalid, type PhysicalBuilder, type StoreDefinition } from '../topology/physical.ts'
import {
  type AnySerde,
  checkTopic,
  keyInfo,
  partitionSerde,
  serdeFor,
  settingsOf,
  tableStore,
  topicKeySerde,
  valueSerdeOr,
} from './build.ts'
import {
  addProcessor,
  asUserFn,
  following,
  makeRepartition,
  repartitioned,
  type StreamParts,
  type TableParts,
} from './handle.ts'
import { calledOptions, type CallSettings } from './retry.ts'
import { type AggregateTable, SourceTable } from './table-model.ts'
import {
  groupOptions,
  type Named,
  namedOptions,
  type Ordered,
  type RecordFn,
  serdeOptions,
  type Stored,
  storedOptions,
  type StreamFn,
  type WithSerdes,
} from './types.ts'

/** The topic of a record: a name, or a function of the record. */
export type TopicChoice<K, V> = string | ((value: V, key: K, record: Parameters<RecordFn<K, V, string>>[2]) => string)

/** One branch of `Stream.split`, where its predicate needs a name of its own beside it. */
export interface Branch<K, V, S extends V = V> extends Named {
  /** Records for which it holds go to this branch, if no earlier branch took them. */
  readonly when: // With the same parameters on both sides: those of a function in its place have their types from here.
    | ((value: V, key: K, record: RecordView<K, V>, context: FunctionContext) => value is S)
    | StreamFn<K, V, boolean | undefined>
}

type Guard<V, S extends V> = (value: V, ...others: never[]) => value is S

/** What is known of the values of a branch: what its predicate says of them. */
export type BranchValue<V, B> = B extends { readonly when: infer W }
  ? BranchValue<V, W>
  : B extends Guard<V, infer S>
    ? S
    : V

/** The stream behind an operator of one node. */
export function addOperator(
  parts: StreamParts,
  name: string | undefined,
  prefix: string,
  spec: Parameters<typeof addProcessor>[2],
  change: Partial<StreamParts>,
  flags: Parameters<typeof addProcessor>[3] = {},
): StreamParts {
  return following(parts, addProcessor(parts, parts.build.names.orGenerate(name, prefix), spec, flags), change)
}

/** What new keys and values change of a stream. */
export function rekeyed<K, V>(options: WithSerdes<K, V> | undefined): Partial<StreamParts> {
  return {
    key: keyInfo(options?.key as AnySerde | undefined),
    value: options?.value as AnySerde | undefined,
    rekeyed: true,
  }
}

export const mapOptions: Names<WithSerdes<unknown, unknown> & CallSettings> = { ...serdeOptions, ...calledOptions }
export const mapValuesOptions: Names<Named & CallSettings & { value: unknown }> = { ...calledOptions, value: true }

/** What a grouping by a new key changes of a stream: the values stay. */
export function regrouped<K, V>(
  parts: StreamParts,
  options: (WithSerdes<K, V> & Ordered) | undefined,
): Partial<StreamParts> {
  checkOptions('groupBy', options, groupOptions)
  return { ...keyChange(options), value: (options?.value as AnySerde | undefined) ?? parts.value }
}

/** What a new key changes of a stream whose values stay. */
export function keyChange(options: { readonly key?: unknown } | undefined): Partial<StreamParts> {
  return { key: keyInfo(options?.key as AnySerde | undefined), rekeyed: true }
}

/** What a new value changes of a stream. */
export function valueChange(options: { readonly value?: unknown } | undefined): Partial<StreamParts> {
  return { value: options?.value as AnySerde | undefined }
}

/** The same stream, with the serdes that were named for what follows. */
export function withSerdes<Options extends { readonly key?: unknown; readonly value?: unknown }>(
  method: string,
  parts: StreamParts,
  options: Options | undefined,
  names: Names<NoInfer<Options>>,
): StreamParts {
  checkOptions(method, options, names)
  const key = options?.key ? keyInfo(options.key as AnySerde) : parts.key
  return { ...parts, key, value: (options?.value as AnySerde | undefined) ?? parts.value }
}

/** The records of two streams. */
export function mergeStreams(left: StreamParts, right: StreamParts, options: Named | undefined): StreamParts {
  checkOptions('merge', options, namedOptions)
  const name = left.build.names.orGenerate(options?.name, 'KSTREAM-MERGE-')
  const write = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addProcessor(name, () => ({ op: 'passThrough' }), node.parentNames())
  const node = left.build.graph.add([left.node, right.node], new GraphNode(name, { merge: true, write }))
  return following(left, node, {
    rekeyed: left.rekeyed || right.rekeyed,
    key: left.key.serde === right.key.serde ? left.key : keyInfo(undefined),
    value: left.value === right.value ? left.value : undefined,
  })
}

export interface SplitOptions extends Named {
  readonly default?: string | ({ readonly as: string } & Named)
}

type Rest = Exclude<NonNullable<SplitOptions['default']>, string>
const splitOptions: Names<SplitOptions> = { ...namedOptions, default: true }
const restOptions: Names<Rest> = { ...namedOptions, as: true }
const branchOptions: Names<Branch<unknown, unknown>> = { ...namedOptions, when: true }

/** The parts of each branch by its name, in the order of the branches. The rest comes last. */
export function splitStream(
  parts: StreamParts,
  branches: Readonly<Record<string, unknown>>,
  options: SplitOptions | undefined,
): Map<string, StreamParts> {
  const { names, graph } = parts.build
  checkOptions('split', options, splitOptions)
  const name = names.orGenerate(options?.name, 'KSTREAM-BRANCH-')
  if (typeof branches !== 'object' || branches === null)
    throw invalid(`split is given ${shownInstead(branches)}; give a predicate for each branch: { large: (order) => … }`)
  const entries = Object.entries(branches).map(([id, branch], i) => {
    const { when, name: own } = typeof branch === 'object' ? ((branch ?? {}) as Branch<never, never>) : { when: branch }
    if (typeof branch === 'object')
      checkOptions(`the branch '${id}' of split`, branch as Branch<never, never>, branchOptions)
    if (typeof when !== 'function') throw notFunction(`the branch '${id}' of ${name}`, 'its predicate', when)
    return { id, when: asUserFn(when), name: own ?? String(i + 1) }
  })
  if (typeof options?.default === 'object') checkOptions('the default of split', options.default, restOptions)
  const rest =
    typeof options?.default === 'object'
      ? options.default
      : options?.default && { as: options.default, name: undefined }
  if (rest && entries.some(({ id }) => id === rest.as))
    throw new EngineError(
      'TOPOLOGY_INVALID',
      `The branches of ${name} have two of the name '${rest.as}', for a predicate and for the rest; give one of them another name.`,
    )
  const predicates = [...entries.map((entry) => entry.when), ...(rest ? [undefined] : [])]
  const node = addProcessor(parts, name, { op: 'branch', predicates })
  const all = [...entries, ...(rest ? [{ id: rest.as, name: rest.name ?? '0' }] : [])]
  const result = new Map<string, StreamParts>()
  for (const entry of all) {
    names.generate('KSTREAM-BRANCH-')
    const childName = name + entry.name
    const write = (builder: PhysicalBuilder, child: GraphNode): void =>
      builder.addProcessor(childName, () => ({ op: 'passThrough' }), child.parentNames())
    result.set(entry.id, following(parts, graph.add(node, new GraphNode(childName, { write })), {}))
  }
  return result
}

/** The table of the newest values of a stream. */
export function tableOf(parts: StreamParts, options: Stored | undefined): TableParts {
  const { names, graph } = parts.build
  checkOptions('toTable', options, storedOptions)
  const settings = settingsOf('toTable', options?.store)
  const name = names.orGenerate(options?.name, 'KSTREAM-TOTABLE-')
  const storeName = settings.name ?? names.store('KSTREAM-TOTABLE-')
  const source = parts.rekeyed ? repartitioned(parts, name, true) : parts
  const definition = tableStore({
    name: storeName,
    key: parts.key,
    valueSerde: parts.value,
    settings,
    emit: options?.emit,
  })
  const model = new SourceTable(definition, settings.name !== undefined || options?.emit === 'per-commit')
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(name, () => ({ op: 'tableSource', ...model.output() }), node.parentNames())
    if (model.kept) builder.addStore(definition, name)
  }
  const node = graph.add(source.node, new GraphNode(name, { outputVersioned: settings.type === 'versioned', write }))
  return { build: parts.build, name, node, key: parts.key, value: parts.value, model }
}

/** Writes a stream to a topic, or to the topic that a function chooses. */
export function addSink(parts: StreamParts, topic: unknown, options: WithSerdes<never, never> | undefined): void {
  checkOptions('to', options, serdeOptions)
  const name = parts.build.names.orGenerate(options?.name, 'KSTREAM-SINK-')
  const given = options?.key as AnySerde | undefined
  const named = typeof topic === 'function' ? undefined : (topic as string)
  if (typeof topic !== 'function') checkTopic(topic)
  const spec = {
    op: 'sink',
    topic: typeof topic === 'function' ? asUserFn(topic) : (topic as string),
    topicFunctionName: typeof topic === 'function' ? topic.name || 'TopicFrom' : undefined,
    keySerde: given === undefined ? topicKeySerde(parts.key, named) : serdeFor(given, named, 'key'),
    valueSerde: serdeFor((options?.value as AnySerde | undefined) ?? valueSerdeOr(parts.value), named, 'value'),
    windowedInner: partitionSerde(parts.key, false),
  } as const
  const write = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addSink(name, () => spec, node.parentNames())
  parts.build.graph.add(parts.node, new GraphNode(name, { write }))
}

/** A grouping. If it has a name, its aggregates share one repartition. */
export interface GroupParts extends StreamParts {
  readonly groupName: string | undefined
  readonly takesAsArrived: boolean
  readonly shared: { repartition: GraphNode | undefined }
}

/** The node that an aggregate of this grouping follows. */
export function groupedParent(parts: GroupParts, storeName: string): GraphNode {
  if (!parts.rekeyed) return parts.node
  const base = parts.groupName ?? storeName
  const shape = { key: parts.key, value: parts.value }
  if (parts.shared.repartition !== undefined && parts.groupName !== undefined) {
    // The shared repartition uses up the numbers of its names, too.
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

/** Keeps how far the windows were closed whose rows lie in `store`. */
export function progressStore(store: string): StoreDefinition {
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
  /** Whether this operator adds the store; false where another one has added it. Default: true. */
  readonly addsStore?: boolean
  /** Whether a store keeps how far the windows were closed, too. */
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
    takesAsArrived: parts.takesAsArrived,
    write,
  })
  return parts.build.graph.add(parent, node)
}
