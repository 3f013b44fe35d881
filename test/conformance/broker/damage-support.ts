/** A broker's folder with a bit of everything in it, what can be read from it, and ways to damage a file of it. */
import { createHash } from 'node:crypto'
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Random } from '../../../src/base/random.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { directCluster } from './embedded-support.ts'
import { batchOf, outsider, Producer, readToEnd } from './support.ts'

const topics = ['left', 'right', 'latest', 'fed', 'plain', 'short'] as const
const partitionsOf = (topic: string): number => (topic === 'fed' ? 2 : 1)
export const group = 'group'

/** Small segments and logs, so that there are many of them and compaction runs. */
export const smallSegments = { segmentBytes: 700, compactionBytes: 900 }

export interface Scene {
  readonly folder: string
  /** The same folder at earlier moments. */
  readonly earlier: readonly string[]
}

/**
 * Fills the folder. `ends`: cleanly, or in the middle of a transaction, without a word. What was written outside of
 * transactions since the last commit is at its end either way.
 */
export async function fill(
  at: string,
  rounds: number,
  ends: 'cleanly' | 'suddenly',
  { fsync, copied }: { readonly fsync: boolean; readonly copied?: () => void } = { fsync: false },
): Promise<Scene> {
  const folder = join(at, 'now')
  const earlier: string[] = []
  const { client, cluster } = directCluster({
    ...smallSegments,
    storage: openDiskStorage(join(at, 'live'), { fsync }),
  })
  await client.createTopics([
    { topic: 'gone', partitions: 1 },
    ...topics.map((topic) => ({ topic, partitions: partitionsOf(topic), config: configOf(topic) })),
  ])
  const producer = await Producer.start(client, 'tx')
  for (let i = 0; i < rounds; i++) {
    await round(client, producer, i)
    if (i === 3) await client.deleteTopics(['gone'])
    if (i % 7 === 5) {
      earlier.push(join(at, `earlier-${i}`))
      cpSync(join(at, 'live'), earlier.at(-1) as string, { recursive: true })
    }
  }
  if (ends === 'suddenly') {
    await producer.send('left', ['open'])
    await producer.send('right', ['open'])
    cpSync(join(at, 'live'), folder, { recursive: true })
    copied?.()
    cluster.close()
  } else {
    cluster.close()
    cpSync(join(at, 'live'), folder, { recursive: true })
  }
  return { folder, earlier }
}

function configOf(topic: string): Record<string, string> {
  if (topic === 'latest') return { 'cleanup.policy': 'compact' }
  return topic === 'short' ? { 'retention.bytes': '2000' } : {}
}

async function round(client: EmbeddedClient, producer: Producer, i: number): Promise<void> {
  if (i % 3 === 2) {
    await producer.send('left', ['never'])
    await producer.sendOffsets(outsider(group), [{ topic: 'left', partition: 0, offset: 1, metadata: '' }])
    await producer.end(false)
  }
  await producer.send('left', [`${i}`, `${i}+`])
  await producer.send('right', [`${i}`.padEnd(60, '.')])
  const [end] = await client.listOffsets([{ topic: 'left', partition: 0 }], 'latest')
  const offset = end?.offset ?? 0
  await producer.sendOffsets(outsider(group), [{ topic: 'left', partition: 0, offset, metadata: `tag ${i}` }])
  await producer.end(true)
  const plain = (topic: string, value: string, key: string | null): Promise<unknown> =>
    client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records: batchOf([value], key) }] })
  await plain('latest', `${i}`.padEnd(200, '.'), `key ${i % 4}`)
  await plain('plain', `${i}`, null)
  await plain('short', `${i}`.padEnd(150, '.'), null)
  if (i < 3) await plain('gone', `${i}`, null)
  const batches = [0, 1].map((partition) => ({ topic: 'fed', partition, records: batchOf([`line ${i}`]) }))
  await client.produceFed(batches, { topic: 'fed', file: 'file', lines: i + 1 })
  if (i % 4 === 1)
    await client.commitOffsets(outsider('other'), [{ topic: 'plain', partition: 0, offset: i, metadata: '' }])
}

/** All that an application could see of the folder; throws what the start of the broker throws. */
export async function contentOf(folder: string): Promise<unknown> {
  const storage = openDiskStorage(folder, { fsync: false })
  try {
    const { client } = directCluster({ ...smallSegments, storage })
    const described = await client.topics(null)
    // The successor decides what was open, as the engine does first of all.
    const successor = await Producer.start(client, 'tx')
    const records: Record<string, unknown> = {}
    for (const topic of topics) {
      for (let partition = 0; partition < partitionsOf(topic); partition++) {
        const read = await readToEnd(client, topic, { partition, from: await beginOf(client, topic, partition) })
        // Of a compacted topic the last value of each key counts: an older file may hold more of them.
        records[`${topic}:${partition}`] = read.records.map(({ key, value, timestamp }) => [key, value, timestamp])
      }
    }
    const offsets = [
      await client.committedOffsets(group, null, true),
      await client.committedOffsets('other', null, true),
    ]
    const fed = await client.feedMark('fed', 'file')
    await successor.send('left', ['more'])
    await successor.end(true)
    return { described, records, offsets, fed }
  } finally {
    storage.close()
  }
}

async function beginOf(client: EmbeddedClient, topic: string, partition: number): Promise<number> {
  return (await client.listOffsets([{ topic, partition }], 'earliest'))[0]?.offset ?? 0
}

/** Paths within the folder, in order. */
export function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort()
}

/** Gives the files their contents again, and writes only what differs. */
export function restorer(folder: string): () => void {
  const contents = new Map(filesOf(folder).map((file) => [file, readFileSync(join(folder, file))]))
  return () => {
    const present = new Set(filesOf(folder))
    for (const file of present) if (!contents.has(file)) rmSync(join(folder, file))
    for (const [file, content] of contents) {
      const path = join(folder, file)
      if (!present.has(file) || !readFileSync(path).equals(content)) writeFileSync(path, content)
    }
  }
}

/** Tells whether anything in the folder was changed; who held it last is of no account. */
export function printOf(folder: string): string {
  const hash = createHash('sha256')
  for (const file of filesOf(folder)) {
    if (file !== 'owner') hash.update(file).update(readFileSync(join(folder, file)))
  }
  return hash.digest('hex')
}

export interface Damaged {
  readonly what: string
  /** Files that were touched. */
  readonly files: readonly string[]
}

/** Damages one file; undefined where this kind of damage changes nothing about it. */
export function damage(folder: string, earlier: readonly string[], random: Random): Damaged | undefined {
  const files = filesOf(folder)
  const file = pick(files, random)
  const path = join(folder, file)
  const bytes = readFileSync(path)
  const before = Buffer.from(bytes)
  const kind = pick(['bit', 'cut', 'zeroed', 'swapped', 'missing', 'older', 'emptied'] as const, random)
  const place = Math.floor(random.next() * bytes.length)
  const done = (what: string, ...more: string[]): Damaged => ({ what: `${what} of ${file}`, files: [file, ...more] })
  switch (kind) {
    case 'bit':
      if (bytes.length === 0) return undefined
      bytes[place] = (bytes[place] as number) ^ (1 << Math.floor(random.next() * 8))
      writeFileSync(path, bytes)
      return done(`bit at ${place}`)
    case 'cut':
      writeFileSync(path, bytes.subarray(0, place))
      return bytes.length === 0 ? undefined : done(`cut at ${place}`)
    case 'zeroed': {
      const sector = place - (place % 512)
      bytes.fill(0, sector, Math.min(sector + 512, bytes.length))
      writeFileSync(path, bytes)
      return bytes.equals(before) ? undefined : done(`zeroed sector at ${sector}`)
    }
    case 'swapped': {
      const other = pick(files, random)
      const theirs = readFileSync(join(folder, other))
      if (theirs.equals(before)) return undefined
      writeFileSync(path, theirs)
      writeFileSync(join(folder, other), before)
      return done(`swap with ${other}`, other)
    }
    case 'missing':
      rmSync(path)
      return done('removal')
    case 'emptied':
      writeFileSync(path, '')
      return bytes.length === 0 ? undefined : done('emptying')
    case 'older': {
      const older = join(pick(earlier, random), file)
      if (statSync(older, { throwIfNoEntry: false }) === undefined) return undefined
      const old = readFileSync(older)
      writeFileSync(path, old)
      return old.equals(before) ? undefined : done(`older copy (${old.length} bytes for ${before.length})`)
    }
  }
}

const pick = <T>(from: readonly T[], random: Random): T => from[Math.floor(random.next() * from.length)] as T
