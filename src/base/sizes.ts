/**
 * Sizes from which on work leaves one part of the engine for the next. A simulator makes them small: a hundred records
 * then do to it what a million do to a loaded engine.
 */
export interface Sizes {
  /** Records for a lane leave the engine's thread. */
  readonly dispatchBytes: number
  /** Records of a level leave for a lane's deeper one. */
  readonly handOffBytes: number
  /** A batch is closed: well below Kafka's default limit of 1 MiB. */
  readonly batchBytes: number
  /** Outputs of the open epoch leave their lane. */
  readonly outputBytes: number
  /** Outputs that were gathered leave for the broker ahead of the commit. */
  readonly aheadBytes: number
  /** So much of a partition whose records are taken in the order of event time is kept at least, however many there are. */
  readonly sortedBytes: number
  /** And so much of all such partitions at most. */
  readonly sortedMostBytes: number
}

export const usualSizes: Sizes = {
  dispatchBytes: 60 * 1024,
  handOffBytes: 30 * 1024,
  batchBytes: 256 * 1024,
  outputBytes: 512 * 1024,
  aheadBytes: 256 * 1024,
  sortedBytes: 256 * 1024,
  sortedMostBytes: Number.POSITIVE_INFINITY,
}
