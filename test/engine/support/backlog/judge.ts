/** What must lie in the outputs, computed from the input up to the committed offsets, and whether it does. */
import { keySlot } from '../../../../src/base/hash.ts'
import type { BrokerPort } from '../../../../src/broker/port.ts'
import { byKey, consume, type In, produce } from '../engine.ts'
import { first, type Seen, seenOf } from './seen.ts'

const partitions = 4
const atATime = 5000

export interface Backlog {
  readonly key: string
  readonly n: number
  readonly ms: number
}

export async function fill(broker: BrokerPort, name: string, backlog: readonly Backlog[]): Promise<void> {
  const topics = ['calls', 'seen', 'groups'].map((of) => ({ topic: `${name}-${of}`, partitions }))
  await broker.createTopics(topics)
  for (let from = 0; from < backlog.length; from += atATime) {
    const records = backlog
      .slice(from, from + atATime)
      .map(({ key, n, ms }): In => ({ key, value: { n, ms }, timestamp: 1_700_000_000_000 + n }))
    await produce(broker, `${name}-calls`, records, partitions)
  }
}

async function committedOffsets(broker: BrokerPort, name: string): Promise<number[]> {
  const asked = Array.from({ length: partitions }, (_, partition) => ({ topic: `${name}-calls`, partition }))
  const offsets = new Array<number>(partitions).fill(0)
  for (const { partition, offset } of await broker.committedOffsets(name, asked, true))
    offsets[partition] = Math.max(0, offset)
  return offsets
}

/** Where the outputs are not those of the records that are committed; how many these are. */
export async function judge(
  broker: BrokerPort,
  name: string,
  backlog: readonly Backlog[],
): Promise<{ readonly committed: number; readonly faults: readonly string[] }> {
  const offsets = await committedOffsets(broker, name)
  const next = new Array<number>(partitions).fill(0)
  const expected = new Map<string, Seen[]>()
  const groups = new Map<string, { count: number; sum: number }>()
  let committed = 0
  for (const { key, n } of backlog) {
    const partition = keySlot(Buffer.from(key)) % partitions
    if (next[partition]! >= offsets[partition]!) continue
    next[partition]!++
    committed++
    const list = expected.get(key) ?? []
    expected.set(key, list)
    list.push(seenOf(list.at(-1) ?? first, n))
    const group = groups.get(`g${n % 5}`) ?? { count: 0, sum: 0 }
    groups.set(`g${n % 5}`, { count: group.count + 1, sum: group.sum + n })
  }
  const faults: string[] = []
  const seen = byKey<Seen>(await consume(broker, `${name}-seen`))
  for (const key of new Set([...expected.keys(), ...Object.keys(seen)])) {
    const fault = different(expected.get(key) ?? [], seen[key] ?? [])
    if (fault !== undefined) faults.push(`${key}: ${fault}`)
  }
  const summed = byKey<Seen>(await consume(broker, `${name}-groups`))
  for (const [group, { count, sum }] of groups) {
    const list = summed[group] ?? []
    const last = list.at(-1)
    const counts = list.every((seen, i) => seen.count === i + 1)
    if (!counts || last?.count !== count || last.sum !== sum)
      faults.push(`${group}: ${list.length} updates, the last ${JSON.stringify(last)}, and not ${count} of ${sum}`)
  }
  return { committed, faults }
}

function different(expected: readonly Seen[], got: readonly Seen[]): string | undefined {
  const at = expected.findIndex((seen, i) => JSON.stringify(seen) !== JSON.stringify(got[i]))
  if (at >= 0) return `update ${at} is ${JSON.stringify(got[at])}, and not ${JSON.stringify(expected[at])}`
  return got.length > expected.length ? `${got.length} updates, and not ${expected.length}` : undefined
}
