/** What is told of the watermarks: plain data, times in epoch milliseconds. */
import type { PartitionKey } from '../base/ids.ts'

/** Clocks of machines differ by less: an event time farther ahead is ahead of the clock. */
export const clockToleranceMs = 60_000

export interface PartitionWatermarkReport {
  watermarkMs: number | null
  idle: boolean
  /** For how long it has been idle since it was assigned. */
  idleTotalMs: number
  lastEventTimeMs: number | null
  idlenessTimeoutMs: number
  alignmentGroup: string | null
  alignmentHeld: boolean
  /** For how long its head has held up dispatch since it was assigned. */
  alignmentHeldTotalMs: number
  driftFromGroupMinMs: number | null
  previewWatermarkMs?: number
  headHeldSinceMs?: number
  /** Those who write to it tell how far it has come: no record of its own has to come for that. */
  isAnnounced?: true
  ahead?: { readonly offset: number; readonly timestampMs: number; readonly sinceMs: number }
}

export interface AlignmentBindingReport {
  readonly group: string
  readonly partition: PartitionKey
  readonly emptyLaggards: readonly PartitionKey[]
  readonly sinceMs: number
}

/** The head that waits longest for a partition of its task, or for those who write to it. */
export interface OrderWaitReport {
  readonly held: PartitionKey
  readonly awaited: PartitionKey
  readonly byWriters: boolean
  readonly sinceMs: number
}

export interface WatermarkReport {
  readonly globalMs: number | null
  readonly orderWait?: OrderWaitReport
  readonly alignmentGroupMins: Readonly<Record<string, number>>
  readonly alignmentBinding: AlignmentBindingReport | null
  readonly partitions: Readonly<Record<PartitionKey, PartitionWatermarkReport>>
}

/**
 * Turns monotonic instants into wall-clock ones. One offset is kept, so that the same instant always reads the same;
 * only where the wall clock was set anew does the offset follow it.
 */
export class WallClockOffset {
  #offset = Number.NaN

  /** @returns whether the wall clock was set anew since it was last observed. */
  observe(now: number, wallNow: number): boolean {
    const offset = wallNow - now
    const isFirst = Number.isNaN(this.#offset)
    const isSetAnew = !isFirst && Math.abs(offset - this.#offset) > 1000
    if (isFirst || isSetAnew) this.#offset = offset
    return isSetAnew
  }

  epochMs(instant: number): number {
    return Math.round(instant + this.#offset)
  }
}

/** a − b, kept within what an integer can say. */
export function saturatingDifference(a: number, b: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Math.round(a - b)))
}
