/** Rows by key with what no commit has settled yet: what every store is built on, however its rows lie in memory. */
import type { CommitEpoch } from '../../base/ids.ts'
import type { Checkpoint } from '../contract.ts'
import type { Generation } from '../versions/node.ts'
import type { Row } from './row.ts'
import type { RowChanges } from './row-changes.ts'
import type { SealedEpoch } from '../table/sealed-epoch.ts'

export interface RowLayer {
  /** Bytes of the open epoch's keys and values, about. */
  readonly bytes: number
  /** The open epoch has changes. */
  readonly isChanged: boolean
  /** The rows that the open epoch changed, in the order in which each was changed first. */
  changes(): RowChanges
  /** Their number. */
  readonly changedRows: number
  /** The row is valid until the next call. */
  get(key: string): Row | undefined
  put(key: string, value: unknown, timestamp: number): void
  delete(key: string): void
  /** Rows in [from, to), without keys that came after the call. A row is given as it is when its turn comes. */
  range(from: string | undefined, to: string | undefined, reverse?: boolean): IterableIterator<[string, Row]>
  /** Committed rows of which no uncommitted change speaks, from `from` on. */
  settled(from: string | undefined): IterableIterator<[string, Row]>
  /** The open epoch's changes; null when there are none. The next epoch is open from now on. */
  seal(epoch: CommitEpoch): Generation | SealedEpoch | null
  /** All sealed epochs are committed: for a store in memory that has no changelog and hence no checkpoint. */
  settleAll(): void
  /** Also removes rows that the changelog need not hear of. */
  applied(epoch: CommitEpoch, dropped: readonly string[], checkpoint: Checkpoint): void
  discard(): void
  /** No further change: a function that comes back after its run has ended must not write into the next one. */
  freeze(): void
  /** The backend was changed by somebody else. */
  changedBelow(): void
}
