/** The model engine, which counts its input per key. */
import type { Random } from '../../src/base/random.ts'
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import type { Derived } from './derived.ts'
import { readLog } from './logs.ts'
import { emptyStore, ModelEngine, type Store, topics } from './model-engine.ts'
import { type EngineOrder, type InputRecord, inputIsCommitted, type Stage } from './stage.ts'

export class ModelStage implements Stage {
  readonly applicationId = topics.group
  readonly inputTopic = topics.input
  readonly disksFail = false
  readonly #inputs: string[] = []
  readonly #stores = new Map<number, Store>()

  async prepare(cluster: EmbeddedCluster): Promise<void> {
    const broker = directClient(cluster)
    await broker.createTopics([topics.input, topics.output].map((topic) => ({ topic, partitions: 1 })))
    await broker.createTopics([{ topic: topics.changelog, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
  }

  feed(random: Random, derived: Derived): InputRecord {
    const key = `k${random.int(derived.keys)}`
    this.#inputs.push(key)
    const builder = new RecordBatchBuilder()
    builder.append(0, Buffer.from(key), Buffer.from(String(this.#inputs.length)), noHeaders)
    return { partition: 0, records: builder.finish() }
  }

  engine({ pod, broker, scheduler, owner, clockRate, fact, flaws }: EngineOrder): ModelEngine {
    const store = this.#stores.get(pod) ?? emptyStore()
    this.#stores.set(pod, store)
    return new ModelEngine({
      broker,
      timers: scheduler.timers(owner, clockRate),
      store,
      fact,
      flaws,
      life: String(owner),
    })
  }

  loseStore(pod: number): void {
    this.#stores.delete(pod)
  }

  settled(cluster: EmbeddedCluster): boolean {
    return inputIsCommitted(cluster, topics.group, topics.input)
  }

  /** Every key's counts are 1, 2, 3 … as often as it came in: nothing lost, nothing twice, nothing out of order. */
  async check(cluster: EmbeddedCluster, violate: (what: string) => void): Promise<void> {
    const seen = new Map<string, number>()
    for (const { key, value } of await readLog(cluster, topics.output)) {
      const expected = (seen.get(key) ?? 0) + 1
      if (Number(value) !== expected) {
        violate(`output of ${key}: ${value} where ${expected} was due`)
        return
      }
      seen.set(key, expected)
    }
    for (const key of new Set(this.#inputs)) {
      const came = this.#inputs.filter((input) => input === key).length
      if (seen.get(key) !== came) violate(`${key} came ${came} times and was counted ${seen.get(key) ?? 0} times`)
    }
  }
}
