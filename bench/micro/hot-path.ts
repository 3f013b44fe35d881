/**
 * CPU time of the pieces every record goes through: reading a batch, routing, packing, reading what was packed, JSON,
 * a count in a store with its share of a commit, building a batch, its checksum. `node bench/micro/hot-path.ts [--save]`
 *
 * Machines differ, so figures are compared relative to a yardstick measured in the same run (parsing one record with
 * `JSON.parse`): the stored baseline is a ratio, and a piece that has become a quarter dearer in it is marked.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { laneBlockLength, newBlock } from '../../src/base/counters.ts'
import { keySlot } from '../../src/base/hash.ts'
import { systemClock } from '../../src/base/clock.ts'
import { LaneCounters } from '../../src/lanes/lane-counters.ts'
import { TransferReader, TransferWriter } from '../../src/lanes/transfer.ts'
import { serdes } from '../../src/serde/index.ts'
import type { StoreLifecycle, StoreSpec, TimestampedKeyValueStore } from '../../src/state/contract.ts'
import { MemoryBackend } from '../../src/state/backends/memory-backend.ts'
import { openStore } from '../../src/state/open-store.ts'
import { crc32c } from '../../src/broker/wire/crc32c.ts'
import { RecordBatchBuilder, RecordCursor } from '../../src/broker/wire/record-batch.ts'
import { firstTimestamp } from '../support/events.ts'

const perRound = 2000
const leastMicroseconds = 150_000
const baselineFile = join(import.meta.dirname, '..', 'baselines', 'hot-path.json')

const event = { user: 'u12345', page: 'p1234', ms: 1234, ts: firstTimestamp, ok: true }
const eventText = JSON.stringify(event)
const key = new Uint8Array(Buffer.from(event.user))
const value = new Uint8Array(Buffer.from(eventText))
const json = serdes.json<typeof event>()

function batch(): Uint8Array {
  const builder = new RecordBatchBuilder()
  for (let i = 0; i < perRound; i++) builder.append(firstTimestamp + i, key, value, [])
  return builder.finish()
}

const bytes = batch()
const cursor = new RecordCursor({ verifyChecksums: false })

function packed(): { buffer: ArrayBuffer; length: number } {
  const writer = new TransferWriter()
  cursor.reset(bytes, 0, [], 'read_committed')
  while (cursor.next()) writer.appendFrom(cursor, 0, 0, 0, 0, cursor.timestamp)
  const { length } = writer
  return { buffer: writer.take(), length }
}

const handed = packed()
let sink = 0

const spec = {
  name: 'counts',
  kind: 'key-value',
  keySerde: serdes.string,
  valueSerde: serdes.count,
  timestamped: true,
  changelog: true,
} as unknown as StoreSpec
const counts = openStore(spec, new MemoryBackend(), 0, {
  streamTime: () => firstTimestamp,
}) as unknown as TimestampedKeyValueStore<string, number> & StoreLifecycle
const users = Array.from({ length: 100_000 }, (_, i) => `u${i}`)
/** As many as the workload `map` of the benchmark has. */
const nodes = 4
const layout = { nodes, subtopologies: 1, stores: [], sourceTopics: ['in'], sinkTopics: ['out'] }
const noted = new LaneCounters(layout, newBlock(laneBlockLength(layout)), systemClock, () => undefined)
let counted = 0
let epoch = 0

/** Each handles `perRound` records. */
const pieces: Readonly<Record<string, () => void>> = {
  'yardstick: JSON.parse': () => {
    for (let i = 0; i < perRound; i++) sink += (JSON.parse(eventText) as typeof event).ms
  },
  'read a batch': () => {
    cursor.reset(bytes, 0, [], 'read_committed')
    while (cursor.next()) sink += cursor.keyStart
  },
  'route by key': () => {
    for (let i = 0; i < perRound; i++) sink += keySlot(bytes, i, i + 6) & 1
  },
  'read and pack for a lane': () => {
    sink += packed().length
  },
  'read what was packed': () => {
    const reader = new TransferReader(handed.buffer, handed.length)
    while (reader.next()) sink += reader.keyStart
  },
  'note where a lane is': () => {
    for (let i = 0; i < perRound; i++) {
      noted.at(0, i & 3, i, 0)
      for (let node = 0; node < nodes; node++) {
        noted.probe.currentNode = node
        noted.probe.counts[node] = (noted.probe.counts[node] as number) + 1
      }
      noted.probe.currentNode = -1
    }
  },
  'decode JSON': () => {
    for (let i = 0; i < perRound; i++) sink += json.deserialize(value).ms
  },
  'encode JSON': () => {
    for (let i = 0; i < perRound; i++) sink += json.serialize(event).length
  },
  'count in a store': () => {
    for (let i = 0; i < perRound; i++) {
      const user = users[(counted++ * 7919) % users.length] as string
      counts.put(user, (counts.get(user)?.value ?? 0) + 1, firstTimestamp)
    }
    counts.seal(++epoch)?.each((bytes) => {
      sink += bytes.length
    })
    counts.applied(epoch, { changelogOffset: counted, commitId: `1.${epoch}`, topicId: 't' })
  },
  'build a batch': () => {
    sink += batch().length
  },
  'checksum of a record': () => {
    sink += crc32c(bytes, 0, bytes.length)
  },
}

/** The least of several measurements: what else the machine does only ever adds. CPU time is counted in coarse ticks. */
function nanoseconds(piece: () => void): number {
  for (let i = 0; i < 50; i++) piece()
  let best = Number.POSITIVE_INFINITY
  for (let repeat = 0; repeat < 4; repeat++) {
    const before = process.threadCpuUsage()
    let rounds = 0
    let spent = 0
    while (spent < leastMicroseconds) {
      for (let i = 0; i < 10; i++) piece()
      rounds += 10
      const { user, system } = process.threadCpuUsage(before)
      spent = user + system
    }
    best = Math.min(best, (spent * 1000) / (rounds * perRound))
  }
  return best
}

const measured = Object.entries(pieces).map(([name, piece]) => ({ name, each: nanoseconds(piece) }))
const yardstick = measured[0]?.each ?? Number.NaN
const ratios = Object.fromEntries(measured.map(({ name, each }) => [name, Number((each / yardstick).toFixed(3))]))
const baseline = existsSync(baselineFile) ? (JSON.parse(readFileSync(baselineFile, 'utf8')) as typeof ratios) : {}
for (const { name, each } of measured) {
  const ratio = ratios[name] as number
  const was = baseline[name]
  const verdict = was === undefined ? '' : `baseline ${was.toFixed(3)}${ratio > was * 1.25 + 0.01 ? '  DEARER' : ''}`
  process.stdout.write(
    `${name.padEnd(26)} ${each.toFixed(0).padStart(5)} ns  ${ratio.toFixed(3)} of a parse  ${verdict}\n`,
  )
}
if (process.argv.includes('--save')) writeFileSync(baselineFile, `${JSON.stringify(ratios, null, 2)}\n`)
process.exitCode = sink === Number.NEGATIVE_INFINITY ? 1 : 0
