/**
 * Histograms in the blocks of shared counters: a slot for each bucket, one for what lies above the last bound, one for the
 * sum. A block's owner alone writes; the count is the sum of the buckets, so that a reader never sees the two disagree.
 */

/** Upper bounds in seconds. */
export const durationBounds = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const
/** A record takes millionths of a second where nothing is waited for. */
export const processBounds = [0.000_001, 0.000_01, 0.000_1, ...durationBounds] as const
/** Event time may lie hours back. */
export const eventTimeBounds = [...durationBounds, 60, 600, 3600] as const
export const pollBounds = [1, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000] as const

export type Bounds = readonly number[]

export const histogramSlots = (bounds: Bounds): number => bounds.length + 2

/** `at` is the histogram's first slot. `weight`: as if so many values had come. */
export function observe(block: Float64Array, at: number, bounds: Bounds, value: number, weight = 1): void {
  let bucket = 0
  while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
  block[at + bucket] = (block[at + bucket] as number) + weight
  const sum = at + bounds.length + 1
  block[sum] = (block[sum] as number) + value * weight
}

export interface HistogramValue {
  /** Below or at each bound, and all: as the text format has them. */
  readonly cumulative: readonly number[]
  readonly sum: number
}

/** Of several blocks together. */
export function readHistogram(blocks: readonly Float64Array[], at: number, bounds: Bounds): HistogramValue {
  const cumulative: number[] = []
  let total = 0
  let sum = 0
  for (let bucket = 0; bucket <= bounds.length; bucket++) {
    for (const block of blocks) total += block[at + bucket] ?? 0
    cumulative.push(total)
  }
  for (const block of blocks) sum += block[at + bounds.length + 1] ?? 0
  return { cumulative, sum }
}
