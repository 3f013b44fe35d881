/**
 * Limits made small by the seed. With those of production a hundred records never fill anything: nothing leaves before
 * its commit, nothing of the next epoch waits behind one, no buffer goes over while it grows.
 */
import { Random } from '../../src/base/random.ts'
import { type Sizes, usualSizes } from '../../src/base/sizes.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'

export type Limits = Pick<
  EngineSettings,
  | 'bufferedRecordsPerPartition'
  | 'maxPollRecords'
  | 'bufferedMaxBytes'
  | 'laneQueueBytes'
  | 'partitionFetchMaxBytes'
  | 'uncommittedMaxBytes'
  | 'maxDirtyRows'
  | 'fetchPaceMs'
  | 'maxTaskIdleMs'
  | 'commitIntervalMs'
  | 'commitIdleIntervalMs'
> & { readonly sizes: Sizes }

/** Nothing is full: for mistakes that show only where much goes over at once. */
export const usualLimits: Limits = {
  bufferedRecordsPerPartition: 20,
  maxPollRecords: 10,
  bufferedMaxBytes: 1 << 14,
  laneQueueBytes: 4096,
  partitionFetchMaxBytes: 1 << 16,
  uncommittedMaxBytes: 1 << 20,
  maxDirtyRows: 1_000_000,
  maxTaskIdleMs: 0,
  commitIntervalMs: 20,
  commitIdleIntervalMs: 10,
  sizes: usualSizes,
}

/** Drawn by a generator of its own: the other draws of a seed stay what they were. */
export function limitsOf(seed: number): Limits {
  const random = new Random(seed ^ 0x5a17)
  const size = (usual: number): number => random.pick([usual, 8, 96, 704])
  return {
    bufferedRecordsPerPartition: random.pick([20, 20, 1, 3]),
    maxPollRecords: random.pick([10, 10, 1, 200]),
    bufferedMaxBytes: random.pick([1 << 14, 1 << 14, 1000]),
    laneQueueBytes: random.pick([4096, 4096, 300]),
    partitionFetchMaxBytes: random.pick([1 << 16, 1 << 16, 200]),
    uncommittedMaxBytes: random.pick([1 << 20, 1 << 20, 3000]),
    maxDirtyRows: random.pick([1_000_000, 1_000_000, 4]),
    sizes: {
      dispatchBytes: size(usualSizes.dispatchBytes),
      handOffBytes: size(usualSizes.handOffBytes),
      batchBytes: size(usualSizes.batchBytes),
      outputBytes: size(usualSizes.outputBytes),
      aheadBytes: size(usualSizes.aheadBytes),
      sortedBytes: usualSizes.sortedBytes,
      sortedMostBytes: usualSizes.sortedMostBytes,
    },
    fetchPaceMs: random.pick([0, 0, 2, 5]),
    maxTaskIdleMs: random.pick([0, 0, 0, 7]),
    commitIntervalMs: random.pick([20, 20, 5, 150]),
    commitIdleIntervalMs: random.pick([10, 10, 1, 150]),
  }
}
