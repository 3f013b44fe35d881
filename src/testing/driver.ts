/** Tests applications without threads and network: feed records, move the clock, read what comes out. */
import assert from 'node:assert/strict'
import { type Duration, tryParseDuration } from '../base/duration.ts'
import { EngineError } from '../base/errors.ts'
import { keySlot } from '../base/hash.ts'
import type { Application } from '../dsl/app.ts'
import { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { Serde } from '../serde/serde.ts'
import type { AnyStore } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type {
  DriverOptions,
  DroppedRecord,
  InputRecord,
  InputTopic,
  OutputRecord,
  OutputTopic,
  TestedApplication,
} from './contract.ts'
import { ApplicationsOfTest } from './tested-applications.ts'
import { type Serdes, TopicSerdes } from './topic-serdes.ts'
import type { FedRecord } from './virtual-broker.ts'
import { VirtualWorld } from './virtual-world.ts'
import type { WrittenRecord } from './written.ts'

/**
 * Runs an application on the test's own thread, with the code of production: the engine, its lanes, its commits and the
 * embedded broker. The wall clock moves only by `advanceWallClock`. Event time is that of the engine: the least over all
 * partitions. Each partition must have had a record, or count as idle.
 *
 * Asynchronous functions are waited for in real time. Calls that a `breaker` makes again are made without a pause, and a
 * `timeout` is over after `patience` at the latest; `concurrency` and `rate` are without effect.
 *
 * Several applications run on one broker and one clock: what one writes another reads, within the same call. Each is its own
 * process with a commit, an event time and stores of its own; `application` gives one of them by its id.
 *
 * @example
 * const driver = new TopologyTestDriver(app)
 * await driver.input('orders').pipe('a', { amount: 5 }, { timestamp: 1000 })
 * assert.deepEqual(driver.output('totals').read()?.value, 5)
 * @example
 * const checking = defineApp({
 *   applicationId: 'checking',
 *   build: (topology) => topology.stream('orders').filter((order) => order !== null).to('checked'),
 * })
 * const counting = defineApp({
 *   applicationId: 'counting',
 *   build: (topology) => topology.stream('checked').groupByKey().count({ store: 'counts' }).toStream().to('counted'),
 * })
 * const driver = new TopologyTestDriver([checking, counting])
 * await driver.input('orders').pipe('ann', { amount: 5 })
 * assert.equal(driver.output('counted').read()?.value, 1)
 * await driver.application('counting').restart()
 */
export class TopologyTestDriver {
  readonly #apps: ApplicationsOfTest
  readonly #serdes: TopicSerdes
  readonly #world: VirtualWorld
  /** Calls wait for one another. */
  #turn: Promise<unknown> = Promise.resolve()

  /**
   * Compiles the application, or all of them. Nothing runs until a record is fed or the clock moves.
   *
   * @throws EngineError `USAGE` when two applications have the same id, options are given for one that is not there, or `patience` is
   *   no duration.
   */
  constructor(
    app:
      | Pick<Application, 'applicationId' | 'compile' | 'config'>
      | ReadonlyArray<Pick<Application, 'applicationId' | 'compile' | 'config'>>,
    options: DriverOptions = {},
  ) {
    const { partitions = 1, topics = {}, startAt = 0, commits = 'each', patience = '1s' } = options
    const registry = options.registry ?? new EmbeddedRegistry()
    const partitionsOf = (topic: string): number =>
      topics[topic]?.partitions ?? (typeof partitions === 'number' ? partitions : (partitions[topic] ?? 1))
    const all = 'compile' in app ? [app] : app
    this.#apps = new ApplicationsOfTest(all, options, registry, partitionsOf, (one) =>
      this.#inTurn(() => this.#world.restart([one])),
    )
    this.#world = new VirtualWorld({
      applications: this.#apps.all.map((one) => one.app),
      startAt,
      partitions: partitionsOf,
      commitsEach: commits === 'each',
      patienceMs: Math.max(1, milliseconds(patience)),
    })
    const { written } = this.#world.broker
    this.#serdes = new TopicSerdes(this.#apps.all, registry, (topic, id) => written.isBy(topic, id))
  }

  /**
   * The compiled topology of the application.
   *
   * @throws EngineError `USAGE` when there are several: each has its own, `application(id).topology`.
   */
  get topology(): CompiledTopology {
    return this.#apps.single('topology').topology
  }

  /**
   * One of the applications by its id: its topology, its stores, what it has dropped.
   *
   * @throws EngineError `USAGE` when there is none of that id.
   */
  application(applicationId: string): TestedApplication {
    return this.#apps.of(applicationId)
  }

  /**
   * A topic that the application reads. The serdes are those of its source unless others are given. Where several applications read the
   * topic, they are those of the first one.
   *
   * @throws EngineError `USAGE` when no application reads the topic.
   */
  input<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): InputTopic<K, V> {
    this.#serdes.ofInput(topic)
    const pipeAll: InputTopic<K, V>['pipeAll'] = async (records) => {
      const fed = records.map((record) => this.#encoded(topic, record, serdes))
      return this.#inTurn(() => this.#world.feed(new Map([[topic, fed]])))
    }
    return { pipe: (key, value, options) => pipeAll([{ ...options, key, value }]), pipeAll }
  }

  /**
   * Feeds records of several topics that lie there all at once, like a backlog. They are encoded by the serdes of their
   * sources. Resolves when everything that follows from them is done.
   *
   * @throws EngineError `USAGE` when no application reads one of the topics.
   */
  async pipeAll(records: ReadonlyArray<InputRecord<unknown, unknown> & { readonly topic: string }>): Promise<void> {
    const byTopic = new Map<string, FedRecord[]>()
    for (const record of records) {
      const { topic } = record
      const fed = byTopic.get(topic) ?? []
      byTopic.set(topic, fed)
      fed.push(this.#encoded(topic, record, undefined))
    }
    return this.#inTurn(() => this.#world.feed(byTopic))
  }

  /**
   * A topic that the application writes. The serdes are those of its sink unless others are given. Where other applications read
   * it, its records are to be read here all the same.
   */
  output<K = unknown, V = unknown>(
    topic: string,
    serdes?: { readonly key?: Serde<K>; readonly value?: Serde<V> },
  ): OutputTopic<K, V> {
    const own = serdes as Serdes<never, never> | undefined
    const shown = (record: WrittenRecord): OutputRecord<K, V> => this.#serdes.shown(record, own) as OutputRecord<K, V>
    const take = (limit: number): Array<OutputRecord<K, V>> => this.#world.broker.written.take(topic, limit).map(shown)
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
    return this.#world.broker.written.takeAll().map((record) => this.#serdes.shown(record))
  }

  /**
   * Moves the wall clock on. Timers and scheduled sources that become due fire, each at its own time, and silent
   * partitions turn idle.
   *
   * @throws EngineError `USAGE` when it is no duration.
   */
  async advanceWallClock(duration: Duration): Promise<void> {
    const ms = milliseconds(duration)
    return this.#inTurn(() => this.#world.advance(ms))
  }

  /**
   * Commits what was done so far. Of use with `commits: 'interval'`. Several applications commit at the same moment: what one
   * reads of another by it is done, and part of its next commit.
   */
  commit(): Promise<void> {
    return this.#inTurn(() => this.#world.commit())
  }

  /**
   * Kills the application and starts it again on an empty disk. Stores are restored from their changelogs, and what was
   * not committed is processed again. Of several applications all are killed at once; `application(id).restart()` kills one.
   */
  restart(): Promise<void> {
    return this.#inTurn(() => this.#world.restart())
  }

  /**
   * A store by its name, to be read. It can be used across restarts.
   *
   * @throws EngineError `USAGE` when there is none of that name and partition, or several applications have one of that name.
   */
  store<S = AnyStore>(name: string, partition = 0): S {
    return this.#apps.withStore(name).store<S>(name, partition)
  }

  /**
   * Says in words how far event time has come and what it waits for: which partition holds it and why, what to set, and
   * how many windows are open. Of several applications each says it, behind its id.
   */
  explain(): string {
    return this.#apps.told((one) => one.explain())
  }

  /** The records dropped so far, by any application: they were late, had no key, could not be processed, … */
  dropped(): DroppedRecord[] {
    return [...this.#apps.drops]
  }

  /** The warnings that the engine has logged so far. Of several applications each stands behind its id. */
  warnings(): readonly string[] {
    return this.#apps.warnings
  }

  /** The wall clock, epoch milliseconds. */
  now(): number {
    return this.#world.loop.now()
  }

  /** The topology as text, as `millrace topology` shows it. Those of several applications stand behind their ids. */
  describe(): string {
    return this.#apps.told((one) => one.describe())
  }

  /** Ends the application, or all of them. What is not committed is void. */
  close(): void {
    this.#world.close()
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
      timestamp: timestamp ?? this.#world.loop.now(),
      headers: headers ?? [],
    }
  }

  #partition(topic: string, asked: number | undefined, key: Uint8Array | null): number {
    const count = this.#world.broker.partitionsOf(topic)
    const partition = asked ?? (key === null ? 0 : keySlot(key) % count)
    if (partition >= 0 && partition < count) return partition
    throw new EngineError('USAGE', `The topic ${topic} has ${count} partitions, no partition ${partition}.`)
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

function milliseconds(duration: Duration): number {
  const ms = tryParseDuration(duration)
  if (ms !== undefined) return ms
  throw new EngineError('USAGE', `${JSON.stringify(duration)} is no duration; write milliseconds, '10s' or 'PT1M'.`)
}
