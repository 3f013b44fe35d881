/** What the HTTP interface needs for showing data: `../runtime/data` fills it. Without it `/stores/{name}` and `/dead-letters` are 404. */

/** A key as people write it: JSON, or else plain text. */
export interface StoreQuestion {
  readonly key?: string
  /** Keys of key-value stores; instants of window and session stores. */
  readonly from?: string
  readonly to?: string
  readonly limit: number
}

export interface ShownRow {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp?: number
  readonly start?: number
  readonly end?: number
  readonly validTo?: number
}

export interface StoreRows {
  readonly store: string
  readonly kind: string
  readonly rows: readonly ShownRow[]
  /** There are more rows. */
  readonly more: boolean
  /** Where the next page begins: what to give as `from`. Null at the end, and where rows do not go by key. */
  readonly next: string | null
}

export interface Refused {
  /** 421: another process of the group has it. */
  readonly refused: 400 | 404 | 421 | 503
  readonly reason: string
  /** Of the process that has it, where that is known. */
  readonly address?: string
}

export interface DeadLetterFilter {
  readonly reason?: string
  readonly topic?: string
  /** Event time of the record, epoch milliseconds, both included. */
  readonly fromMs?: number
  readonly toMs?: number
}

export interface DeadLetter {
  readonly partition: number
  readonly offset: number
  readonly timestamp: string
  /** Class of the error. */
  readonly reason: string
  readonly message: string
  /** The record it was made of. */
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: number } | null
  readonly key: unknown
  readonly value: unknown
  readonly headers: ReadonlyArray<readonly [name: string, value: string | null]>
  readonly redriven: boolean
}

export interface DeadLetters {
  readonly topic: string
  /** In the topic now, as far as they were looked through, newest first. */
  readonly letters: readonly DeadLetter[]
  /** How many letters were looked through, and how many of them there are by reason. */
  readonly seen: number
  readonly byReason: Readonly<Record<string, number>>
}

export interface Redriven {
  readonly dryRun: boolean
  /** Fit the filter. */
  readonly matched: number
  /** Put back by this call; with `dryRun`: would be. */
  readonly redriven: number
  /** Were put back before. */
  readonly already: number
  /** Cannot be put back: the record is no longer in its topic. */
  readonly gone: number
  /** There is more to do than one call does: ask again. */
  readonly more: boolean
  /** Up to where letters were meant, as `partition:offset`: to be given with the next call, which else takes new ones too. */
  readonly ends: string
}

export interface RedriveHow {
  readonly dryRun: boolean
  readonly limit: number
  /** As an answer had it: letters from there on are not meant. */
  readonly ends?: string
}

export interface DataAccess {
  rows(store: string, question: StoreQuestion): Promise<StoreRows | Refused>
  deadLetters(filter: DeadLetterFilter, limit: number): Promise<DeadLetters | Refused>
  redrive(filter: DeadLetterFilter, how: RedriveHow): Promise<Redriven | Refused>
}

export function isRefused(answer: object): answer is Refused {
  return 'refused' in answer
}
