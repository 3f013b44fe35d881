/** The operators behind a stream's joins. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import { bytes } from '../serde/primitive.ts'
import { GraphNode } from '../topology/graph.ts'
import { waitingSerde } from '../topology/serdes/internal-serdes.ts'
import { checkOptions, type Names } from '../topology/check-given.ts'
import type { CallSpec, JoinFn, UserFn } from '../topology/operator-spec.ts'
import { invalid, type PhysicalBuilder, type StoreDefinition } from '../topology/physical.ts'
import { type AnySerde, type KeyInfo, keyInfo, ownKeySerde, valueSerdeOr } from './build.ts'
import { following, makeRepartition, type StreamParts, type TableParts } from './handle.ts'
import { calledOptions, type CallSettings, callsOf } from './retry.ts'
import { getterStores } from './table-model.ts'
import type { Named, Ordered } from './types.ts'
import { ms } from './windows.ts'

/** How two streams are joined. */
export interface StreamJoinOptions<K = unknown, V = unknown, V2 = unknown> extends Named, Ordered, CallSettings {
  /**
   * How far apart in event time two records may lie: both ways, or each way by itself, `before` and `after` the left
   * record. Both ends are inclusive; a way that is left out is 0.
   */
  readonly within: Duration | { readonly before?: Duration; readonly after?: Duration }
  /** How far records may lie behind and still find their partners. Default: 0. */
  readonly grace?: Duration
  /** Base name of the stores of the join. Default: generated. */
  readonly storeName?: string
  /** Serde of the key that both streams have. Default: what is known of either. */
  readonly key?: Serde<K>
  /** Serde of the values of the left stream. Default: what is known of them, else JSON. */
  readonly left?: Serde<V>
  /** Serde of the values of the right stream. Default: what is known of them, else JSON. */
  readonly right?: Serde<V2>
}
const streamJoinOptions: Names<StreamJoinOptions> = {
  ...calledOptions,
  order: true,
  within: true,
  grace: true,
  storeName: true,
  key: true,
  left: true,
  right: true,
}

/** How a stream is joined with a table. */
export interface TableJoinOptions<K = unknown, V = unknown> extends Named, Ordered, CallSettings {
  /**
   * Versioned tables only: records wait this long in event time, so that rows that come late are still found. Default:
   * they do not wait.
   */
  readonly grace?: Duration
  /** Serde of the key. Default: what is known of it on either side. */
  readonly key?: Serde<K>
  /** Serde of the values of the stream. Default: what is known of them, else JSON. */
  readonly value?: Serde<V>
}
const tableJoinOptions: Names<TableJoinOptions> = { ...calledOptions, order: true, grace: true, key: true, value: true }

interface GlobalJoinOptions extends Named, CallSettings {
  readonly on: UserFn
}
const globalJoinOptions: Names<GlobalJoinOptions> = { ...calledOptions, on: true }

/** Which of the joins it is: their options differ. */
function methodOf(leftOuter: boolean, rightOuter: boolean, other: string): string {
  return `${rightOuter ? 'outerJoin' : leftOuter ? 'leftJoin' : 'join'} with ${other}`
}

/**
 * The stream repartitioned by its key. The handle remembers the repartition, so that a second unnamed join uses the
 * same.
 */
function repartitionForJoin(parts: StreamParts, base: string): StreamParts {
  const node = makeRepartition(parts.build, base, { key: parts.key, value: parts.value }, true)
  const { memo } = parts
  if (memo.joinRepartition === undefined || parts.name !== base) {
    memo.joinRepartition = node
    parts.build.graph.add(parts.node, node)
  }
  return { ...following(parts, memo.joinRepartition, { rekeyed: false }), name: node.name }
}

/** What is known of the key on either side of a join. */
function commonKey(a: KeyInfo, b: KeyInfo): KeyInfo {
  return a.serde !== undefined || a.windowed !== undefined ? a : b
}

interface JoinWindow {
  readonly beforeMs: number
  readonly afterMs: number
  readonly graceMs: number
}

function joinWindow(options: StreamJoinOptions): JoinWindow {
  if (options?.within === undefined) throw invalid("a join of two streams needs a window: { within: '5m' }")
  const { within } = options
  if (typeof within === 'object') checkOptions('the window of a join', within, { before: true, after: true })
  const both = typeof within === 'object' ? undefined : ms(within, 'the window of a join')
  const before = both ?? ms((within as { before?: Duration }).before ?? 0, '`before` of a join')
  const after = both ?? ms((within as { after?: Duration }).after ?? 0, '`after` of a join')
  return { beforeMs: before, afterMs: after, graceMs: ms(options.grace ?? 0, 'the grace of a join') }
}

export function joinStreams(
  leftParts: StreamParts,
  rightParts: StreamParts,
  joiner: JoinFn,
  options: StreamJoinOptions,
  leftOuter: boolean,
  rightOuter: boolean,
): StreamParts {
  const calls = callsOf(methodOf(leftOuter, rightOuter, 'a stream'), options, streamJoinOptions)
  const window = joinWindow(options)
  const given = options.key ? keyInfo(options.key as AnySerde) : commonKey(leftParts.key, rightParts.key)
  const withSerdes = (parts: StreamParts, value: Serde<never> | undefined): StreamParts =>
    parts.key === given && value === undefined
      ? parts
      : { ...parts, key: given, value: (value as AnySerde | undefined) ?? parts.value }
  let left = withSerdes(leftParts, options.left as Serde<never> | undefined)
  let right = withSerdes(rightParts, options.right as Serde<never> | undefined)
  if (left.rekeyed) left = repartitionForJoin(left, options.name === undefined ? left.name : `${options.name}-left`)
  if (right.rekeyed)
    right = repartitionForJoin(right, options.name === undefined ? right.name : `${options.name}-right`)
  const node = addStreamJoin(left, right, joiner, window, options, leftOuter, rightOuter, calls)
  return following(left, node, { key: given, value: undefined, rekeyed: false })
}

interface JoinNames {
  readonly leftWindowed: string
  readonly rightWindowed: string
  readonly left: string
  readonly right: string
  readonly merge: string
  readonly leftStore: string
  readonly rightStore: string
  readonly waitingStore: string
}

function joinNames(parts: StreamParts, options: StreamJoinOptions, leftOuter: boolean, rightOuter: boolean): JoinNames {
  const { names } = parts.build
  const { name, storeName } = options
  const leftSuffix = rightOuter ? '-outer-this-join' : '-this-join'
  const rightSuffix = leftOuter ? '-outer-other-join' : '-other-join'
  const leftWindowed = names.suffixOrGenerate(name, '-this-windowed', 'KSTREAM-WINDOWED-')
  const rightWindowed = names.suffixOrGenerate(name, '-other-windowed', 'KSTREAM-WINDOWED-')
  const leftPrefix = rightOuter ? 'KSTREAM-OUTERTHIS-' : 'KSTREAM-JOINTHIS-'
  const leftGenerated = names.generate(leftPrefix)
  const rightGenerated = names.generate(leftOuter ? 'KSTREAM-OUTEROTHER-' : 'KSTREAM-JOINOTHER-')
  const merge = names.suffixOrGenerate(name, '-merge', 'KSTREAM-MERGE-')
  const shared = rightOuter ? '-outer-shared-join-store' : '-left-shared-join-store'
  return {
    leftWindowed,
    rightWindowed,
    left: name === undefined ? leftGenerated : name + leftSuffix,
    right: name === undefined ? rightGenerated : name + rightSuffix,
    merge,
    leftStore: `${storeName === undefined ? leftGenerated : storeName + leftSuffix}-store`,
    rightStore: `${storeName === undefined ? rightGenerated : storeName + rightSuffix}-store`,
    waitingStore:
      storeName === undefined
        ? `KSTREAM-OUTERSHARED-${leftGenerated.slice(leftPrefix.length)}-store`
        : storeName + shared,
  }
}

interface JoinStores {
  readonly leftBuffer: StoreDefinition
  readonly rightBuffer: StoreDefinition
  readonly waiting: StoreDefinition | undefined
}

function joinStores(
  left: StreamParts,
  right: StreamParts,
  names: JoinNames,
  window: JoinWindow,
  leftOuter: boolean,
): JoinStores {
  const windowMs = window.beforeMs + window.afterMs
  const bufferOf = (name: string, parts: StreamParts): StoreDefinition => ({
    name,
    kind: 'window',
    keySerde: ownKeySerde(parts.key),
    valueSerde: valueSerdeOr(parts.value),
    timestamped: false,
    windowSizeMs: windowMs,
    // Both ends of the window are inclusive, and a store forgets rows as old as its retention.
    retentionMs: windowMs + window.graceMs + 1,
    retainDuplicates: true,
    changelog: true,
  })
  const leftBuffer = bufferOf(names.leftStore, left)
  const rightBuffer = bufferOf(names.rightStore, right)
  const waiting: StoreDefinition | undefined = leftOuter
    ? {
        name: names.waitingStore,
        kind: 'key-value',
        keySerde: bytes as AnySerde,
        valueSerde: waitingSerde(
          ownKeySerde(left.key),
          valueSerdeOr(left.value),
          valueSerdeOr(right.value),
        ) as AnySerde,
        timestamped: false,
        changelog: true,
      }
    : undefined
  return { leftBuffer, rightBuffer, waiting }
}

function addStreamJoin(
  left: StreamParts,
  right: StreamParts,
  joiner: JoinFn,
  window: JoinWindow,
  options: StreamJoinOptions,
  leftOuter: boolean,
  rightOuter: boolean,
  calls: CallSpec | undefined,
): GraphNode {
  const { graph } = left.build
  const names = joinNames(left, options, leftOuter, rightOuter)
  const { leftBuffer, rightBuffer, waiting } = joinStores(left, right, names, window, leftOuter)
  const windowNode = (parts: StreamParts, name: string, store: string): GraphNode => {
    const write = (builder: PhysicalBuilder, node: GraphNode): void =>
      builder.addProcessor(name, () => ({ op: 'joinWindow', store }), node.parentNames())
    return graph.add(parts.node, new GraphNode(name, { kind: 'joinWindow', write }))
  }
  const leftWindow = windowNode(left, names.leftWindowed, names.leftStore)
  const rightWindow = windowNode(right, names.rightWindowed, names.rightStore)
  const common = { ...window, joiner, waitingStore: waiting?.name, calls }
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    if (node.selfJoin) {
      const spec = { op: 'selfJoin', store: names.leftStore, outer: leftOuter, ...window, joiner, calls } as const
      builder.addProcessor(names.merge, () => spec, [names.leftWindowed])
      builder.addStore(leftBuffer, names.leftWindowed, names.merge)
      return
    }
    builder.addProcessor(
      names.left,
      () => ({ op: 'streamJoin', side: 'left', otherStore: names.rightStore, outer: leftOuter, ...common }),
      [names.leftWindowed],
    )
    builder.addProcessor(
      names.right,
      () => ({ op: 'streamJoin', side: 'right', otherStore: names.leftStore, outer: rightOuter, ...common }),
      [names.rightWindowed],
    )
    builder.addProcessor(names.merge, () => ({ op: 'passThrough' }), [names.left, names.right])
    builder.addStore(leftBuffer, names.leftWindowed, names.right)
    builder.addStore(rightBuffer, names.rightWindowed, names.left)
    if (waiting) builder.addStore(waiting, names.left, names.right)
  }
  const join = new GraphNode(names.merge, {
    kind: 'streamJoin',
    relaxedNullKey: leftOuter || rightOuter,
    windowNodes: [leftWindow, rightWindow],
    takesAsArrived: options.order === 'arrival',
    write,
  })
  return graph.add([left.node, right.node], join)
}

export function joinTable(
  streamParts: StreamParts,
  table: TableParts,
  joiner: JoinFn,
  options: TableJoinOptions | undefined,
  leftOuter: boolean,
): StreamParts {
  const calls = callsOf(methodOf(leftOuter, false, 'a table'), options, tableJoinOptions)
  const key = options?.key ? keyInfo(options.key as AnySerde) : commonKey(streamParts.key, table.key)
  const value = (options?.value as AnySerde | undefined) ?? streamParts.value
  let parts = key === streamParts.key && value === streamParts.value ? streamParts : { ...streamParts, key, value }
  if (parts.rekeyed) parts = repartitionForJoin(parts, options?.name ?? parts.name)
  const { names, graph } = parts.build
  const name = names.orGenerate(options?.name, leftOuter ? 'KSTREAM-LEFTJOIN-' : 'KSTREAM-JOIN-')
  const graceMs = options?.grace === undefined ? undefined : ms(options.grace, 'the grace of a join')
  const grace = graceMs === undefined ? undefined : { ms: graceMs, store: `${name}-Buffer` }
  if (grace && table.node.options.outputVersioned === false) throw notVersioned(name)
  const buffer: StoreDefinition | undefined = grace && {
    name: grace.store,
    kind: 'key-value',
    keySerde: bytes as AnySerde,
    valueSerde: waitingSerde(ownKeySerde(key), valueSerdeOr(value), valueSerdeOr(value)) as AnySerde,
    timestamped: false,
    changelog: true,
  }
  const getter = table.model.getter()
  const stores = getterStores(getter)
  const write = (builder: PhysicalBuilder, node: GraphNode): void => {
    builder.addProcessor(
      name,
      () => ({ op: 'streamTableJoin', getter, leftOuter, joiner, foreignKey: undefined, grace, calls }),
      node.parentNames(),
    )
    builder.connect(name, ...stores)
    if (!buffer || !grace) return
    builder.addStore(buffer, name)
    for (const store of stores) {
      const definition = builder.stores.get(store)
      if (definition?.kind !== 'versioned') throw notVersioned(name)
      if ((definition.retentionMs ?? 0) < grace.ms) {
        throw invalid(
          `the join ${name} waits ${grace.ms} ms, longer than the history of ${store}; keep at least that much history`,
        )
      }
    }
  }
  const takesAsArrived = options?.order === 'arrival'
  const node = graph.add(parts.node, new GraphNode(name, { relaxedNullKey: leftOuter, takesAsArrived, write }))
  return following(parts, node, { value: undefined })
}

function notVersioned(name: string): Error {
  return invalid(
    `the join ${name} has a grace period, which needs a versioned table; give the table { store: { type: 'versioned', historyRetention: … } }`,
  )
}

export function joinGlobal(
  parts: StreamParts,
  table: TableParts,
  joiner: JoinFn,
  options: GlobalJoinOptions,
  leftOuter: boolean,
): StreamParts {
  const calls = callsOf(methodOf(leftOuter, false, 'a global table'), options, globalJoinOptions)
  if (typeof options?.on !== 'function')
    throw invalid('a join with a global table needs { on: (value, key) => key of the table }')
  const { names, graph } = parts.build
  const name = names.orGenerate(options.name, 'KSTREAM-LEFTJOIN-')
  const getter = table.model.getter()
  const on = { foreignKey: options.on, grace: undefined }
  const spec = { op: 'streamTableJoin', getter, leftOuter, joiner, calls, ...on } as const
  const write = (builder: PhysicalBuilder, node: GraphNode): void =>
    builder.addProcessor(name, () => spec, node.parentNames())
  const node = graph.add(parts.node, new GraphNode(name, { relaxedNullKey: leftOuter, write }))
  return following(parts, node, { value: undefined })
}
