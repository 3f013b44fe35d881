/** A random program: the nodes of a scenario, what only running engines have, and the input. */
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import type { Expr, Json } from '../../conformance/expr.ts'
import type { ScenarioNode } from '../../conformance/scenario.ts'

/** Which results of a topic are the same in every run. */
export type Promised =
  /** Each key's results, in their order. */
  | 'sequence'
  /** Each key's results, in any order. */
  | 'set'
  /** Each key's last result. */
  | 'last'

export interface ProgramNode extends ScenarioNode {
  /** Streams and tables: how many records a record may lie behind. */
  readonly disorder?: number
  /** The function answers after up to so many milliseconds. */
  readonly slow?: number
  /** The function is asynchronous: of some records it answers, or fails, after up to so many milliseconds. */
  readonly late?: number
  /** Of such a function: how many calls are out at once, and whether those that fail are made again. */
  readonly calls?: { readonly concurrency?: number; readonly again: boolean }
  /** Processors: on which records they fail; `after`: once they have written to their store. */
  readonly fails?: { readonly when: Expr; readonly after: boolean }
  /** Sinks: the headers of each result are the same in every run. */
  readonly comparesHeaders?: boolean
  /** Sinks: what can be compared. */
  readonly promised?: Promised
}

export interface TopicSpec {
  readonly topic: string
  readonly kind: 'stream' | 'table' | 'global'
  readonly keys: number
  /** Part of all records, beside those of the other topics. */
  readonly weight: number
}

export interface Program {
  readonly seed: number
  readonly nodes: readonly ProgramNode[]
  readonly topics: readonly TopicSpec[]
  readonly records: number
  readonly partitions: number
  /** How many records a record may lie behind in its partition. */
  readonly disorder: number
  /** Each record of the first topic comes one millisecond behind one of the second, which has the key it names (`g`). */
  readonly paired?: boolean
  /** Partitions end where their records do, each at another time: no last record closes what is open. */
  readonly endsOpen?: boolean
  /** One of so many values of streams and tables cannot be decoded. */
  readonly undecodable?: number
  /** One of so many values of streams is null. */
  readonly nulls?: number
  /** Most records of the input have a header of their own. */
  readonly headers?: boolean
  /** Streams of which some are further out of order than others, by topic; the rest is as `disorder` says. */
  readonly disorders?: Readonly<Record<string, number>>
  /** Streams whose records have their time in their values, and another one of their own. */
  readonly timed?: readonly string[]
  /** What becomes of them, and of records on which a function fails. */
  readonly policy?: 'skip' | 'dead-letter'
}

export interface Input {
  readonly topic: string
  readonly partition: number
  readonly key: string
  readonly value: Json
  readonly timestamp: number
  readonly isUndecodable?: boolean
  /** The record's own timestamp, where that is not its time. */
  readonly writtenAt?: number
  readonly headers?: ReadonlyArray<readonly [name: string, value: string]>
}

export const headerName = 'made-of'

export const firstTime = 1_700_000_000_000
/** Between two records. */
export const stepMs = 1000

/** Event time may fall back by so much. */
export const outOfOrdernessMs = (disorder: number): number => (disorder + 1) * stepMs

export const disorderOf = ({ disorder, disorders }: Program, topic: string): number => disorders?.[topic] ?? disorder

/** Small numbers far more often than large ones. */
const skewed = (random: Random, bound: number): number => Math.floor(bound * random.next() ** 3)

const partitionOf = (key: string, partitions: number): number => keySlot(Buffer.from(key)) % partitions

/** A key of its own for each partition. */
function endKey(partition: number, partitions: number): string {
  for (let n = 0; ; n++) if (partitionOf(`end-${n}`, partitions) === partition) return `end-${n}`
}

function pair({ topics, partitions }: Program, n: number, key: string, value: { i: number; g: string }): Input[] {
  const [first = '', second = ''] = topics.map(({ topic }) => topic)
  const timestamp = firstTime + n * stepMs
  const behind = { topic: first, partition: partitionOf(key, partitions), key, value, timestamp: timestamp + 1 }
  return [{ topic: second, partition: partitionOf(value.g, partitions), key: value.g, value, timestamp }, behind]
}

const passing = new Set(['merge', 'groupByKey', 'repartition', 'to', 'toTable', 'peek'])

/** A value that nothing looks at is not decoded: it is counted, or passed on, as it came. */
function isDecoded({ nodes, topics }: Program, topic: string): boolean {
  const kind = topics.find((each) => each.topic === topic)?.kind
  if (kind !== 'stream') return kind === 'table'
  const sources = nodes.flatMap(({ id, op, topic: of }) => (op === 'stream' && of === topic ? [id] : []))
  return nodes.some(({ op, from }) => !passing.has(op) && [from ?? []].flat().some((id) => sources.includes(id)))
}

/** Drawn apart: the other records are what they would be without. */
function spoilt(program: Program, inputs: readonly Input[]): Input[] {
  const { seed, undecodable = 0, nulls = 0 } = program
  const random = new Random(seed ^ 0xdec0de)
  const streams = new Set(program.topics.filter(({ kind }) => kind === 'stream').map(({ topic }) => topic))
  const bearing = (input: Input): Input => {
    const { i } = { i: 0, ...(input.value as object | null) }
    const isBare = !program.headers || input.value === null || i % 5 === 0
    return isBare ? input : { ...input, headers: [[headerName, `${input.topic} ${i}`]] }
  }
  const isDecodedOf = new Map(program.topics.map(({ topic }) => [topic, isDecoded(program, topic)]))
  return inputs.map(bearing).map((input) => {
    if (nulls > 0 && streams.has(input.topic) && random.int(nulls) === 0) return { ...input, value: null }
    const isSpoilt =
      undecodable > 0 && random.int(undecodable) === 0 && input.value !== null && isDecodedOf.get(input.topic) === true
    return isSpoilt ? { ...input, value: 'no JSON', isUndecodable: true } : input
  })
}

function timed(program: Program, input: Input): Input {
  const { topic, value, timestamp } = input
  if (!program.timed?.includes(topic) || typeof value !== 'object' || value === null) return input
  return { ...input, value: { ...value, t: timestamp }, writtenAt: firstTime + (timestamp % 7919) }
}

/** All records, in the order in which they are written; each partition ends with one that closes what is open. */
export function inputOf(program: Program): Input[] {
  const { seed, topics, records, partitions, paired = false, endsOpen = false } = program
  const random = new Random(seed ^ 0x5eed)
  const weights = topics.flatMap((spec) => new Array<TopicSpec>(spec.weight).fill(spec))
  let inputs: Input[] = []
  for (let n = 0; n < records; n++) {
    const { topic, kind, keys } = random.pick(weights)
    const key = `k${skewed(random, keys)}`
    const fields = { i: n, a: random.int(1000), g: `k${skewed(random, 12)}`, h: random.int(7) }
    const value = kind !== 'stream' && random.chance(0.05) ? null : fields
    // No two records have one time, whatever their disorder.
    const timestamp = firstTime + (n + random.int(disorderOf(program, topic) + 1)) * stepMs + (n % stepMs)
    if (paired) inputs.push(...pair(program, n, key, fields))
    else inputs.push({ topic, partition: partitionOf(key, partitions), key, value, timestamp })
  }
  inputs = spoilt(program, inputs)
  if (endsOpen) return inputs.map((input) => timed(program, input))
  let flush = firstTime + (records + 1_000_000) * stepMs
  for (const { topic, kind } of topics) {
    for (let partition = 0; partition < partitions && kind !== 'global'; partition++) {
      const value = { i: -1, a: 0, g: 'end', h: 0 }
      inputs.push({ topic, partition, key: endKey(partition, partitions), value, timestamp: flush++ })
    }
  }
  return inputs.map((input) => timed(program, input))
}

export interface Dispatched {
  readonly input: Input
  /** Carried by the record, itself included. */
  readonly watermark: number
  /** In force before it was dispatched: everything up to here has fired. */
  readonly before: number
}

interface Waiting {
  readonly records: Input[]
  /** Place of its head. */
  at: number
  watermark: number
  /** By how much event time lies behind its records. */
  readonly margin: number
}

/** A partition whose head waits behind the oldest counts with what that head will bring. */
function leastOf(all: readonly Waiting[], oldest: Waiting): number {
  let least = oldest.watermark
  for (const each of all) {
    const head = each.records[each.at]?.timestamp ?? Number.NEGATIVE_INFINITY
    if (each !== oldest) least = Math.min(least, Math.max(each.watermark, head - each.margin))
  }
  return least
}

/** The order in which records are taken: always the oldest head of all partitions; and the watermark each one carries. */
export function dispatchOrder(program: Program): Dispatched[] {
  const globals = new Set(program.topics.filter(({ kind }) => kind === 'global').map(({ topic }) => topic))
  const partitions = new Map<string, Waiting>()
  const result: Dispatched[] = []
  const read = new Set(program.nodes.flatMap(({ op, topic }) => (op === 'to' ? [] : [topic])))
  for (const input of inputOf(program)) {
    if (!read.has(input.topic)) continue
    if (globals.has(input.topic)) {
      result.push({ input, watermark: Number.NEGATIVE_INFINITY, before: Number.NEGATIVE_INFINITY })
      continue
    }
    const id = `${input.topic}:${input.partition}`
    const margin = outOfOrdernessMs(disorderOf(program, input.topic))
    const partition = partitions.get(id) ?? { records: [], at: 0, watermark: Number.NEGATIVE_INFINITY, margin }
    partitions.set(id, partition)
    partition.records.push(input)
  }
  const all = [...partitions.values()]
  let watermark = Number.NEGATIVE_INFINITY
  for (;;) {
    let oldest: (typeof all)[number] | undefined
    for (const each of all) {
      const head = each.records[each.at]
      if (head && head.timestamp < (oldest?.records[oldest.at]?.timestamp ?? Number.POSITIVE_INFINITY)) oldest = each
    }
    const input = oldest?.records[oldest.at]
    if (oldest === undefined || input === undefined) return result
    const before = Math.max(watermark, leastOf(all, oldest))
    oldest.watermark = Math.max(oldest.watermark, input.timestamp - oldest.margin)
    watermark = Math.max(before, leastOf(all, oldest))
    oldest.at++
    result.push({ input, watermark, before })
  }
}
