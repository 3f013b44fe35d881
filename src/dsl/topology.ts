/** What an application's `build` function receives: where every stream and table begins. */
import type { Duration } from '../base/duration.ts'
import type { Serde } from '../serde/serde.ts'
import type {
  CompiledTopology,
  ScheduledRecord,
  ScheduledTick,
  TimestampExtractor,
  WatermarkOptions,
} from '../topology/compiled.ts'
import { cronFault } from '../time/schedule.ts'
import { type CompileOptions, compileGraph } from '../topology/compile.ts'
import { GraphNode } from '../topology/graph.ts'
import {
  invalid,
  noWatermark,
  type PhysicalBuilder,
  type SourceDefinition,
  type StoreDefinition,
} from '../topology/physical.ts'
import { type AnySerde, Build, keyInfo, settingsOf, tableStore } from './build.ts'
import { definitionOf, type StoreDeclaration } from './stores.ts'
import { Stream } from './stream.ts'
import { GlobalTableModel, SourceTable } from './table-model.ts'
import { GlobalTable, Table } from './table.ts'
import type { Awaitable, SourceSettings, Stored, WatermarkSettings } from './types.ts'
import { ms } from './windows.ts'

export interface ScheduledSettings<K, V> {
  /** The interval between firings. Give this or `cron`. */
  readonly every?: Duration
  /** A cron expression (UTC). Give this or `every`. */
  readonly cron?: string
  /** Answers the records of a firing: one, several or none. */
  readonly emit: (
    tick: ScheduledTick,
  ) => Awaitable<
    | { readonly key: K; readonly value: V; readonly timestamp?: number }
    | ReadonlyArray<{ readonly key: K; readonly value: V; readonly timestamp?: number }>
    | null
    | undefined
  >
  readonly key?: Serde<K>
  readonly value?: Serde<V>
}

function watermarkOf(settings: WatermarkSettings | undefined): WatermarkOptions {
  if (!settings) return noWatermark
  const { alignment } = settings
  return {
    maxOutOfOrdernessMs: ms(settings.maxOutOfOrderness ?? 0, 'maxOutOfOrderness of a source'),
    idlenessMs: settings.idleness === undefined ? undefined : ms(settings.idleness, 'idleness of a source'),
    alignment: alignment && {
      group: alignment.group,
      maxDriftMs: ms(alignment.maxDrift, 'maxDrift of an alignment group'),
    },
  }
}

function checkTopic(topic: unknown): void {
  if (typeof topic === 'string' && /^[a-zA-Z0-9._-]{1,249}$/.test(topic)) return
  throw invalid(`${JSON.stringify(topic)} is not the name of a topic: 1 to 249 letters, digits, ".", "_" and "-"`)
}

function sourceOf(
  topics: readonly string[],
  pattern: RegExp | undefined,
  settings: SourceSettings<never, never> | undefined,
  kind: 'topics' | 'global',
): SourceDefinition {
  for (const topic of topics) checkTopic(topic)
  if (topics.length === 0 && pattern === undefined) throw invalid('a stream needs at least one topic')
  if (new Set(topics).size !== topics.length)
    throw invalid(`a topic is named twice in one stream: ${topics.join(', ')}`)
  return {
    kind,
    topics,
    pattern: pattern && wholePattern(pattern),
    keySerde: settings?.key as AnySerde | undefined,
    valueSerde: settings?.value as AnySerde | undefined,
    watermark: watermarkOf(settings?.watermark),
    timestampExtractor: settings?.timestamp as TimestampExtractor | undefined,
    schedule: undefined,
    boundaryBase: undefined,
  }
}

/** Patterns match whole names, as the field has it; the source text stays what the user wrote. */
function wholePattern(pattern: RegExp): RegExp {
  const whole = new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace(/[gy]/g, ''))
  Object.defineProperty(whole, 'source', { value: pattern.source })
  return whole
}

export class Topology {
  readonly #build = new Build()

  /**
   * A stream of one topic, of several, or of all whose name matches a pattern.
   *
   * @example
   * topology.stream('orders', { key: serdes.string, value: serdes.json<Order>(), watermark: { maxOutOfOrderness: '10s' } })
   */
  stream<K = string, V = unknown>(
    topics: string | readonly string[] | RegExp,
    settings?: SourceSettings<K, V>,
  ): Stream<K, V> {
    const build = this.#build
    const pattern = topics instanceof RegExp ? topics : undefined
    const list = typeof topics === 'string' ? [topics] : pattern ? [] : [...(topics as readonly string[])]
    const source = sourceOf(list, pattern, settings as never, 'topics')
    // Patterns have no explicit names in the field, and here none is used for them either.
    const name = build.names.orGenerate(settings?.name, 'KSTREAM-SOURCE-')
    const write = (builder: PhysicalBuilder): void => builder.addSource(name, source)
    const node = build.graph.addRoot(new GraphNode(name, { kind: 'source', source, write }))
    return new Stream({
      build,
      name,
      node,
      key: keyInfo(source.keySerde),
      value: source.valueSerde,
      rekeyed: false,
      memo: {},
    })
  }

  /** A topic as a table: the newest value of each key. A record without value deletes. */
  table<K = string, V = unknown>(topic: string, settings?: SourceSettings<K, V> & Stored<K, V>): Table<K, V> {
    const build = this.#build
    const source = sourceOf([topic], undefined, settings as never, 'topics')
    const store = settingsOf(settings?.store)
    const storeName = store.name ?? build.names.store(`${topic}-`)
    const sourceName = build.names.suffixOrGenerate(settings?.name, '-source', 'KSTREAM-SOURCE-')
    const name = build.names.orGenerate(settings?.name, 'KTABLE-SOURCE-')
    const key = keyInfo(source.keySerde)
    const definition: StoreDefinition = tableStore({
      name: storeName,
      key,
      valueSerde: source.valueSerde,
      settings: store,
    })
    const model = new SourceTable(definition, store.name !== undefined)
    const write = (builder: PhysicalBuilder, node: GraphNode): void => {
      builder.addSource(sourceName, source)
      builder.addProcessor(name, () => ({ op: 'tableSource', ...model.output() }), [sourceName])
      if (!model.kept) return
      if (node.reusesSourceTopic) definition.changelogTopic = topic
      builder.addStore(definition, name)
    }
    const node = build.graph.addRoot(
      new GraphNode(name, { kind: 'tableSource', outputVersioned: definition.kind === 'versioned', write }),
    )
    return new Table({ build, name, node, key, value: source.valueSerde, model })
  }

  /** A topic as a table that every lane holds whole, for joins by any key. */
  globalTable<K = string, V = unknown>(
    topic: string,
    settings?: SourceSettings<K, V> & Stored<K, V>,
  ): GlobalTable<K, V> {
    const build = this.#build
    const source = sourceOf([topic], undefined, settings as never, 'global')
    const store = settingsOf(settings?.store)
    const storeName = store.name ?? build.names.store(`${topic}-`)
    const sourceName = build.names.suffixOrGenerate(settings?.name, '-source', 'KSTREAM-SOURCE-')
    const name = build.names.orGenerate(settings?.name, 'KTABLE-SOURCE-')
    const key = keyInfo(source.keySerde)
    const definition = tableStore({
      name: storeName,
      key,
      valueSerde: source.valueSerde,
      settings: store,
      changelog: false,
    })
    const node = this.#addGlobal(sourceName, name, source, definition)
    return new GlobalTable(
      { build, name, node, key, value: source.valueSerde, model: new GlobalTableModel(definition) },
      storeName,
    )
  }

  /** A key-value store that every lane fills from a topic; processors and nothing else read it. */
  globalStore<K = string, V = unknown>(
    topic: string,
    store: StoreDeclaration<unknown>,
    settings?: SourceSettings<K, V>,
  ): void {
    const build = this.#build
    const source = sourceOf([topic], undefined, settings as never, 'global')
    const sourceName = build.names.generate('KSTREAM-SOURCE-')
    const name = build.names.generate('KTABLE-SOURCE-')
    const declared = definitionOf(store)
    if (declared.kind !== 'key-value') throw invalid(`the global store ${store.name} must be a keyValueStore(…)`)
    this.#addGlobal(sourceName, name, source, {
      ...declared,
      keySerde: declared.keySerde ?? source.keySerde,
      valueSerde: declared.valueSerde ?? source.valueSerde,
      changelog: false,
    })
  }

  #addGlobal(sourceName: string, name: string, source: SourceDefinition, definition: StoreDefinition): GraphNode {
    const build = this.#build
    const write = (builder: PhysicalBuilder): void => {
      builder.addSource(sourceName, source)
      const ref = { name: definition.name, kind: definition.kind }
      builder.addProcessor(
        name,
        () => ({ op: 'globalPut', store: ref, timestamped: definition.timestamped }),
        [sourceName],
        true,
      )
      builder.addStore(definition, name)
      builder.globalStores.add(definition.name)
    }
    return build.graph.addRoot(new GraphNode(name, { write }))
  }

  /**
   * Records made by the engine itself, at an interval or by a cron expression; exactly one lane makes them.
   *
   * @example
   * topology.scheduled('heartbeat', { every: '10s', emit: (tick) => ({ key: 'beat', value: tick.count }) })
   */
  scheduled<K, V>(name: string, settings: ScheduledSettings<K, V>): Stream<K, V> {
    const build = this.#build
    const { every, cron, emit } = settings
    if ((every === undefined) === (cron === undefined))
      throw invalid(`the scheduled source ${name} needs either "every" or "cron"`)
    const fault = cron === undefined ? undefined : cronFault(cron)
    if (fault) throw invalid(`the cron expression of the scheduled source ${name} is refused: ${fault}`)
    const everyMs = every === undefined ? undefined : ms(every, `"every" of the scheduled source ${name}`)
    if (everyMs === 0)
      throw invalid(`"every" of the scheduled source ${name} is 0; it must be at least one millisecond`)
    const source: SourceDefinition = {
      kind: 'scheduled',
      topics: [],
      pattern: undefined,
      keySerde: settings.key as AnySerde | undefined,
      valueSerde: settings.value as AnySerde | undefined,
      watermark: noWatermark,
      timestampExtractor: undefined,
      schedule: {
        everyMs,
        cron,
        emit: emit as (
          tick: ScheduledTick,
        ) => Awaitable<ScheduledRecord | readonly ScheduledRecord[] | null | undefined>,
      },
      boundaryBase: undefined,
    }
    build.names.generate('KSTREAM-SOURCE-')
    const write = (builder: PhysicalBuilder): void => builder.addSource(name, source)
    const node = build.graph.addRoot(new GraphNode(name, { kind: 'source', source, write }))
    return new Stream({
      build,
      name,
      node,
      key: keyInfo(source.keySerde),
      value: source.valueSerde,
      rekeyed: true,
      memo: {},
    })
  }

  /** Adds a store that several processors use by its name. */
  addStore(store: StoreDeclaration<unknown>): void {
    this.#build.register(definitionOf(store))
  }

  /** Turns what was built into what the engine runs. A topology is compiled once. */
  compile(options?: CompileOptions): CompiledTopology {
    return compileGraph(this.#build.graph, options)
  }
}

/** Builds and compiles an application's topology. */
export function compile(build: (topology: Topology) => void, options?: CompileOptions): CompiledTopology {
  const topology = new Topology()
  build(topology)
  return topology.compile(options)
}
