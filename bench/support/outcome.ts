/**
 * What a run put out, as one short text that two engines must agree on. What they are free to do differently (how many
 * updates they fold into one, windows still open at the end of the input) is left out.
 */
import { crc32 } from 'node:zlib'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordCursor } from '../../src/broker/wire/record-batch.ts'
import { firstTimestamp } from './events.ts'

const windowMs = 10_000
/** Every partition has a record in the last second of the input. */
const marginMs = 1000

type Take = (key: string, value: Buffer) => void

/** Calls for each committed record of the topic, in order within a partition. */
export async function readCommitted(broker: BrokerPort, topic: string, take: Take): Promise<void> {
  const [info] = await broker.topics([topic])
  if (info === undefined) throw new RangeError(`there is no topic ${topic}`)
  const partitions = Array.from({ length: info.partitions }, (_, partition) => ({ topic, partition }))
  for (const { partition, offset: end } of await broker.listOffsets(partitions, 'stable')) {
    const cursor = new RecordCursor({ verifyChecksums: false })
    for (let offset = 0; offset < end; ) {
      const [answer] = await broker.fetch({
        partitions: [{ topic, partition, offset, maxBytes: 4 << 20 }],
        maxWaitMs: 500,
        maxBytes: 4 << 20,
        isolation: 'read_committed',
      })
      if (answer === undefined) continue
      if (answer.error !== undefined) throw new RangeError(`${topic}/${partition} cannot be read: ${answer.error}`)
      cursor.reset(answer.records, offset, answer.aborted, 'read_committed')
      while (cursor.next()) {
        const bytes = Buffer.from(cursor.bytes.buffer, cursor.bytes.byteOffset, cursor.bytes.byteLength)
        take(
          bytes.toString('latin1', cursor.keyStart, cursor.keyEnd),
          bytes.subarray(cursor.valueStart, cursor.valueEnd),
        )
      }
      offset = cursor.position
    }
  }
}

/** Sum over keys, so that the order of keys does not matter. */
function total(name: string, digests: ReadonlyMap<string, number>, records: number): string {
  let sum = 0n
  for (const [key, digest] of digests) sum += BigInt(crc32(key)) * BigInt(digest + 1)
  return `${name}:${records}:${digests.size}:${(sum & 0xffff_ffff_ffff_ffffn).toString(16)}`
}

async function ordered(broker: BrokerPort, topic: string): Promise<string> {
  const digests = new Map<string, number>()
  let records = 0
  await readCommitted(broker, topic, (key, value) => {
    records++
    digests.set(key, crc32(value, digests.get(key) ?? 0))
  })
  return total('in order', digests, records)
}

/** Where a key's records come from several partitions, two engines may take them in another order. */
async function unordered(broker: BrokerPort, topic: string): Promise<string> {
  const sums = new Map<string, number>()
  let records = 0
  await readCommitted(broker, topic, (key, value) => {
    records++
    sums.set(key, ((sums.get(key) ?? 0) + crc32(value)) >>> 0)
  })
  return total('in any order', sums, records)
}

async function counted(broker: BrokerPort, topic: string): Promise<string> {
  const last = new Map<string, number>()
  await readCommitted(broker, topic, (key, value) => {
    const count = Number(value.readBigInt64BE())
    if (count <= (last.get(key) ?? 0))
      throw new RangeError(`the count of ${key} went from ${last.get(key)} to ${count}`)
    last.set(key, count)
  })
  return total('last counts', last, last.size)
}

async function windows(broker: BrokerPort, topic: string, inputRecords: number): Promise<string> {
  const passed = firstTimestamp + inputRecords - marginMs
  const seen = new Map<string, number>()
  await readCommitted(broker, topic, (_, value) => {
    const { user, start, sum } = JSON.parse(value.toString('latin1')) as { user: string; start: number; sum: number }
    if (start + windowMs > passed) return
    const window = `${user} ${start}`
    if (seen.has(window)) throw new RangeError(`the window ${window} came out twice`)
    seen.set(window, sum)
  })
  return total('windows', seen, seen.size)
}

export function outcome(broker: BrokerPort, workload: string, topic: string, inputRecords: number): Promise<string> {
  if (workload === 'count' || workload === 'rekey-count') return counted(broker, topic)
  if (workload === 'rekey-join') return unordered(broker, topic)
  if (workload === 'window') return windows(broker, topic, inputRecords)
  return ordered(broker, topic)
}
