/** What the HTTP interface needs for showing data: `../runtime/data` fills it. Without it `/stores/{name}` and `/dead-letters` are 404. */
import type { Answer } from './routes/schemas.ts'

/** The answers are what their schemas say; there the meaning of each field is told too. */
export type StoreRows = Answer<'StoreRows'>
export type ShownRow = StoreRows['rows'][number]
export type DeadLetters = Answer<'DeadLetters'>
export type DeadLetter = DeadLetters['letters'][number]
export type Redriven = Answer<'Redriven'>

/** A key as people write it: JSON, or else plain text. */
export interface StoreQuestion {
  readonly key?: string
  /** Keys of key-value stores; instants of window and session stores. */
  readonly from?: string
  readonly to?: string
  readonly limit: number
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
