/** Committed offsets of the groups, and those that wait for the end of their transaction. */
import { partitionKey, type TopicPartition } from '../../../base/ids.ts'
import type { CommittedOffset, OffsetToCommit } from '../../port.ts'
import type { JournalEntry } from './storage.ts'

interface Pending {
  readonly groupId: string
  readonly epoch: number
  readonly offsets: Map<string, OffsetToCommit>
}

export class Offsets {
  readonly #committed = new Map<string, Map<string, OffsetToCommit>>()
  readonly #pending = new Map<bigint, Pending[]>()

  commit(groupId: string, offsets: readonly OffsetToCommit[]): void {
    let group = this.#committed.get(groupId)
    if (group === undefined) {
      group = new Map()
      this.#committed.set(groupId, group)
    }
    for (const { topic, partition, offset, metadata } of offsets) {
      group.set(partitionKey(topic, partition), { topic, partition, offset, metadata })
    }
  }

  addPending(producerId: bigint, epoch: number, groupId: string, offsets: readonly OffsetToCommit[]): void {
    let all = this.#pending.get(producerId)
    if (all === undefined) {
      all = []
      this.#pending.set(producerId, all)
    }
    let pending = all.find((p) => p.groupId === groupId)
    if (pending === undefined) {
      pending = { groupId, epoch, offsets: new Map() }
      all.push(pending)
    }
    for (const o of offsets) pending.offsets.set(partitionKey(o.topic, o.partition), o)
  }

  /** Producer id and epoch of every transaction that holds offsets back. */
  openTransactions(): Array<readonly [producerId: bigint, epoch: number]> {
    return [...this.#pending].map(([producerId, all]) => [producerId, (all[0] as Pending).epoch])
  }

  /** The transaction ended: its offsets take effect, or are gone. */
  end(producerId: bigint, commit: boolean): void {
    const all = this.#pending.get(producerId)
    if (all === undefined) return
    this.#pending.delete(producerId)
    if (commit) for (const { groupId, offsets } of all) this.commit(groupId, [...offsets.values()])
  }

  /** True while an open transaction holds offsets of the group for one of the partitions; null means any. */
  isUnstable(groupId: string, partitions: readonly TopicPartition[] | null): boolean {
    for (const all of this.#pending.values()) {
      for (const pending of all) {
        if (pending.groupId !== groupId) continue
        if (partitions === null) return true
        if (partitions.some((p) => pending.offsets.has(partitionKey(p.topic, p.partition)))) return true
      }
    }
    return false
  }

  committed(groupId: string, partitions: readonly TopicPartition[] | null): CommittedOffset[] {
    const group = this.#committed.get(groupId)
    if (partitions === null) return [...(group?.values() ?? [])]
    return partitions.map(({ topic, partition }) => {
      const found = group?.get(partitionKey(topic, partition))
      return found ?? { topic, partition, offset: -1, metadata: '' }
    })
  }

  groupIds(): string[] {
    return [...this.#committed.keys()]
  }

  /** Offsets of a topic that is no more would mislead the readers of its successor, also those that are yet to take effect. */
  dropTopic(topic: string): void {
    for (const group of this.#committed.values()) dropFrom(group, topic)
    for (const [producerId, all] of this.#pending) {
      for (const { offsets } of all) dropFrom(offsets, topic)
      const left = all.filter(({ offsets }) => offsets.size > 0)
      if (left.length > 0) this.#pending.set(producerId, left)
      else this.#pending.delete(producerId)
    }
  }

  snapshot(): JournalEntry[] {
    const entries: JournalEntry[] = []
    for (const [groupId, offsets] of this.#committed) {
      entries.push({ kind: 'offsets', groupId, offsets: [...offsets.values()] })
    }
    for (const [producerId, all] of this.#pending) {
      for (const { groupId, epoch, offsets } of all) {
        entries.push({
          kind: 'pending-offsets',
          producerId: String(producerId),
          epoch,
          groupId,
          offsets: [...offsets.values()],
        })
      }
    }
    return entries
  }
}

function dropFrom(offsets: Map<string, OffsetToCommit>, topic: string): void {
  for (const [key, offset] of offsets) if (offset.topic === topic) offsets.delete(key)
}
