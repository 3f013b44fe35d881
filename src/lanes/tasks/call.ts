/** What a lane waits for. */
import type { Origin } from '../../operators/contract.ts'

/** An asynchronous function that was called and has not answered. */
export interface Call {
  /** Counts up: another number is another call. */
  number: number
  /** Of the record; undefined for a timer. */
  readonly origin: Origin | undefined
  node: number
  beganMs: number
  /** When the first of the calls began that are made one after the other for the same record, or for timers. */
  readonly firstMs: number
}
