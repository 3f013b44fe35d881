/**
 * Puts dead letters back. What a letter was made of is written again to the topic and partition that it came from, and
 * in the same transaction a note that it was: a key `partition:offset@topic` of the letter, in a compacted topic of its own.
 * Whoever begins takes the one transactional id of the topic first, which several applications may share. That ends what a predecessor had open, and only then the notes
 * are read, so that each is there or will never be. No letter is put back twice, whatever breaks in between.
 */
import { partitionKey } from '../../base/ids.ts'
import type { BrokerPort } from '../../broker/port.ts'
import { RecordBatchBuilder } from '../../broker/wire/record-batch.ts'
import { Producer, type ToProduce } from '../../engine/commit/producer.ts'
import type { DeadLetterFilter, RedriveHow, Redriven } from '../../http/data-seam.ts'
import { fits, letterId, notesOf } from './letter.ts'
import { recordsAt, scan, type ScannedRecord, type Span, spansOf } from './topic-scan.ts'

const transactionTimeoutMs = 60_000
/** Records are read, batched and sent within one call: it takes memory by these, not by how many letters there are. */
const mostBytes = 8 * 1024 * 1024
const batchBytes = 512 * 1024

export interface RedriveOptions {
  readonly broker: BrokerPort
  readonly deadLetterTopic: string
  /** Whether the application reads this topic: nothing is written to any other. */
  readonly isSource: (topic: string) => boolean
  readonly now: () => number
  /** Called before anything is written; where it throws, nothing is. */
  readonly writing?: () => void
}

/** The record that a letter is of. */
interface Source {
  readonly topic: string
  readonly partition: number
  readonly offset: number
  /** Its topic as it was then; undefined in letters of before that was noted. */
  readonly topicId: string | undefined
}

/** Of a letter it is all that is kept. */
type Place = Pick<ScannedRecord, 'partition' | 'offset'>

interface Chosen {
  readonly letter: Place
  readonly source: Source
}

const placeOf = ({ topic, partition, offset }: Omit<Source, 'topicId'>): string =>
  `${partitionKey(topic, partition)}:${offset}`

const recordId = (source: Source): string =>
  source.topicId === undefined ? placeOf(source) : `${placeOf(source)}@${source.topicId}`

/** Incarnations of these topics, as they are now. */
async function topicIdsOf(broker: BrokerPort, sources: readonly Chosen[]): Promise<Map<string, string>> {
  const names = new Set(sources.map(({ source }) => source.topic))
  if (names.size === 0) return new Map()
  return new Map((await broker.topics([...names])).map(({ topic, topicId }) => [topic, topicId]))
}

export function notesTopicOf(deadLetterTopic: string): string {
  return `${deadLetterTopic}-redriven`
}

/** What was put back: letters by `keyOf`, and the records that they are of. */
export class PutBack {
  readonly #topicId: string
  readonly #letters = new Set<string>()
  readonly #records = new Set<string>()

  /** `topicId`: of the topic of dead letters, as it is now. */
  constructor(topicId: string) {
    this.#topicId = topicId
  }

  /** The topic of dead letters, too, may be deleted and made anew. */
  keyOf(letter: Place): string {
    return `${letterId(letter)}@${this.#topicId}`
  }

  add(letter: string, record: string): void {
    this.#letters.add(letter)
    this.#records.add(record)
  }

  /** A record that failed at several operators has as many letters; to put back one of them puts the record back. */
  has(letter: Place, source: Source | null): boolean {
    return (
      this.#letters.has(this.keyOf(letter)) ||
      // Notes of earlier builds.
      this.#letters.has(letterId(letter)) ||
      (source !== null && this.#records.has(recordId(source)))
    )
  }
}

export async function putBack(broker: BrokerPort, deadLetterTopic: string): Promise<PutBack> {
  const topic = notesTopicOf(deadLetterTopic)
  const [letters] = await broker.topics([deadLetterTopic])
  const done = new PutBack(letters?.topicId ?? '')
  await scan(broker, topic, (await spansOf(broker, topic)) ?? [], ({ key, value }) => {
    if (key !== null) done.add(Buffer.from(key).toString(), Buffer.from(value ?? '').toString())
    return true
  })
  return done
}

export async function redrive(
  options: RedriveOptions,
  filter: DeadLetterFilter,
  { dryRun, limit, ends }: RedriveHow,
): Promise<Redriven> {
  const { broker, deadLetterTopic } = options
  const all = await spansOf(broker, deadLetterTopic)
  if (all === undefined) return { dryRun, matched: 0, redriven: 0, already: 0, gone: 0, more: false, ends: ends ?? '' }
  const spans = boundedBy(all, ends)
  const producer = new Producer(broker, `${deadLetterTopic}-redrive`, transactionTimeoutMs)
  if (!dryRun) {
    const topic = notesTopicOf(deadLetterTopic)
    await broker.createTopics([{ topic, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
    await producer.init()
  }
  const scope = { spans, done: await putBack(broker, deadLetterTopic), gone: new Gone(broker), limit, dryRun }
  const { records, ...counts } = await chooseThere(options, filter, scope)
  if (records.size > 0) {
    options.writing?.()
    await write(producer, options, records, scope.done)
  }
  // Of hundreds of partitions few have letters, and the answer comes back within an address.
  const written = spans
    .filter(({ from, to }) => to > from)
    .map(({ partition, to }) => `${partition}:${to}`)
    .join(',')
  return { dryRun, ...counts, ends: written }
}

/** What comes back may fail again: without a bound one would run after one's own letters. */
function boundedBy(spans: readonly Span[], ends: string | undefined): Span[] {
  if (ends === undefined) return [...spans]
  const endOf = new Map(ends.split(',').map((each) => each.split(':').map(Number) as [number, number]))
  return spans.map((span) => ({ ...span, to: Math.min(span.to, endOf.get(span.partition) ?? span.from) }))
}

/**
 * Letters whose record is known to be gone: what their topics have removed since, or no longer have at their place, and all
 * of topics that were deleted, or deleted and made anew.
 */
class Gone {
  readonly #broker: BrokerPort
  readonly #letters = new Set<string>()
  /** Where the partitions of their topics begin. */
  readonly #starts = new Map<string, number>()
  readonly #topicIds = new Map<string, string>()

  constructor(broker: BrokerPort) {
    this.#broker = broker
  }

  get isEmpty(): boolean {
    return this.#letters.size === 0
  }

  has(letter: Place, { topic, partition, offset, topicId }: Source): boolean {
    if (topicId !== undefined && topicId !== (this.#topicIds.get(topic) ?? topicId)) return true
    return offset < (this.#starts.get(partitionKey(topic, partition)) ?? 0) || this.#letters.has(letterId(letter))
  }

  async add(missing: readonly Chosen[]): Promise<void> {
    for (const { letter } of missing) this.#letters.add(letterId(letter))
    for (const [topic, topicId] of await topicIdsOf(this.#broker, missing)) this.#topicIds.set(topic, topicId)
    for (const topic of new Set(missing.map(({ source }) => source.topic))) {
      for (const { partition, from } of (await spansOf(this.#broker, topic)) ?? [])
        this.#starts.set(partitionKey(topic, partition), from)
    }
  }
}

interface Scope {
  readonly spans: readonly Span[]
  readonly done: PutBack
  readonly gone: Gone
  readonly limit: number
  readonly dryRun: boolean
}

type Counts = Omit<Redriven, 'dryRun' | 'ends'>

/** Chooses again where records are gone: they are not to take the places of others, call after call. */
async function chooseThere(
  options: RedriveOptions,
  filter: DeadLetterFilter,
  scope: Scope,
): Promise<Counts & Pick<Originals, 'records'>> {
  for (;;) {
    const { chosen, matched, already, gone, more } = await choose(options, filter, scope)
    const { found, records, missing, left } = await originals(options.broker, chosen, scope.dryRun)
    const isEnough = left > 0 || missing.length === 0 || (found.length > 0 && !scope.gone.isEmpty)
    if (isEnough || !more) {
      const counts = { matched: matched - left, redriven: found.length, already, gone: gone + missing.length }
      return { records, ...counts, more: more || left > 0 }
    }
    await scope.gone.add(missing)
  }
}

async function choose(
  { broker, deadLetterTopic, isSource }: RedriveOptions,
  filter: DeadLetterFilter,
  { spans, done, gone, limit }: Scope,
): Promise<{ chosen: Chosen[] } & Omit<Counts, 'redriven'>> {
  const chosen: Chosen[] = []
  const now = new PutBack('')
  const counts = { matched: 0, already: 0, gone: 0, more: false }
  await scan(broker, deadLetterTopic, spans, (letter) => {
    const notes = notesOf(letter)
    if (!fits(letter, notes, filter)) return true
    const source = notes.source && { ...notes.source, topicId: notes.topicId }
    const isDone = done.has(letter, source) || now.has(letter, source)
    const isGone = source === null || !isSource(source.topic) || gone.has(letter, source)
    if (!isDone && !isGone && chosen.length === limit) {
      counts.more = true
      return false
    }
    counts.matched++
    if (isDone) counts.already++
    else if (isGone) counts.gone++
    else {
      chosen.push({ letter: { partition: letter.partition, offset: letter.offset }, source })
      now.add(letterId(letter), recordId(source))
    }
    return true
  })
  return { chosen, ...counts }
}

interface Originals {
  /** Letters whose record is there. */
  readonly found: readonly Chosen[]
  /** What to write of them; nothing in a dry run. */
  readonly records: ReadonlyMap<Chosen, ScannedRecord>
  readonly missing: readonly Chosen[]
  /** Of so many nothing is known: the records before took all the room of a call. */
  readonly left: number
}

/** One way through each partition: letters of a bad hour lie side by side in their topic. */
async function originals(broker: BrokerPort, chosen: readonly Chosen[], dryRun: boolean): Promise<Originals> {
  const topicIds = await topicIdsOf(broker, chosen)
  const missing: Chosen[] = []
  const partitions = new Map<string, Map<number, Chosen>>()
  for (const each of chosen) {
    const { topic, partition, offset, topicId } = each.source
    const id = partitionKey(topic, partition)
    const of = partitions.get(id) ?? new Map<number, Chosen>()
    partitions.set(id, of)
    // A record of an earlier incarnation may have had the place of another one.
    if (of.has(offset) || (topicId !== undefined && topicId !== topicIds.get(topic))) missing.push(each)
    else of.set(offset, each)
  }
  const found: Chosen[] = []
  const records = new Map<Chosen, ScannedRecord>()
  let bytes = 0
  for (const of of partitions.values()) {
    const [first] = of.values()
    if (first === undefined || bytes >= mostBytes) continue
    const offsets = [...of.keys()].sort((a, b) => a - b)
    const there = new Set<number>()
    await recordsAt(broker, first.source.topic, first.source.partition, offsets, (record) => {
      const each = of.get(record.offset) as Chosen
      there.add(record.offset)
      found.push(each)
      if (dryRun) return true
      records.set(each, record)
      bytes += bytesOf(record)
      return bytes < mostBytes
    })
    const end = bytes < mostBytes ? Number.POSITIVE_INFINITY : Math.max(...there)
    for (const [offset, each] of of) if (offset < end && !there.has(offset)) missing.push(each)
  }
  return { found, records, missing, left: chosen.length - found.length - missing.length }
}

function bytesOf({ key, value, headers }: ScannedRecord): number {
  const ofHeaders = headers.reduce((sum, [name, said]) => sum + name.length + (said?.length ?? 0), 0)
  return (key?.length ?? 0) + (value?.length ?? 0) + ofHeaders
}

/** Batches for several partitions, none larger than what topics take by default, save for a single record. */
class Batches {
  readonly #open = new Map<string, { topic: string; partition: number; builder: RecordBatchBuilder }>()
  readonly #full: ToProduce[] = []

  add(topic: string, partition: number, { timestamp, key, value, headers }: Omit<ScannedRecord, keyof Place>): void {
    const id = partitionKey(topic, partition)
    const to = this.#open.get(id) ?? { topic, partition, builder: new RecordBatchBuilder() }
    this.#open.set(id, to)
    const before = to.builder.bytes
    to.builder.append(timestamp, key, value, headers)
    if (to.builder.count === 1 || to.builder.bytes <= batchBytes) return
    to.builder.dropLast(before)
    this.#close(to)
    to.builder = new RecordBatchBuilder()
    to.builder.append(timestamp, key, value, headers)
  }

  take(): ToProduce[] {
    for (const to of this.#open.values()) this.#close(to)
    this.#open.clear()
    return this.#full.splice(0)
  }

  #close({ topic, partition, builder }: { topic: string; partition: number; builder: RecordBatchBuilder }): void {
    this.#full.push({ topic, partition, count: builder.count, records: builder.finish() })
  }
}

async function write(
  producer: Producer,
  options: RedriveOptions,
  records: ReadonlyMap<Chosen, ScannedRecord>,
  done: PutBack,
): Promise<void> {
  const batches = new Batches()
  const notes = notesTopicOf(options.deadLetterTopic)
  for (const [{ letter, source }, record] of records) {
    batches.add(source.topic, source.partition, record)
    const [key, value] = [Buffer.from(done.keyOf(letter)), Buffer.from(recordId(source))]
    batches.add(notes, 0, { timestamp: options.now(), key, value, headers: [] })
  }
  producer.send(batches.take(), options.now())
  try {
    await producer.flush()
  } catch (error) {
    await producer.end(false)
    throw error
  }
  await producer.end(true)
}
