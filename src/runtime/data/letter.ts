/** What the headers of a dead letter say of it. */
import type { DeadLetterFilter } from '../../http/data-seam.ts'
import { textOrBase64 } from '../../serde/shown.ts'
import type { ScannedRecord } from './topic-scan.ts'

const prefix = '__streams.errors.'

export interface LetterNotes {
  readonly reason: string
  readonly message: string
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: number } | null
  /** Which incarnation of the source's topic it was; undefined in letters of before it was noted. */
  readonly topicId: string | undefined
}

export function notesOf({ headers }: ScannedRecord): LetterNotes {
  const said = new Map(
    headers.map(([name, value]) => [name, value instanceof Uint8Array ? textOrBase64(value) : value]),
  )
  const of = (name: string): string | undefined => said.get(`${prefix}${name}`) ?? undefined
  const topic = of('topic')
  const [partition, offset] = [of('partition'), of('offset')].map((text) => Number(text ?? -1))
  const isKnown = topic !== undefined && topic !== '' && isPlace(partition) && isPlace(offset)
  return {
    reason: of('exception') ?? 'unknown',
    message: of('message') ?? '',
    source: isKnown ? { topic, partition, offset } : null,
    topicId: of('topic-id'),
  }
}

function isPlace(value: number | undefined): value is number {
  return value !== undefined && Number.isSafeInteger(value) && value >= 0
}

export function fits(record: ScannedRecord, notes: LetterNotes, filter: DeadLetterFilter): boolean {
  const { reason, topic, fromMs, toMs } = filter
  if (reason !== undefined && notes.reason !== reason) return false
  if (topic !== undefined && notes.source?.topic !== topic) return false
  return (fromMs === undefined || record.timestamp >= fromMs) && (toMs === undefined || record.timestamp <= toMs)
}

export function letterId({ partition, offset }: { readonly partition: number; readonly offset: number }): string {
  return `${partition}:${offset}`
}
