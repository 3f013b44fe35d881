/** What must hold of a finished run: judged from the broker's committed records and the durable stores alone. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { directClient } from '../../src/broker/embedded/direct-client.ts'
import { keySlot } from '../../src/base/hash.ts'
import { changelogTopic, restoreEntry } from '../../src/state/rows/changelog.ts'
import { endKey, endsIn } from '../../src/engine/commit/changelog-ends.ts'
import { decodeTag } from '../../src/engine/commit/tag.ts'
import type { StoreSpec } from '../../src/state/contract.ts'
import { segmentMs, segmentPrefix, segmentStart, windowSuffix } from '../../src/state/rows/layout.ts'
import { RecordCursor } from '../../src/broker/wire/record-batch.ts'
import { DiskBackend, type DurableBackends } from './durable-backends.ts'
import type { Remains } from './world.ts'
import { graceMs, type Input, outOfOrdernessMs, totalOf, windowMs } from './workload.ts'

interface Committed {
  readonly key: Buffer
  readonly value: Buffer | null
  readonly timestamp: number
  readonly partition: number
  readonly offset: number
}

export interface CheckedRun {
  readonly cluster: EmbeddedCluster
  readonly inputs: readonly Input[]
  readonly stores: DurableBackends
  /** What crashes left on the disk on the way. */
  readonly remains?: readonly Remains[]
  readonly specs: ReadonlyMap<string, StoreSpec>
  /** Tables tell each changed row once per commit. */
  readonly folds?: boolean
  readonly violate: (what: string) => void
}

export async function checkRun(run: CheckedRun): Promise<void> {
  await checkLists(run)
  await checkEcho(run)
  await checkSums(run)
  await checkWindows(run)
  await checkFinals(run)
  if (run.folds) await checkTotals(run)
  await checkForgotten(run)
  await checkTold(run)
}

/** What holds of every run, whatever is told more than once. */
export async function checkTold(run: CheckedRun): Promise<void> {
  await checkPlaces(run)
  await checkOffsets(run)
  await checkStores(run)
  await checkRemains(run)
}

export async function committed(cluster: EmbeddedCluster, topic: string): Promise<Committed[]> {
  const client = directClient(cluster)
  const [info] = await client.topics([topic])
  const result: Committed[] = []
  for (let partition = 0; partition < (info?.partitions ?? 0); partition++) {
    const [end] = await client.listOffsets([{ topic, partition }], 'stable')
    let offset = 0
    while (offset < (end?.offset ?? 0)) {
      const [fetched] = await client.fetch({
        partitions: [{ topic, partition, offset, maxBytes: 1 << 24 }],
        maxWaitMs: 0,
        maxBytes: 1 << 24,
        isolation: 'read_committed',
      })
      if (!fetched || fetched.records.length === 0) break
      const cursor = new RecordCursor()
      cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
      while (cursor.next()) {
        const { bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp, offset: at } = cursor
        result.push({
          key: Buffer.from(bytes.slice(Math.max(0, keyStart), keyEnd)),
          value: valueStart < 0 ? null : Buffer.from(bytes.slice(valueStart, valueEnd)),
          timestamp,
          partition,
          offset: at,
        })
      }
      offset = Math.max(offset + 1, cursor.position)
    }
  }
  return result
}

/** Commits tell of each changelog where it ends: no earlier than its last committed record, whichever process wrote that. */
export async function checkEnds(
  cluster: EmbeddedCluster,
  stores: Iterable<StoreSpec>,
  violate: (what: string) => void,
): Promise<void> {
  const client = directClient(cluster)
  const ends = endsIn(await client.committedOffsets('sim', null, true))
  for (const spec of stores) {
    const topic = changelogTopic('sim', spec)
    const [info] = await client.topics([topic])
    for (const [id, records] of byKey(await committed(cluster, topic), (each) => String(each.partition))) {
      const partition = Number(id)
      const last = Math.max(...records.map(({ offset }) => offset))
      const [end] = await client.listOffsets([{ topic, partition }], 'latest')
      const told = ends.get(endKey(info?.topicId ?? '', partition))
      // A start that has found it there counts the mark behind the transaction.
      if (told === undefined || told <= last || told > (end?.offset ?? 0))
        violate(`${topic}:${partition} has committed records up to ${last}, and commits tell ${told}`)
    }
  }
}

export function byKey<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(key(item))
    if (group) group.push(item)
    else groups.set(key(item), [item])
  }
  return groups
}

function compareLists(run: CheckedRun, what: string, expected: readonly string[], actual: readonly string[]): void {
  const n = Math.max(expected.length, actual.length)
  for (let i = 0; i < n; i++) {
    if (expected[i] === actual[i]) continue
    run.violate(
      `${what}: at ${i} of ${expected.length} expected ${expected[i] ?? 'nothing'}, found ${actual[i] ?? 'nothing'}`,
    )
    return
  }
}

/** Of a table's updates some are told, in their order, and the newest at the end; without folding all of them. */
function compareUpdates(run: CheckedRun, what: string, updates: readonly string[], told: readonly string[]): void {
  if (!run.folds) {
    compareLists(run, what, updates, told)
    return
  }
  let at = -1
  for (const each of told) {
    at = updates.indexOf(each, at + 1)
    if (at >= 0) continue
    run.violate(`${what}: ${each} is told, which is no update behind the one before it`)
    return
  }
  if (told.at(-1) !== updates.at(-1)) run.violate(`${what}: the last one told is ${told.at(-1)}, not ${updates.at(-1)}`)
}

/** Every prefix of every key's values, once and in order. */
async function checkLists(run: CheckedRun): Promise<void> {
  const outputs = byKey(await committed(run.cluster, 'seen-out'), (r) => r.key.toString())
  for (const [key, inputs] of byKey(run.inputs, (i) => i.key)) {
    const values = inputs.map((i) => i.value)
    const expected = values.map((_, i) => JSON.stringify(values.slice(0, i + 1)))
    const actual = (outputs.get(key) ?? []).map((r) => String(r.value))
    compareUpdates(run, `seen-out of ${key}`, expected, actual)
  }
}

async function checkEcho(run: CheckedRun): Promise<void> {
  const outputs = byKey(await committed(run.cluster, 'echo-out'), (r) => r.key.toString())
  for (const [key, inputs] of byKey(run.inputs, (i) => i.key)) {
    const expected = inputs.map((i) => JSON.stringify(i.value))
    compareLists(
      run,
      `echo-out of ${key}`,
      expected,
      (outputs.get(key) ?? []).map((r) => String(r.value)),
    )
  }
}

/** The steps between the sums of a group are its inputs, in whatever order the lanes brought them. */
async function checkSums(run: CheckedRun): Promise<void> {
  const outputs = byKey(await committed(run.cluster, 'sums-out'), (r) => r.key.toString())
  for (const [group, inputs] of byKey(run.inputs, (i) => `g${i.value % 3}`)) {
    let before = 0
    const steps = (outputs.get(group) ?? []).map((r) => {
      const sum = Number(r.value)
      const step = sum - before
      before = sum
      return step
    })
    if (run.folds) {
      const sum = inputs.reduce((total, { value }) => total + value, 0)
      if (before !== sum || steps.some((step) => step < 0))
        run.violate(`sums-out of ${group}: the last one is ${before} of ${sum}, in steps of ${steps}`)
      continue
    }
    const sorted = (list: number[]): string[] => list.sort((a, b) => a - b).map(String)
    compareLists(run, `sums-out of ${group}`, sorted(inputs.map((i) => i.value)), sorted(steps))
  }
}

/** No record is late: disorder is within what the source allows, and no fault may change that. */
async function checkWindows(run: CheckedRun): Promise<void> {
  const window = (time: number): number => Math.floor(time / windowMs) * windowMs
  const outputs = byKey(await committed(run.cluster, 'windows-out'), windowId)
  for (const [id, inputs] of byKey(run.inputs, (i) => `${i.key}@${window(i.timestamp)}`)) {
    const expected = inputs.map((_, i) => String(i + 1))
    const actual = (outputs.get(id) ?? []).map((r) => String(r.value))
    compareUpdates(run, `windows-out of ${id}`, expected, actual)
  }
}

/** A table of a table: nothing is counted twice or left out, whatever was told in between. */
async function checkTotals(run: CheckedRun): Promise<void> {
  const outputs = byKey(await committed(run.cluster, 'totals-out'), (r) => r.key.toString())
  for (const [group, inputs] of byKey(run.inputs, (i) => totalOf(i.key))) {
    const last = outputs.get(group)?.at(-1)?.value
    if (String(last) !== String(inputs.length)) run.violate(`totals-out of ${group}: ${last} of ${inputs.length}`)
  }
}

/** At most one result a window, and it is the whole one; windows long past have theirs. */
async function checkFinals(run: CheckedRun): Promise<void> {
  const start = (time: number): number => Math.floor(time / windowMs) * windowMs
  const outputs = byKey(await committed(run.cluster, 'finals-out'), windowId)
  const newest = Math.max(...run.inputs.map((i) => i.timestamp))
  for (const [id, inputs] of byKey(run.inputs, (i) => `g${i.value % 3}@${start(i.timestamp)}`)) {
    const actual = (outputs.get(id) ?? []).map((r) => String(r.value))
    const closed = Number(id.slice(id.indexOf('@') + 1)) + windowMs + graceMs <= newest - outOfOrdernessMs
    if (closed || actual.length > 0) compareLists(run, `finals-out of ${id}`, [String(inputs.length)], actual)
  }
}

export function windowId(record: Committed): string {
  const { key } = record
  return `${key.subarray(0, key.length - 8)}@${key.readBigInt64BE(key.length - 8)}`
}

/** Each output lies where its key belongs, windows where the key inside of them does: whoever joins them relies on that. */
async function checkPlaces(run: CheckedRun): Promise<void> {
  for (const [topic, suffix] of places) {
    const count = run.cluster.topics([topic])[0]?.partitions ?? 1
    for (const { key, partition } of await committed(run.cluster, topic)) {
      const belongs = keySlot(key, 0, key.length - suffix) % count
      if (partition === belongs) continue
      run.violate(
        `${topic}: a record of ${key} lies in partition ${partition} of ${count}, and belongs into ${belongs}`,
      )
      return
    }
  }
}

/** Topics, and how much of their keys is the window. */
const places: ReadonlyArray<readonly [topic: string, suffix: number]> = [
  ['seen-out', 0],
  ['sums-out', 0],
  ['finals-out', 8],
  ['windows-out', 8],
]

async function checkOffsets(run: CheckedRun): Promise<void> {
  const client = directClient(run.cluster)
  for (const { topic, partition, offset } of await client.committedOffsets('sim', null, true)) {
    // A topic between sub-topologies ends in markers of its own transactions, behind what is committed of it.
    if (topic !== 'in') continue
    const [end] = await client.listOffsets([{ topic, partition }], 'stable')
    const expected = end?.offset ?? 0
    // A partition that never had a record has no offset to commit.
    if (offset !== expected && expected > 0)
      run.violate(`in:${partition} is committed at ${offset}, its end is ${expected}`)
  }
}

/** A store is the fold of its changelog. */
async function checkStores(run: CheckedRun): Promise<void> {
  for (const [name, spec] of run.specs) {
    const fold = new Map<string, string>()
    for (const { key, value, timestamp, partition } of await committed(run.cluster, changelogTopic('sim', spec))) {
      const [at, row] = restoreEntry(spec, { key, value, timestamp })
      const id = `${partition}/${Buffer.from(at).toString('hex')}`
      if (row === null) fold.delete(id)
      else fold.set(id, Buffer.from(row).toString('hex'))
    }
    const actual = new Map<string, string>()
    for (const [id, backend] of run.stores.entries()) {
      const slash = id.lastIndexOf('/')
      if (id.slice(0, slash) !== name) continue
      for (const [key, value] of backend.range(undefined, undefined)) {
        actual.set(`${id.slice(slash + 1)}/${Buffer.from(key).toString('hex')}`, Buffer.from(value).toString('hex'))
      }
    }
    const lines = (map: Map<string, string>): string[] => [...map].map(([k, v]) => `${k}=${v}`).sort()
    compareLists(run, `store ${name} against its changelog`, lines(fold), lines(actual))
  }
}

/**
 * What is left of windows follows from the input and from how far event time has come, to the last row: no matter where
 * commits fell, and what was killed, aborted or lost on the way.
 */
async function checkForgotten(run: CheckedRun): Promise<void> {
  const spec = run.specs.get('windows')
  if (spec === undefined) return
  let watermark = Number.NEGATIVE_INFINITY
  for (const { metadata } of await directClient(run.cluster).committedOffsets('sim', null, true)) {
    watermark = Math.max(watermark, decodeTag(metadata)?.watermark ?? Number.NEGATIVE_INFINITY)
  }
  const changelog = await committed(run.cluster, changelogTopic('sim', spec))
  const partitions = new Map(changelog.map(({ key, partition }) => [String(key.subarray(0, -windowSuffix)), partition]))
  const interval = segmentMs(spec)
  const startOf = ({ timestamp }: Input): number => timestamp - (timestamp % windowMs)
  const expected: string[] = []
  // A key of which no changelog tells had windows that came and went within one epoch: where is not known.
  const told = run.inputs.filter(({ key }) => partitions.has(key))
  for (const [partition, inputs] of byKey(told, ({ key }) => String(partitions.get(key)))) {
    const backend = new Map(run.stores.entries()).get(`windows/${partition}`)
    const newest = Math.max(...inputs.map(startOf))
    const horizon = Math.min(newest, watermark) - (spec.retentionMs ?? Number.POSITIVE_INFINITY)
    // On a disk whole segments go.
    const kept = backend instanceof DiskBackend ? segmentStart(Math.max(0, horizon + 1), interval) : horizon + 1
    const ids = new Set(inputs.filter((input) => startOf(input) >= kept).map((i) => `${i.key}@${startOf(i)}`))
    for (const id of ids) expected.push(`${partition}/${id}`)
  }
  const actual: string[] = []
  for (const [id, backend] of run.stores.entries()) {
    if (!id.startsWith('windows/')) continue
    for (const [row] of backend.range(undefined, undefined)) {
      const key = Buffer.from(row)
      actual.push(
        `${id.slice(8)}/${key.subarray(segmentPrefix, -windowSuffix)}@${key.readBigInt64BE(key.length - windowSuffix)}`,
      )
    }
  }
  compareLists(run, 'windows that are left', expected.sort(), actual.sort())
}

/**
 * What a crash leaves of a store is the fold of its changelog up to its checkpoint; rows that were written on the way
 * to the next one may be as new as it says, and no newer. Nothing is there that was never committed.
 */
async function checkRemains(run: CheckedRun): Promise<void> {
  const changelogs = new Map<string, Committed[]>()
  for (const { id, backend } of run.remains ?? []) {
    const [name = '', partition = ''] = id.split('/')
    const spec = run.specs.get(name)
    const checkpoint = backend.checkpoint()
    if (spec === undefined || checkpoint === undefined) continue
    const changelog = changelogs.get(name) ?? (await committed(run.cluster, changelogTopic('sim', spec)))
    changelogs.set(name, changelog)
    const { changelogOffset, ahead = changelogOffset } = checkpoint
    /** What each key may hold: what it held at the checkpoint, and all that came after it. */
    const allowed = new Map<string, Array<string | null>>()
    for (const record of changelog) {
      if (record.partition !== Number(partition) || record.offset >= ahead) continue
      const [at, row] = restoreEntry(spec, record)
      const key = Buffer.from(at).toString('hex')
      const value = row && Buffer.from(row).toString('hex')
      const before = record.offset < changelogOffset ? [] : (allowed.get(key) ?? [null])
      allowed.set(key, [...before, value])
    }
    const found = new Map<string, string>()
    for (const [key, value] of backend.range()) {
      found.set(Buffer.from(key).toString('hex'), Buffer.from(value).toString('hex'))
    }
    for (const key of new Set([...allowed.keys(), ...found.keys()])) {
      const value = found.get(key) ?? null
      if ((allowed.get(key) ?? [null]).includes(value)) continue
      run.violate(`the remains of ${id} at ${JSON.stringify(checkpoint)}: the row ${key} is ${value}`)
      return
    }
  }
}
