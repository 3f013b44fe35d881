/** The changes of one sealed epoch, in the form of changelog records, made as they are asked for. */
import type { CommitEpoch } from '../base/ids.ts'
import type { ByteChange, SealedChanges, StoreSpec } from './contract.ts'
import { changelogKey } from './layout.ts'
import type { Node } from './node.ts'
import type { Generation } from './overlay.ts'
import type { Row, RowCodec } from './row.ts'

export class Sealed implements SealedChanges {
  readonly epoch: CommitEpoch
  readonly bytes: number
  readonly #spec: StoreSpec
  readonly #codec: RowCodec
  readonly #sealed: Generation
  readonly #rowOf: (node: Node) => string
  /** Timestamp of deletions: stream time when the epoch was sealed. */
  readonly #now: number
  #changes: readonly ByteChange[] | undefined
  #timestamps: readonly number[] | undefined

  constructor(
    sealed: Generation,
    spec: StoreSpec,
    codec: RowCodec,
    rowOf: (node: Node) => string,
    now: number,
    bytes: number,
  ) {
    this.epoch = sealed.epoch
    this.bytes = bytes
    this.#spec = spec
    this.#codec = codec
    this.#sealed = sealed
    this.#rowOf = rowOf
    this.#now = now
  }

  get count(): number {
    return this.#sealed.nodes.length
  }

  each(visit: (key: Uint8Array, value: Uint8Array | null, timestamp: number) => void): void {
    const { generation, nodes } = this.#sealed
    for (const node of nodes) {
      const row = node.at(generation) as Row
      visit(
        changelogKey(this.#spec, this.#rowOf(node)),
        this.#codec.bytes(row),
        row.isDeleted ? this.#now : row.timestamp,
      )
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
