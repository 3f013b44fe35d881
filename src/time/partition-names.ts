/** Partitions by small integers: a handle names one of them until it is revoked, then it may name another. */
import { assert } from '../base/assert.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../base/ids.ts'

export class PartitionNames {
  readonly #partitions: Array<TopicPartition | undefined> = []
  readonly #handles = new Map<PartitionKey, number>()
  /** Live handles by topic and partition. */
  slots: readonly number[] = []

  add(tp: TopicPartition): number {
    const key = partitionKey(tp.topic, tp.partition)
    assert(!this.#handles.has(key), `partition ${key} is assigned already`)
    const free = this.#partitions.indexOf(undefined)
    const p = free < 0 ? this.#partitions.length : free
    this.#partitions[p] = { topic: tp.topic, partition: tp.partition }
    this.#handles.set(key, p)
    this.slots = [...this.slots, p].sort((a, b) => this.compare(a, b))
    return p
  }

  remove(p: number): void {
    this.#handles.delete(this.key(p))
    this.#partitions[p] = undefined
    this.slots = this.slots.filter((q) => q !== p)
  }

  /** -1 for a partition that is not assigned. */
  handle(topic: string, partition: number): number {
    return this.#handles.get(partitionKey(topic, partition)) ?? -1
  }

  key(p: number): PartitionKey {
    const { topic, partition } = this.#partitions[p] as TopicPartition
    return partitionKey(topic, partition)
  }

  compare(p: number, q: number): number {
    const a = this.#partitions[p] as TopicPartition
    const b = this.#partitions[q] as TopicPartition
    return a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition
  }
}
