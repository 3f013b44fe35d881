/**
 * Topologies that the seed draws: joins of every kind, changes of keys, windows, sessions, asynchronous functions, one behind the
 * other. Everything is in the topics before the start. What is committed of each key must be what the test driver makes of the same
 * records on one lane, where nothing fails.
 */
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'
import { TopologyTestDriver } from '../../src/testing/index.ts'
import {
  buildRandom,
  type DrawnRecord,
  meetsAsOne,
  outputOf,
  partitions,
  recordsOf,
} from '../engine/support/random-topology.ts'
import { byKey, committed } from './checkers.ts'
import { type Broken, played } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, World } from './world.ts'

type Written = ReadonlyMap<string, readonly string[]>

const shown = (value: Uint8Array | null, timestamp: number): string =>
  `${value === null ? null : Buffer.from(value)} at ${timestamp}`

class DrawnWorld extends World {
  /** That of the topology. */
  readonly #seed: number
  readonly #records: readonly DrawnRecord[]

  constructor(seed: number, mutant: Mutant | undefined) {
    const drawn = meetingFrom(seed)
    const records = recordsOf(drawn)
    const shape = { partitions, records: records.length, split: 'in-process', foldsMs: 0 } as const
    super({ seed, mutant: { name: 'none', ...mutant, world: { ...mutant?.world, ...shape } } })
    this.#seed = drawn
    this.#records = records
  }

  protected override application(delays: Delays): Application {
    return defineApp({
      applicationId: 'sim',
      build: (topology) => buildRandom(topology, this.#seed, () => delays.next()),
    })
  }

  protected override async feed(): Promise<void> {
    const builders = new Map<string, Map<number, RecordBatchBuilder>>()
    for (const { topic, partition, key, value, timestamp } of this.#records) {
      const ofTopic = builders.get(topic) ?? new Map<number, RecordBatchBuilder>()
      builders.set(topic, ofTopic)
      const builder = ofTopic.get(partition) ?? new RecordBatchBuilder()
      ofTopic.set(partition, builder)
      builder.append(timestamp, Buffer.from(key), value === null ? null : Buffer.from(JSON.stringify(value)), noHeaders)
      this.inputs.push({ key, value: value ?? 0, timestamp, partition })
    }
    await this.client.createTopics([...builders.keys()].map((topic) => ({ topic, partitions })))
    for (const [topic, ofTopic] of builders) {
      const batches = [...ofTopic].map(([partition, builder]) => ({ topic, partition, records: builder.finish() }))
      await this.client.produce({ transactionalId: null, batches })
    }
  }

  async check(): Promise<void> {
    const expected = await this.#byDriver()
    const records = await committed(this.cluster, outputOf(this.#seed))
    const found = byKey(records, ({ key }) => key.toString('latin1'))
    for (const key of new Set([...expected.keys(), ...found.keys()])) {
      const actual = (found.get(key) ?? []).map(({ value, timestamp }) => shown(value, timestamp))
      const wanted = expected.get(key) ?? []
      const at = wanted.findIndex((each, i) => each !== actual[i])
      if (at >= 0 || actual.length !== wanted.length)
        this.violate(
          `the key ${key}: at ${at} of ${wanted.length} expected ${wanted[at]}, found ${actual[at]} of ${actual}`,
        )
    }
  }

  async #byDriver(): Promise<Written> {
    const app = this.application({ next: () => undefined })
    const driver = new TopologyTestDriver(app, { partitions, lanes: 1 })
    await driver.pipeAll(this.#records)
    const output = driver.output<Uint8Array, Uint8Array>(outputOf(this.#seed), {
      key: serdes.bytes,
      value: serdes.bytes,
    })
    const written = new Map<string, string[]>()
    for (const { key, value, timestamp } of output.readAll()) {
      const name = Buffer.from(key ?? []).toString('latin1')
      written.set(name, [...(written.get(name) ?? []), shown(value, timestamp)])
    }
    driver.close()
    return written
  }
}

function meetingFrom(seed: number): number {
  let drawn = seed
  while (!meetsAsOne(drawn)) drawn += 10_000
  return drawn
}

export const mutants: readonly Broken[] = [
  { name: 'takes-what-is-there', world: { lanes: 3 }, settings: { maxTaskIdleMs: -1 } },
  {
    name: 'handed-over-in-any-order',
    world: { lanes: 3, asyncShare: 0.3 },
    messages: () => ({
      laneToLane: (message, send) => send(message.type === 'handoff' ? { ...message, isOrdered: false } : message),
    }),
  },
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new DrawnWorld(seed, mutant), mutant)
}
