/** The changes of one sealed epoch, in the form of changelog records, made as they are asked for. */
import type { CommitEpoch } from '../../base/ids.ts'
import type { ByteChange, SealedChanges, StoreSpec } from '../contract.ts'
import { versionSuffix } from './layout.ts'
import type { Generation, Node } from '../versions/node.ts'
import type { Row, RowCodec } from './row.ts'
import { Scratch } from './scratch.ts'
import type { SealedEpoch } from '../table/sealed-epoch.ts'

type Show = (key: Uint8Array, value: Uint8Array | null, timestamp: number) => void

abstract class Changes implements SealedChanges {
  readonly epoch: CommitEpoch
  readonly bytes: number
  #changes: readonly ByteChange[] | undefined
  #timestamps: readonly number[] | undefined

  constructor(epoch: CommitEpoch, bytes: number) {
    this.epoch = epoch
    this.bytes = bytes
  }

  abstract readonly count: number
  abstract each(visit: Show): void

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
      changes.push([key.slice(), value === null ? null : value.slice()])
      timestamps.push(timestamp)
    })
    this.#changes = changes
    this.#timestamps = timestamps
  }
}

/** Of rows that lie in columns. */
export class SealedColumns extends Changes {
  readonly #sealed: SealedEpoch
  readonly #now: number

  constructor(sealed: SealedEpoch, now: number, bytes: number) {
    super(sealed.epoch, bytes)
    this.#sealed = sealed
    this.#now = now
  }

  get count(): number {
    return this.#sealed.count
  }

  each(visit: Show): void {
    this.#sealed.each(this.#now, visit)
  }
}

export class Sealed extends Changes {
  readonly #spec: StoreSpec
  readonly #codec: RowCodec
  readonly #sealed: Generation
  /** Timestamp of deletions: stream time when the epoch was sealed. */
  readonly #now: number

  constructor(sealed: Generation, spec: StoreSpec, codec: RowCodec, now: number, bytes: number) {
    super(sealed.epoch, bytes)
    this.#spec = spec
    this.#codec = codec
    this.#sealed = sealed
    this.#now = now
  }

  get count(): number {
    return this.#sealed.nodes.length
  }

  each(visit: Show): void {
    const { generation, nodes } = this.#sealed
    const codec = this.#codec
    const hidden = this.#spec.kind === 'versioned' ? versionSuffix : 0
    for (const node of nodes) {
      const { top } = node
      const row = top.generation === generation ? top : (node.at(generation) as Row)
      visit(keyBytesOf(node, hidden), codec.bytes(row, true), row.isDeleted ? this.#now : row.timestamp)
    }
  }
}

const scratch = new Scratch()

/** The changelog's key of a row: for a version, the key alone. */
function keyBytesOf({ key }: Node, hidden: number): Uint8Array {
  const length = key.length - hidden
  const bytes = scratch.of(length)
  for (let i = 0; i < length; i++) bytes[i] = key.charCodeAt(i)
  return bytes
}
