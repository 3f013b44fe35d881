/**
 * What the logs of Kafka tell about who committed when: the chain of commits of a group, the order of producers in an
 * output, and how long a reader of committed results saw nothing new.
 */
import type { BrokerPort } from '../../../src/broker/port.ts'
import { compareTags, decodeTag } from '../../../src/engine/commit/tag.ts'
import { batchHeader, batchSize, RecordCursor } from '../../../src/broker/wire/record-batch.ts'
import { controlType } from '../../../src/broker/wire/record-cursor.ts'

const maxBytes = 1 << 22
/** Type of the marker of a transaction that took effect. */
const commits = 1
/** A partition that gives nothing new for so long although it is not at its end is told, not waited for. */
const standstillMs = 60_000

/** Walks a partition as it lies, batch by batch or whatever `take` makes of the bytes; `take` answers where to go on. */
async function walk(
  port: BrokerPort,
  topic: string,
  partition: number,
  isolation: 'read_committed' | 'read_uncommitted',
  take: (fetched: Awaited<ReturnType<BrokerPort['fetch']>>[number], offset: number) => number,
): Promise<void> {
  const at = isolation === 'read_committed' ? 'stable' : 'latest'
  const [end] = await port.listOffsets([{ topic, partition }], at)
  let offset = 0
  let movedAtMs = performance.now()
  while (end !== undefined && offset < end.offset) {
    const request = { partitions: [{ topic, partition, offset, maxBytes }], maxWaitMs: 500, maxBytes, isolation }
    for (const fetched of await port.fetch(request)) {
      if (fetched.error !== undefined) throw new TypeError(`${topic}:${partition} answered ${fetched.error}`)
      const next = take(fetched, Math.max(offset, fetched.logStartOffset))
      if (next > offset) movedAtMs = performance.now()
      offset = next
    }
    if (performance.now() - movedAtMs > standstillMs) {
      throw new TypeError(`${topic}:${partition} gave nothing from ${offset} on, though it ends at ${end.offset}`)
    }
  }
}

export interface Chain {
  /** Transactions of the group that took effect. */
  readonly commits: number
  /** Token epochs in the order of their first commit. */
  readonly tokenEpochs: readonly number[]
  readonly errors: readonly string[]
}

interface Committed {
  readonly tokenEpoch: number
  readonly seq: number
  readonly offset: number
  readonly transaction: string
}

/**
 * The group's history in `__consumer_offsets`: of every partition the commit tags must grow and the offsets must not go
 * back, and no commit of an older token epoch may follow one of a newer. Within one transaction the same offsets may lie
 * twice: where the answer to them was lost they are sent again, and Kafka tells no copies apart here.
 */
export async function commitChain(port: BrokerPort, groupId: string): Promise<Chain> {
  const [topic] = await port.topics(['__consumer_offsets'])
  const last = new Map<string, Committed>()
  const ids = new Set<string>()
  const epochs: number[] = []
  const errors: string[] = []
  for (let partition = 0; partition < (topic?.partitions ?? 0); partition++) {
    const cursor = new RecordCursor()
    const transactions = new Transactions()
    await walk(port, '__consumer_offsets', partition, 'read_committed', (fetched, offset) => {
      transactions.take(fetched.records, offset)
      cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
      while (cursor.next()) {
        const commit = offsetCommitOf(cursor)
        if (commit?.group !== groupId) continue
        const tag = decodeTag(commit.metadata)
        if (!tag) continue
        const transaction = transactions.of(cursor.offset)
        const now = { tokenEpoch: tag.tokenEpoch, seq: tag.seq, offset: commit.offset, transaction }
        const before = last.get(commit.place)
        const where = `${commit.place} at ${now.tokenEpoch}.${now.seq}`
        if (before && compareTags(before, now) >= 0 && !isSentAgain(before, now))
          errors.push(`${where} follows ${before.tokenEpoch}.${before.seq}`)
        if (before && now.offset < before.offset)
          errors.push(`${where} goes back from ${before.offset} to ${now.offset}`)
        if (now.tokenEpoch < (epochs.at(-1) ?? 0)) errors.push(`${where} comes after epoch ${epochs.at(-1)}`)
        if (!epochs.includes(now.tokenEpoch)) epochs.push(now.tokenEpoch)
        ids.add(`${now.tokenEpoch}.${now.seq}`)
        last.set(commit.place, now)
      }
      return cursor.position
    })
  }
  return { commits: ids.size, tokenEpochs: epochs, errors: errors.slice(0, 10) }
}

function isSentAgain(before: Committed, now: Committed): boolean {
  return compareTags(before, now) === 0 && before.offset === now.offset && before.transaction === now.transaction
}

/** Which batches of a partition are of one transaction: those of a producer between two of its markers. */
class Transactions {
  readonly #ended = new Map<bigint, number>()
  readonly #batches: { readonly lastOffset: number; readonly transaction: string }[] = []

  /** Takes what was fetched from `offset` on; a batch that was taken before may come again. */
  take(records: Uint8Array, offset: number): void {
    this.#batches.length = 0
    for (let at = 0; batchSize(records, at) > 0; ) {
      const { producerId, lastOffset, control, size } = batchHeader(records, at)
      const ended = this.#ended.get(producerId) ?? 0
      if (control && lastOffset >= offset) this.#ended.set(producerId, ended + 1)
      this.#batches.push({ lastOffset, transaction: `${producerId}, its number ${ended}` })
      at += size
    }
  }

  of(offset: number): string {
    const batch = this.#batches.find(({ lastOffset }) => lastOffset >= offset)
    if (!batch) throw new TypeError(`no batch holds offset ${offset}`)
    return batch.transaction
  }
}

/** Kafka's own format of a committed offset; undefined for what is none. */
function offsetCommitOf(
  cursor: RecordCursor,
): { group: string; place: string; offset: number; metadata: string } | undefined {
  if (cursor.keyStart < 0 || cursor.valueStart < 0) return undefined
  const key = Buffer.from(cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd))
  const value = Buffer.from(cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd))
  if (key.readInt16BE(0) > 1) return undefined
  const groupEnds = 4 + key.readInt16BE(2)
  const topicEnds = groupEnds + 2 + key.readInt16BE(groupEnds)
  const place = `${key.toString('utf8', groupEnds + 2, topicEnds)}:${key.readInt32BE(topicEnds)}`
  const version = value.readInt16BE(0)
  // Version, offset, leader epoch, then the metadata: from version 4 on with a compact length, before with two bytes.
  const at = version < 1 ? 10 : 14
  const compact = version >= 4
  const length = compact ? compactLength(value, at) : { size: 2, value: value.readInt16BE(at) }
  const metadata = value.toString('utf8', at + length.size, at + length.size + length.value)
  return { group: key.toString('utf8', 4, groupEnds), place, offset: Number(value.readBigInt64BE(2)), metadata }
}

function compactLength(bytes: Buffer, at: number): { size: number; value: number } {
  let value = 0
  let size = 0
  for (let byte = 0x80; byte & 0x80; size++) {
    byte = bytes[at + size] ?? 0
    value |= (byte & 0x7f) << (7 * size)
  }
  return { size, value: value - 1 }
}

/** Of one partition of an output with the broker's time in its records. */
export interface OutputLog {
  /** When committed results became visible, ascending. */
  readonly visibleAtMs: readonly number[]
  /** Results of a producer that lie behind those of a later one. */
  readonly errors: readonly string[]
}

export async function outputLog(port: BrokerPort, topic: string, partition: number): Promise<OutputLog> {
  const visibleAtMs: number[] = []
  const errors: string[] = []
  let latest = { producerId: -1n, producerEpoch: -1 }
  let held = false
  await walk(port, topic, partition, 'read_uncommitted', ({ records }, offset) => {
    let next = offset
    for (let at = 0; batchSize(records, at) > 0; ) {
      const header = batchHeader(records, at)
      const { producerId, producerEpoch, baseOffset, control } = header
      const older =
        producerId < latest.producerId || (producerId === latest.producerId && producerEpoch < latest.producerEpoch)
      if (older && !control) {
        errors.push(
          `${topic}:${partition}:${baseOffset} is of ${producerId}/${producerEpoch}, behind ${latest.producerId}/${latest.producerEpoch}`,
        )
      } else if (!older) latest = { producerId, producerEpoch }
      if (!control) held = true
      else if (held && controlType(records, at, header.size) === commits) {
        visibleAtMs.push(header.maxTimestamp)
        held = false
      } else held = false
      next = header.lastOffset + 1
      at += header.size
    }
    return next
  })
  return { visibleAtMs, errors: errors.slice(0, 10) }
}

/** Longest time within [fromMs, toMs], and what reaches beyond it, in which a partition gave nothing new. */
export function longestGapMs(logs: readonly OutputLog[], fromMs: number, toMs: number): number {
  let longest = 0
  for (const { visibleAtMs } of logs) {
    for (let i = 1; i < visibleAtMs.length; i++) {
      const [from, to] = [visibleAtMs[i - 1] as number, visibleAtMs[i] as number]
      if (to >= fromMs && from <= toMs) longest = Math.max(longest, to - from)
    }
  }
  return longest
}
