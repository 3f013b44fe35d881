/** The changes of one sealed epoch, in the form of changelog records, made as they are asked for. */
import type { CommitEpoch } from '../base/ids.ts'
import type { ByteChange, SealedChanges, StoreSpec } from './contract.ts'
import { changelogKey } from './layout.ts'
import type { Row, RowCodec } from './row.ts'

export class Sealed implements SealedChanges {
  readonly epoch: CommitEpoch
  readonly bytes: number
  readonly #spec: StoreSpec
  readonly #codec: RowCodec
  readonly #cells: ReadonlyMap<string, Row | null>
  /** Timestamp of deletions: stream time when the epoch was sealed. */
  readonly #now: number
  #changes: readonly ByteChange[] | undefined
  #timestamps: readonly number[] | undefined

  constructor(
    epoch: CommitEpoch,
    spec: StoreSpec,
    codec: RowCodec,
    cells: ReadonlyMap<string, Row | null>,
    now: number,
    bytes: number,
  ) {
    this.epoch = epoch
    this.bytes = bytes
    this.#spec = spec
    this.#codec = codec
    this.#cells = cells
    this.#now = now
  }

  get count(): number {
    return this.#cells.size
  }

  each(visit: (key: Uint8Array, value: Uint8Array | null, timestamp: number) => void): void {
    for (const [row, cell] of this.#cells) {
      const key = changelogKey(this.#spec, row)
      if (cell === null) visit(key, null, this.#now)
      else visit(key, this.#codec.bytes(cell), cell.timestamp)
    }
  }

  get changes(): readonly ByteChange[] {
    this.#materialise()
    return this.#changes as readonly ByteChange[]
  }

  get timestamps(): readonly number[] {
    this.#materialise()
    return this.#timestamps as readonly number[]
  }

  #materialise(): void {
    if (this.#changes !== undefined) return
    const changes: ByteChange[] = []
    const timestamps: number[] = []
    this.each((key, value, timestamp) => {
      changes.push([key, value])
      timestamps.push(timestamp)
    })
    this.#changes = changes
    this.#timestamps = timestamps
  }
}
