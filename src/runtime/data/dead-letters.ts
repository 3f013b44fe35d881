/** The newest dead letters, for people to read. */
import type { BrokerPort } from '../../broker/port.ts'
import type { DeadLetter, DeadLetterFilter, DeadLetters } from '../../http/data-seam.ts'
import type { Serde } from '../../serde/serde.ts'
import { shownJson, textOrBase64 } from '../../serde/shown.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { fits, notesOf } from './letter.ts'
import { newest } from './newest.ts'
import { PutBack, putBack } from './redrive.ts'
import { type ScannedRecord, spansOf } from './topic-scan.ts'

/** So many are looked through, over all partitions. */
const mostSeen = 2000

export async function deadLetters(
  broker: BrokerPort,
  topic: string,
  topology: CompiledTopology,
  filter: DeadLetterFilter,
  limit: number,
): Promise<DeadLetters> {
  const spans = (await spansOf(broker, topic)) ?? []
  const { records, more } = await newest(broker, topic, spans, mostSeen)
  const found: ScannedRecord[] = []
  const byReason: Record<string, number> = {}
  const { reason: _, ...others } = filter
  for (const record of records) {
    const notes = notesOf(record)
    if (fits(record, notes, others)) byReason[notes.reason] = (byReason[notes.reason] ?? 0) + 1
    if (fits(record, notes, filter)) found.push(record)
  }
  const done = spans.length === 0 ? new PutBack('') : await putBack(broker, topic)
  const letters = found.slice(0, limit).map((record) => shown(record, topology, done))
  return { topic, letters, seen: records.length, more, byReason }
}

function shown(record: ScannedRecord, topology: CompiledTopology, done: PutBack): DeadLetter {
  const { partition, offset, timestamp, key, value, headers } = record
  const { topicId, ...notes } = notesOf(record)
  const source = topology.sources.find(
    ({ kind, topics, pattern }) =>
      kind === 'topics' &&
      notes.source !== null &&
      (topics.includes(notes.source.topic) || pattern?.test(notes.source.topic) === true),
  )
  return {
    partition,
    offset,
    timestamp: new Date(timestamp).toISOString(),
    ...notes,
    key: readable(source?.keySerde, key),
    value: readable(source?.valueSerde, value),
    headers: headers.map(([name, said]) => [name, said instanceof Uint8Array ? textOrBase64(said) : said]),
    redriven: done.has(record, notes.source && { ...notes.source, topicId }),
  }
}

/** What could not be decoded is often why the letter is here: it is shown as it is. */
function readable(serde: Serde<unknown> | undefined, bytes: Uint8Array | null): unknown {
  if (bytes === null) return null
  try {
    if (serde !== undefined) return shownJson(serde, serde.deserialize(bytes))
  } catch {
    // As text, below.
  }
  return textOrBase64(bytes)
}
