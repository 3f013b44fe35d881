/** Topics: description, creation, deletion, settings, and the offsets at their ends. */
import { createTopicsV7, deleteTopicsV6, describeConfigsV4, listOffsetsV7 } from '@platformatic/kafka'
import type { TopicPartition } from '../../base/ids.ts'
import type { BrokerError, OffsetSpec, TopicInfo, TopicSpec } from '../port.ts'
import type { Cluster, TopicState } from './cluster.ts'
import { answered, errorName, isTransient, refused } from './errors.ts'
import { byTopic } from './wire-calls.ts'

const topicResource = 2
const timestamps: Readonly<Record<OffsetSpec, bigint>> = { earliest: -2n, latest: -1n, stable: -1n }
const pollMs = 20

export class Topics {
  readonly #cluster: Cluster

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  async describe(names: readonly string[] | null): Promise<TopicInfo[]> {
    if (names?.length === 0) return []
    const states = await this.#cluster.retrying('describing topics', () => this.#cluster.refresh(names))
    return states
      .filter((state) => names !== null || !state.internal)
      .map(({ topic, topicId, leaders }) => ({ topic, topicId, partitions: leaders.length }))
  }

  async create(specs: readonly TopicSpec[]): Promise<void> {
    if (specs.length === 0) return
    const { requestTimeoutMs, replicationFactor } = this.#cluster.settings
    const what = `creating ${specs.map((spec) => spec.topic).join(', ')}`
    const asked = specs.map((spec) => ({
      name: spec.topic,
      numPartitions: spec.partitions,
      replicationFactor,
      assignments: [],
      configs: Object.entries(spec.config ?? {}).map(([name, value]) => ({ name, value })),
    }))
    await this.#cluster.retrying(what, async () => {
      const answer = await this.#cluster.anywhere(
        what,
        ({ connection }) => answered(createTopicsV7.api.async(connection, asked, requestTimeoutMs, false)),
        true,
      )
      for (const { name, errorCode, errorMessage } of answer.topics) {
        if (errorCode !== 0 && errorName(errorCode) !== 'TOPIC_ALREADY_EXISTS') {
          throw refused(errorCode, `creating ${name}`, errorMessage)
        }
      }
    })
    await this.#until(specs, (states) => specs.every((spec) => isServed(states, spec.topic)))
  }

  async delete(names: readonly string[]): Promise<void> {
    if (names.length === 0) return
    const what = `deleting ${names.join(', ')}`
    const timeoutMs = this.#cluster.settings.requestTimeoutMs
    await this.#cluster.retrying(what, async () => {
      const asked = names.map((name) => ({ name }))
      const answer = await this.#cluster.anywhere(
        what,
        ({ connection }) => answered(deleteTopicsV6.api.async(connection, asked, timeoutMs)),
        true,
      )
      for (const { name, errorCode, errorMessage } of answer.responses) {
        if (errorCode !== 0 && errorName(errorCode) !== 'UNKNOWN_TOPIC_OR_PARTITION') {
          throw refused(errorCode, `deleting ${name}`, errorMessage)
        }
      }
    })
    this.#cluster.forget(names)
    const gone = names.map((topic) => ({ topic }))
    await this.#until(gone, (states) => states.length === 0)
  }

  async config(topic: string): Promise<Readonly<Record<string, string>>> {
    const what = `reading the settings of ${topic}`
    return this.#cluster.retrying(what, async () => {
      const answer = await this.#cluster.anywhere(what, ({ connection }) =>
        answered(
          describeConfigsV4.api.async(
            connection,
            [{ resourceType: topicResource, resourceName: topic, configurationKeys: null }],
            false,
            false,
          ),
        ),
      )
      const result = answer.results[0]
      if (result === undefined) throw refused(-1, what)
      if (result.errorCode !== 0) throw refused(result.errorCode, what, result.errorMessage)
      return Object.fromEntries(
        result.configs.flatMap(({ name, value }): Array<[string, string]> => (value == null ? [] : [[name, value]])),
      )
    })
  }

  async listOffsets(
    partitions: readonly TopicPartition[],
    at: OffsetSpec,
  ): Promise<Array<TopicPartition & { offset: number }>> {
    const found: Array<TopicPartition & { offset: number }> = []
    let left = [...partitions]
    if (left.length === 0) return found
    const others = left.length > 1 ? ' and others' : ''
    const what = `asking for the ${at} offsets of ${(left[0] as TopicPartition).topic}${others}`
    await this.#cluster.retrying(what, async () => {
      const faults: BrokerError[] = []
      const groups = await this.#cluster.byLeader(left, (_item, error) => faults.push(error))
      await Promise.all(
        [...groups.values()].map(async ({ address, items }) => {
          const topics = byTopic(items).map(([name, each]) => ({
            name,
            partitions: each.map((item) => ({
              partitionIndex: item.partition,
              currentLeaderEpoch: -1,
              timestamp: timestamps[at],
            })),
          }))
          const answer = await this.#cluster
            .on(address, 'coordinate', what, ({ connection }) =>
              answered(listOffsetsV7.api.async(connection, -1, at === 'stable' ? 1 : 0, topics)),
            )
            .catch((error: unknown) => {
              this.#cluster.forget(items.map((item) => item.topic))
              throw error
            })
          for (const { name, partitions: results } of answer.topics) {
            for (const { partitionIndex, errorCode, offset } of results) {
              if (errorCode === 0) found.push({ topic: name, partition: partitionIndex, offset: Number(offset) })
              else faults.push(refused(errorCode, `asking for the ${at} offset of ${name}:${partitionIndex}`))
            }
          }
        }),
      )
      left = left.filter((item) => !found.some((f) => f.topic === item.topic && f.partition === item.partition))
      if (faults.length) {
        this.#cluster.forget(left.map((item) => item.topic))
        throw faults.find((fault) => !isTransient(fault.code)) ?? (faults[0] as BrokerError)
      }
    })
    return found
  }

  /** Waits until the cluster shows what was asked of it; a little later every broker does. */
  async #until(topics: ReadonlyArray<{ topic: string }>, done: (states: TopicState[]) => boolean): Promise<void> {
    const names = topics.map(({ topic }) => topic)
    const startedAtMs = performance.now()
    while (!done(await this.#cluster.retrying('describing topics', () => this.#cluster.refresh(names)))) {
      if (performance.now() - startedAtMs > this.#cluster.settings.requestTimeoutMs) {
        throw refused(7, `waiting for ${names.join(', ')}`, 'The change did not become visible in time.')
      }
      await this.#cluster.retrier.pause(pollMs)
    }
  }
}

function isServed(states: readonly TopicState[], topic: string): boolean {
  const state = states.find((each) => each.topic === topic)
  return state !== undefined && state.leaders.length > 0 && state.leaders.every((leader) => leader >= 0)
}
