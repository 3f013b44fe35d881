/** Topologies and records drawn by a seed: what the test driver makes of them is what the running engine has to make. */
import { Random } from '../../../src/base/random.ts'
import {
  hopping,
  serdes,
  session,
  sliding,
  type Stream,
  type Table,
  type Topology,
  tumbling,
  type Windowed,
} from '../../../src/index.ts'

export interface DrawnRecord {
  readonly topic: string
  readonly partition: number
  readonly key: string
  readonly value: number | null
  readonly timestamp: number
}

export const partitions = 3
export const keys = ['a', 'b', 'c', 'd', 'e']
const number = serdes.json<number>()
const add = (a: number, b: number): number => a + b

const prefixOf = (seed: number): string => `t${seed}-`

/** Topics that the topology of this seed reads. */
export function inputsOf(seed: number): string[] {
  return ['left', 'right', 'table'].map((name) => prefixOf(seed) + name)
}

export function outputOf(seed: number): string {
  return `${prefixOf(seed)}out`
}

/** What a function of the topology waits for; undefined: nothing. */
type Wait = () => Promise<void> | undefined

/**
 * Whether what is read meets in the end. A table that nobody joins does not: how far it has come decides on the watermark, and with it
 * on the order of what timers tell among records that do not wait for it.
 */
export function meetsAsOne(seed: number): boolean {
  return joinsTable(new Random(seed).int(kinds))
}

const kinds = 6
const joinsTable = (kind: number): boolean => kind >= 4

/** Adds the topology of this seed. */
export function buildRandom(topology: Topology, seed: number, wait: Wait = () => undefined): void {
  const random = new Random(seed)
  const [left, right, table] = inputsOf(seed) as [string, string, string]
  // The same of all: where the running engine is told that there is no more input, its time goes on no further by it.
  const settings = { key: serdes.string, value: number, watermark: { maxOutOfOrderness: 20 } }
  const read = (topic: string): Stream<string, number> => topology.stream(topic, settings)
  const rows = topology.table<string, number>(table, settings)
  const kind = random.int(kinds)
  let stream = read(left)
  const other = transformed(read(right), random, wait)
  for (let step = 1 + random.int(3); step > 0; step--) stream = transformed(stream, random, wait)
  const within = { before: random.int(60), after: random.int(60) }
  stream = joined(kind, stream, other, rows, within)
  if (random.chance(0.5)) stream = transformed(stream, random, wait)
  // What has no partner is told behind its time. Whether it is late then depends on when which record came: so it never is.
  const behindMs = kind === 1 || kind === 2 ? Math.max(within.before, within.after) + 1 : 0
  finished(stream, random, outputOf(seed), behindMs)
}

/** The last two change keys. */
function transformed(stream: Stream<string, number>, random: Random, wait: Wait): Stream<string, number> {
  const by = 2 + random.int(3)
  switch (random.int(6)) {
    case 0:
      return stream.filter((value) => value % by !== 0)
    case 1:
      return stream.mapValues((value) => wait()?.then(() => value + by) ?? value + by)
    case 2:
      return stream.mapValues((value) => value * by)
    case 3:
      return stream.flatMapValues((value) => [value, -value])
    case 4:
      return stream.map((value, key) => [keys[Math.abs(value) % by] ?? key, value])
    default:
      return stream.selectKey((value) => keys[Math.abs(value) % keys.length] as string)
  }
}

function joined(
  kind: number,
  stream: Stream<string, number>,
  other: Stream<string, number>,
  rows: Table<string, number>,
  within: { readonly before: number; readonly after: number },
): Stream<string, number> {
  const both = (a: number | null, b: number | null): number => (a ?? 1) * 1000 + (b ?? 1)
  switch (kind) {
    case 0:
      return stream.join(other, both, { within })
    case 1:
      return stream.leftJoin(other, both, { within })
    case 2:
      return stream.outerJoin(other, both, { within })
    case 3:
      return stream.merge(other)
    case 4:
      return stream.join(rows, both)
    default:
      return stream.merge(other).leftJoin(rows, both)
  }
}

function finished(stream: Stream<string, number>, random: Random, out: string, behindMs: number): void {
  const grouped = random.chance(0.5)
    ? stream.groupByKey()
    : stream.groupBy((value) => keys[Math.abs(value) % 3] as string)
  const emit = random.chance(0.5) ? ('on-close' as const) : ('on-update' as const)
  const grace = behindMs + random.int(50)
  const size = 20 + random.int(60)
  switch (random.int(7)) {
    case 0:
    case 1:
      // Not as they are: between keys that meet in a topic lanes keep no order.
      grouped.count().toStream().to(out)
      return
    case 2:
      grouped.windowedBy(tumbling(size, { grace }), { emit }).reduce(add).toStream().to(out)
      return
    case 3:
      grouped
        .windowedBy(hopping(size, 10, { grace }), { emit })
        .count()
        .toStream()
        .to(out)
      return
    case 4:
      grouped.windowedBy(session(10, { grace }), { emit }).reduce(add).toStream().to(out)
      return
    case 5:
      grouped.windowedBy(sliding(size, { grace })).reduce(add).suppress({ until: 'window-closes' }).toStream().to(out)
      return
    default:
      windowsOfWindows(grouped.windowedBy(tumbling(20, { grace }), { emit: 'on-close' }).reduce(add), 20 + grace, out)
  }
}

function windowsOfWindows(table: Table<Windowed<string>, number>, behindMs: number, out: string): void {
  table
    .toStream()
    .selectKey((_sum, window) => window.key)
    .groupByKey()
    .windowedBy(tumbling(40, { grace: behindMs + 1 }), { emit: 'on-close' })
    .reduce(add)
    .toStream()
    .to(out)
}

/** Records of a seed, some of them late; each partition of each topic ends with one far ahead of all. */
export function recordsOf(seed: number): DrawnRecord[] {
  const random = new Random(seed + 1_000_003)
  const records: DrawnRecord[] = []
  for (const topic of inputsOf(seed)) {
    const isTable = topic.endsWith('table')
    const count = 5 + random.int(40)
    for (let i = 0, time = 100; i < count; i++) {
      time += random.int(20)
      const timestamp = Math.max(0, isTable ? time : time - random.int(20))
      const value = isTable && random.chance(0.1) ? null : 1 + random.int(50)
      const key = random.pick(keys)
      records.push({ topic, partition: keys.indexOf(key) % partitions, key, value, timestamp })
    }
    for (let partition = 0; partition < partitions; partition++)
      records.push({ topic, partition, key: `end${partition}`, value: 7, timestamp: 1_000_000 })
  }
  return records
}
