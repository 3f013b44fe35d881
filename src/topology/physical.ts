/** The physical graph while it is built: nodes in the order in which they are added, stores, and who uses them. */
import { EngineError } from '../base/errors.ts'
import type { Serde } from '../serde/serde.ts'
import type { StoreKind } from '../state/contract.ts'
import type { ScheduledTick, TimestampExtractor, WatermarkOptions } from './compiled.ts'
import type { OperatorSpec } from './operator-spec.ts'

export interface SourceDefinition {
  readonly kind: 'topics' | 'boundary' | 'scheduled' | 'global'
  readonly topics: readonly string[]
  readonly pattern: RegExp | undefined
  readonly keySerde: Serde<unknown> | undefined
  readonly valueSerde: Serde<unknown> | undefined
  readonly watermark: WatermarkOptions
  readonly timestampExtractor: TimestampExtractor | undefined
  /** A record without a value deletes a row: no function of the application is given it. */
  readonly isTable: boolean
  /** Functions behind it are ready for records without a value. */
  expectsNull: boolean
  readonly schedule:
    | {
        readonly everyMs: number | undefined
        readonly cron: string | undefined
        readonly emit: (tick: ScheduledTick) => unknown
      }
    | undefined
  /** The base name of the boundary that feeds it. */
  readonly boundaryBase: string | undefined
}

/** A store as the DSL describes it. Serdes that are not known become the defaults. */
export interface StoreDefinition {
  readonly name: string
  readonly kind: StoreKind
  readonly keySerde: Serde<unknown> | undefined
  readonly valueSerde: Serde<unknown> | undefined
  readonly timestamped: boolean
  readonly windowSizeMs?: number | undefined
  readonly windowAdvanceMs?: number | undefined
  readonly retentionMs?: number | undefined
  readonly ttlMs?: number | undefined
  readonly retainDuplicates?: boolean | undefined
  readonly tumbling?: boolean | undefined
  readonly changelog: boolean
  /** When its table tells changes; undefined: as the application says. */
  readonly emit?: 'on-update' | 'per-commit' | undefined
  changelogTopic?: string | undefined
  /** The topic whose newest values are its rows. */
  readonly sourceTopic?: string | undefined
}

export interface PhysicalNode {
  readonly name: string
  readonly type: 'source' | 'processor' | 'sink'
  readonly spec: () => OperatorSpec
  readonly parents: readonly string[]
  readonly children: string[]
  readonly stores: string[]
  readonly hiddenStores: string[]
  readonly source: SourceDefinition | undefined
  readonly global: boolean
}

export const noWatermark: WatermarkOptions = { maxOutOfOrdernessMs: 0, idlenessMs: undefined, alignment: undefined }

export function invalid(message: string): EngineError {
  return new EngineError('TOPOLOGY_INVALID', message)
}

export class PhysicalBuilder {
  /** Names of operators that take records as they arrive. */
  readonly takenAsArrived = new Set<string>()
  readonly nodes = new Map<string, PhysicalNode>()
  readonly stores = new Map<string, StoreDefinition>()
  readonly globalStores = new Set<string>()
  readonly #topics = new Map<string, string>()
  readonly #patterns: Array<{ node: string; pattern: RegExp }> = []

  addSource(name: string, source: SourceDefinition): void {
    for (const topic of source.topics) this.#claim(topic, name)
    if (source.pattern) this.#claimPattern(source.pattern, name)
    this.#add({
      name,
      type: 'source',
      spec: () => ({ op: 'source' }),
      parents: [],
      children: [],
      stores: [],
      hiddenStores: [],
      source,
      global: source.kind === 'global',
    })
  }

  addProcessor(name: string, spec: () => OperatorSpec, parents: readonly string[], global = false): void {
    this.#add({
      name,
      type: 'processor',
      spec,
      parents,
      children: [],
      stores: [],
      hiddenStores: [],
      source: undefined,
      global,
    })
  }

  addSink(name: string, spec: () => OperatorSpec, parents: readonly string[]): void {
    this.#add({
      name,
      type: 'sink',
      spec,
      parents,
      children: [],
      stores: [],
      hiddenStores: [],
      source: undefined,
      global: false,
    })
  }

  addStore(store: StoreDefinition, ...users: readonly string[]): void {
    const known = this.stores.get(store.name)
    if (known !== undefined && known !== store) {
      throw invalid(`two stores are named ${store.name}; give one of them another name with { store: '…' }`)
    }
    this.stores.set(store.name, store)
    for (const user of users) this.connect(user, store.name)
  }

  /** Adds a store of the operator's own, which descriptions leave out. */
  addHiddenStore(store: StoreDefinition, user: string): void {
    if (this.stores.has(store.name)) throw invalid(`two stores are named ${store.name}; give one of them another name`)
    this.stores.set(store.name, store)
    this.nodes.get(user)?.hiddenStores.push(store.name)
  }

  connect(node: string, ...stores: readonly string[]): void {
    const entry = this.nodes.get(node)
    if (entry === undefined) throw invalid(`the node ${node} that was to use a store does not exist`)
    for (const store of stores) {
      if (this.globalStores.has(store)) continue
      if (!entry.stores.includes(store)) entry.stores.push(store)
    }
  }

  #add(node: PhysicalNode): void {
    if (this.nodes.has(node.name)) {
      throw invalid(`two operators are named ${node.name}; give one of them another name with { name: '…' }`)
    }
    this.nodes.set(node.name, node)
    for (const parent of node.parents) {
      const entry = this.nodes.get(parent)
      if (entry === undefined) throw invalid(`the operator ${node.name} follows ${parent}, which does not exist`)
      entry.children.push(node.name)
    }
  }

  #claim(topic: string, node: string): void {
    const owner = this.#topics.get(topic)
    if (owner !== undefined) {
      throw invalid(
        `the topic ${topic} is read twice (${owner} and ${node}), as a stream and as a table or as two tables; read it once and use the result twice`,
      )
    }
    const pattern = this.#patterns.find((entry) => entry.pattern.test(topic))
    if (pattern)
      throw invalid(`the topic ${topic} is also matched by the pattern ${pattern.pattern.source} of ${pattern.node}`)
    this.#topics.set(topic, node)
  }

  #claimPattern(pattern: RegExp, node: string): void {
    for (const [topic, owner] of this.#topics) {
      if (pattern.test(topic))
        throw invalid(`the pattern ${pattern.source} of ${node} also matches the topic ${topic} of ${owner}`)
    }
    this.#patterns.push({ node, pattern })
  }
}
