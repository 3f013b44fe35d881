/** The changes of a sealed epoch, as the columns of `key-value-rows.ts` hold them. */
import type { CommitEpoch } from '../../base/ids.ts'

export type ShowChange = (key: Uint8Array, value: Uint8Array | null, timestamp: number) => void

/** A sealed epoch's rows. */
export class SealedEpoch {
  readonly epoch: CommitEpoch
  readonly count: number
  /** Deletions are shown with the timestamp `now`. */
  readonly each: (now: number, show: ShowChange) => void

  constructor(epoch: CommitEpoch, count: number, each: (now: number, show: ShowChange) => void) {
    this.epoch = epoch
    this.count = count
    this.each = each
  }
}
