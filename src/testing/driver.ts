/** Tests an application without threads and network: feed records, move the clock, read what comes out. */
import assert from 'node:assert/strict'
import { type Duration, tryParseDuration } from '../base/duration.ts'
import { EngineError } from '../base/errors.ts'
import { keySlot } from '../base/hash.ts'
import { loadConfig } from '../config/load.ts'
import type { Application } from '../dsl/app.ts'
import { compilingOf } from '../lanes/application.ts'
import { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { Serde } from '../serde/serde.ts'
import type { AnyStore, WindowStore } from '../state/contract.ts'
import { changelogPartitions } from '../topology/affinity.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { describeText } from '../topology/describe.ts'
import { planOf } from '../topology/plan.ts'
import { splitTopology } from '../topology/split.ts'
import type { DriverOptions, DroppedRecord, InputRecord, InputTopic, OutputRecord, OutputTopic } from './contract.ts'
import { connectEmbedded } from './embedded-schemas.ts'
import { explain } from './explain.ts'
import { storeHandle } from './store-handle.ts'
import { type Serdes, TopicSerdes } from './topic-serdes.ts'
import { type FedRecord, VirtualApplication } from './virtual-application.ts'
import type { WrittenRecord } from './written.ts'

/**
 * Runs an application on the test's own thread, with the code of production: the engine, its lanes, its commits and the
 * embedded broker. The wall clock moves only by `advanceWallClock`. Event time is that of the engine: the least over all
 * partitions. Each partition must have had a record, or count as idle.
 *
 * @example
 * const driver = new TopologyTestDriver(app)
 * await driver.input('orders').pipe('a', { amount: 5 }, { timestamp: 1000 })
 * assert.deepEqual(driver.output('totals').read()?.value, 5)
 */
export class TopologyTestDriver {
  /** The compiled topology of the application. */
  readonly topology: CompiledTopology
  readonly #serdes: TopicSerdes
  readonly #app: VirtualApplication
  /** Tasks of every sub-topology, as far as they follow from the topics that are named. */
  readonly #tasks: readonly number[]
  /** Calls wait for one another. */
  #turn: Promise<unknown> = Promise.resolve()

  /** Compiles the application. Nothing runs until a record is fed or the clock moves. */
  constructor(app: Pick<Application, 'applicationId' | 'compile' | 'config'>, options: DriverOptions = {}) {
    const { partitions = 1, topics = {}, startAt = 0, lanes = 1, commits = 'each' } = options
    const memory = { 'engine.state.store': 'memory' }
    const config = loadConfig({ application: [app.config, options.config, memory] })
    const split = config.get('topology.sub-topology-split')
    const registry = options.registry ?? new EmbeddedRegistry()
    const compile = (): CompiledTopology => {
      const compiled = app.compile(compilingOf(config))
      const topology = splitTopology(compiled, split)
      connectEmbedded(topology, registry)
      return topology
    }
    this.topology = compile()
    this.#serdes = new TopicSerdes(this.topology, registry)
    const partitionsOf = (topic: string): number =>
      topics[topic]?.partitions ?? (typeof partitions === 'number' ? partitions : (partitions[topic] ?? 1))
    const { sources } = this.topology
    this.#tasks = changelogPartitions(planOf(this.topology), partitionsOf, (source) =>
      // What a pattern will find is not known yet: most likely a topic like any other.
      sources[source]?.pattern === undefined ? (sources[source]?.topics ?? []) : [''],
    )
    this.#app = new VirtualApplication({
      applicationId: app.applicationId,
      config,
      topology: this.topology,
      compile,
      startAt,
      lanes,
      partitions: partitionsOf,
      commitsEach: commits === 'each',
      log: options.log,
    })
  }

  /**
   * A topic that the application reads. The serdes are those of its source unless others are given.
   *
   * @throws EngineError `USAGE` when the application does not read the topic.
   */
  input<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): InputTopic<K, V> {
    this.#serdes.ofInput(topic)
    const pipeAll: InputTopic<K, V>['pipeAll'] = async (records) => {
      const fed = records.map((record) => this.#encoded(topic, record, serdes))
      return this.#inTurn(() => this.#feed(new Map([[topic, fed]])))
    }
    return { pipe: (key, value, options) => pipeAll([{ ...options, key, value }]), pipeAll }
  }

  /**
   * Feeds records of several topics that lie there all at once, like a backlog. They are encoded by the serdes of their
   * sources. Resolves when everything that follows from them is done.
   *
   * @throws EngineError `USAGE` when the application does not read one of the topics.
   */
  async pipeAll(records: ReadonlyArray<InputRecord<unknown, unknown> & { readonly topic: string }>): Promise<void> {
    const byTopic = new Map<string, FedRecord[]>()
    for (const record of records) {
      const { topic } = record
      const fed = byTopic.get(topic) ?? []
      byTopic.set(topic, fed)
      fed.push(this.#encoded(topic, record, undefined))
    }
    return this.#inTurn(() => this.#feed(byTopic))
  }

  /** A topic that the application writes. The serdes are those of its sink unless others are given. */
  output<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): OutputTopic<K, V> {
    const own = serdes as Serdes<never, never> | undefined
    const shown = (record: WrittenRecord): OutputRecord<K, V> => this.#serdes.shown(record, own) as OutputRecord<K, V>
    const take = (limit: number): Array<OutputRecord<K, V>> => this.#app.written.take(topic, limit).map(shown)
    return {
      read: () => take(1)[0],
      readAll: () => take(Number.POSITIVE_INFINITY),
      expect: (records) => this.#compare(topic, take(Number.POSITIVE_INFINITY), records),
    }
  }

  /**
   * All records that were not read yet, of all topics, commit by commit; within one commit topic by topic and partition
   * by partition.
   */
  readAllOutputs(): OutputRecord[] {
    return this.#app.written.takeAll().map((record) => this.#serdes.shown(record))
  }

  /**
   * Moves the wall clock on. Timers and scheduled sources that become due fire, each at its own time, and silent
   * partitions turn idle.
   *
   * @throws EngineError `USAGE` when it is no duration.
   */
  async advanceWallClock(duration: Duration): Promise<void> {
    const ms = tryParseDuration(duration)
    if (ms === undefined)
      throw new EngineError('USAGE', `${JSON.stringify(duration)} is no duration; write milliseconds, '10s' or 'PT1M'.`)
    return this.#inTurn(() => this.#app.advance(ms))
  }

  /** Commits what was done so far. Of use with `commits: 'interval'`. */
  commit(): Promise<void> {
    return this.#inTurn(() => this.#app.commit())
  }

  /**
   * Kills the application and starts it again on an empty disk. Stores are restored from their changelogs, and what was
   * not committed is processed again.
   */
  restart(): Promise<void> {
    return this.#inTurn(() => this.#app.restart())
  }

  /**
   * A store by its name, to be read. It can be used across restarts.
   *
   * @throws EngineError `USAGE` when there is none of that name and partition.
   */
  store<S = AnyStore>(name: string, partition = 0): S {
    const spec = this.topology.stores.get(name)
    const isThere = this.topology.globalStores.has(name) || partition < this.#partitionsOfStore(name)
    if (spec && isThere) return storeHandle(spec, partition, () => this.#app.store(name, partition)) as S
    const known = [...this.topology.stores.keys()].join(', ') || 'none'
    throw new EngineError('USAGE', `There is no store ${name} of partition ${partition} (stores: ${known}).`)
  }

  /**
   * Says in words how far event time has come and what it waits for: which partition holds it and why, what to set, and
   * how many windows are open.
   */
  explain(): string {
    const windows = new Map<string, number>()
    for (const [name, { kind }] of this.topology.stores) {
      if (kind !== 'window' && kind !== 'session') continue
      let count = 0
      for (let partition = 0; partition < this.#partitionsOfStore(name); partition++) {
        const store = this.#app.store(name, partition) as WindowStore<unknown, unknown> | undefined
        if (store) for (const _ of store.all()) count++
      }
      windows.set(name, count)
    }
    return explain({ topology: this.topology, watermarks: this.#app.watermarks(), windows })
  }

  /** The records dropped so far: they were late, had no key, could not be processed, … */
  dropped(): DroppedRecord[] {
    return [...this.#app.drops]
  }

  /** The warnings that the engine has logged so far. */
  warnings(): readonly string[] {
    return this.#app.warnings
  }

  /** The wall clock, epoch milliseconds. */
  now(): number {
    return this.#app.loop.now()
  }

  /** The topology as text, as `millrace topology` shows it. */
  describe(): string {
    return describeText(this.topology)
  }

  /** Ends the application. What is not committed is void. */
  close(): void {
    this.#app.close()
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => {
      // Whoever called hears of it; the next one has its turn all the same.
    })
    return done
  }

  #encoded<K, V>(
    topic: string,
    { key, value, timestamp, headers, partition }: InputRecord<K, V>,
    serdes: Serdes<K, V> | undefined,
  ): FedRecord {
    const of = this.#serdes.ofInput(topic, serdes as Serdes<never, never> | undefined)
    const keyBytes = key === null || key === undefined ? null : of.key.serialize(key)
    return {
      partition: this.#partition(topic, partition, keyBytes),
      key: keyBytes,
      value: value === null || value === undefined ? null : of.value.serialize(value),
      timestamp: timestamp ?? this.#app.loop.now(),
      headers: headers ?? [],
    }
  }

  async #feed(records: ReadonlyMap<string, readonly FedRecord[]>): Promise<void> {
    // A topic that has come meanwhile is found when the engine looks for topics again: here, at its next start.
    const isNew = [...records.keys()].map((topic) => this.#app.create(topic)).includes(true)
    if (isNew && this.#app.isStarted) await this.#app.restart(true)
    this.#app.append(records)
    await this.#app.settle()
  }

  #partition(topic: string, asked: number | undefined, key: Uint8Array | null): number {
    const count = this.#app.partitionsOf(topic)
    const partition = asked ?? (key === null ? 0 : keySlot(key) % count)
    if (partition >= 0 && partition < count) return partition
    throw new EngineError('USAGE', `The topic ${topic} has ${count} partitions, no partition ${partition}.`)
  }

  #partitionsOfStore(name: string): number {
    if (this.topology.globalStores.has(name)) return 1
    const open = this.#app.openPartitions(name)
    if (open > 0) return open
    const owner = this.topology.subtopologies.find((s) => s.stores.includes(name))
    return owner ? (this.#tasks[owner.id] ?? 1) : 1
  }

  #compare(topic: string, actual: readonly OutputRecord[], expected: ReadonlyArray<Partial<OutputRecord>>): void {
    const seen = actual.map((record, i) => {
      const names = Object.keys(expected[i] ?? { key: 0, value: 0, timestamp: 0 }) as Array<keyof OutputRecord>
      return Object.fromEntries(names.map((name) => [name, record[name]]))
    })
    try {
      assert.deepEqual(seen, [...expected])
    } catch (error) {
      const { message } = error as Error
      throw new assert.AssertionError({
        message: `The topic ${topic} has other records than expected. ${message}\n\n${this.explain()}`,
        actual: seen,
        expected,
        operator: 'deepStrictEqual',
      })
    }
  }
}
