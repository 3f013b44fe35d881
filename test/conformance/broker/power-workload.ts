/** A bit of everything that a broker does, what its callers were told of it, and whether a folder has it. */
import assert from 'node:assert/strict'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { inspectFolder } from '../../../src/broker/embedded/files/inspection.ts'
import { directCluster } from './embedded-support.ts'
import { batchOf, outsider, Producer, readToEnd } from './support.ts'

/** What was answered, as a caller knows it. */
export interface Told {
  made: boolean
  /** Transactions that were answered as committed, and begun. */
  committed: number
  begun: number
  fed: number
  /** Records outside of transactions, one after the other, in each of the topics that take them. */
  plain: number
  short: number
  latest: number
  offset: number
  gone: 'not yet' | 'there' | 'being deleted' | 'deleted'
}

export const small = { segmentBytes: 350, compactionBytes: 700 }

export const nothingTold = (): Told => ({
  made: false,
  committed: 0,
  begun: 0,
  fed: 0,
  plain: 0,
  short: 0,
  latest: 0,
  offset: 0,
  gone: 'not yet',
})

const keys = 3
const wide = (i: number): string => `${i}`.padEnd(120, '.')
const topicsOf = {
  left: {},
  right: {},
  plain: {},
  latest: { 'cleanup.policy': 'compact' },
  short: { 'retention.bytes': '700' },
}

export async function makeTopics(client: EmbeddedClient, told: Told): Promise<void> {
  await client.createTopics([
    ...Object.entries(topicsOf).map(([topic, config]) => ({ topic, partitions: 1, config })),
    { topic: 'fed', partitions: 2 },
    { topic: 'gone', partitions: 1 },
  ])
  Object.assign(told, { made: true, gone: 'there' })
}

async function transaction(producer: Producer, told: Told): Promise<void> {
  const i = told.committed
  told.begun = i + 1
  // More than a segment takes: the transaction goes on in others.
  for (let part = 0; part < 3; part++) await producer.send('left', [wide(i), `${part}`])
  await producer.send('right', [`${i}`])
  await producer.sendOffsets(outsider('group'), [{ topic: 'left', partition: 0, offset: i + 1, metadata: '' }])
  await producer.end(true)
  told.committed++
}

export async function rounds(client: EmbeddedClient, told: Told, count: number): Promise<void> {
  const producer = await Producer.start(client, 'tx')
  const plain = async (topic: 'plain' | 'short' | 'latest', key: string | null): Promise<void> => {
    const records = batchOf([wide(told[topic])], key)
    await client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records }] })
    told[topic]++
  }
  for (let i = 0; i < count; i++) {
    if (i % 3 === 1) {
      await producer.send('left', ['never'])
      await producer.send('right', ['never'])
      await producer.end(false)
    }
    await transaction(producer, told)
    await plain('plain', null)
    for (let n = 0; n < 3; n++) await plain('latest', `${told.latest % keys}`)
    for (let n = 0; n < 2; n++) await plain('short', null)
    const line = `${told.fed}`
    const batches = [0, 1, 1].map((partition) => ({ topic: 'fed', partition, records: batchOf([line]) }))
    await client.produceFed(batches, { topic: 'fed', file: 'file', lines: told.fed + 1 })
    told.fed++
    const offset = told.offset + 1
    await client.commitOffsets(outsider('other'), [{ topic: 'plain', partition: 0, offset, metadata: '' }])
    told.offset++
    if (i === 0 && told.gone === 'there') {
      await producer.send('gone', ['x'])
      await producer.end(true)
      told.gone = 'being deleted'
      await client.deleteTopics(['gone'])
      told.gone = 'deleted'
    }
  }
  // Left open, in segments of its own.
  for (let n = 0; n < 3; n++) await producer.send('left', [wide(-1)])
  await producer.send('right', ['never'])
}

/** What is left in the folder, and can be read. */
export interface Left {
  readonly topics: readonly string[]
  readonly records: Readonly<Record<string, readonly string[]>>
  /** Of the transactions' group, and of the one outside of transactions. */
  readonly offsets: readonly [number, number]
  readonly lines: number
}

const partitions = [...Object.keys(topicsOf).map((topic) => [topic, 0] as const), ['fed', 0], ['fed', 1]] as const

export async function leftIn(folder: string): Promise<Left> {
  assert.deepEqual(inspectFolder(folder).findings, [])
  const { client, cluster } = directCluster({ ...small, storage: openDiskStorage(folder, { fsync: false }) })
  try {
    const topics = (await client.topics(null)).map(({ topic }) => topic)
    // The successor decides what is open.
    await Producer.start(client, 'tx')
    const records: Record<string, readonly string[]> = {}
    for (const [topic, partition] of partitions) {
      if (!topics.includes(topic)) continue
      const [begin] = await client.listOffsets([{ topic, partition }], 'earliest')
      const read = await readToEnd(client, topic, { partition, from: begin?.offset ?? 0 })
      records[`${topic}:${partition}`] = read.records.map(({ value }) => value?.replaceAll('.', '') ?? '')
    }
    const offsetOf = async (groupId: string, topic: string): Promise<number> =>
      Math.max(0, (await client.committedOffsets(groupId, [{ topic, partition: 0 }], false))[0]?.offset ?? 0)
    const offsets = [await offsetOf('group', 'left'), await offsetOf('other', 'plain')] as const
    return { topics, records, offsets, lines: await client.feedMark('fed', 'file') }
  } finally {
    cluster.close()
  }
}

/** The number that the broker has: the one that was told, or the next, whose answer was on its way. */
function isOf(found: number, told: number, what: string): void {
  assert.ok(found === told || found === told + 1, `${what}: ${found}, and ${told} was told`)
}

const upTo = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}`)

/** Nothing that was told is missing, and nothing else is there but what was on its way. */
export function checkLeft({ topics, records, offsets: [committed, other], lines }: Left, told: Told): void {
  assert.ok(told.gone === 'being deleted' || topics.includes('gone') === (told.gone === 'there') || !told.made)
  if (!partitions.every(([topic]) => topics.includes(topic))) {
    assert.equal(told.made, false, `topics: ${topics.join()}`)
    return
  }
  const of = (topic: string, partition = 0): readonly string[] => records[`${topic}:${partition}`] ?? []
  assert.ok(committed === told.committed || committed === told.begun, `${committed} of ${told.committed} committed`)
  const left = upTo(committed).flatMap((i) => [i, '0', i, '1', i, '2'])
  assert.deepEqual([of('left'), of('right')], [left, upTo(committed)])
  isOf(lines, told.fed, 'lines')
  const twice = upTo(lines).flatMap((line) => [line, line])
  assert.deepEqual([of('fed'), of('fed', 1)], [upTo(lines), twice])
  const plain = of('plain')
  assert.deepEqual(plain, upTo(plain.length))
  isOf(plain.length, told.plain, 'plain records')
  const short = of('short').map(Number)
  assert.ok(
    short.every((value, i) => i === 0 || value === (short[i - 1] as number) + 1),
    `short: ${short.join()}`,
  )
  isOf((short.at(-1) ?? -1) + 1, told.short, 'short records')
  const latest = of('latest').map(Number)
  isOf((latest.at(-1) ?? -1) + 1, told.latest, 'latest records')
  for (let key = 0; key < keys; key++) {
    const last = Math.floor((told.latest - 1 - key) / keys) * keys + key
    assert.ok(last < 0 || latest.includes(last) || latest.includes(last + keys), `latest: ${latest.join()}`)
  }
  isOf(other, told.offset, 'the other group')
}
