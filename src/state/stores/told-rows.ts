/** The rows that the open epoch has changed, as operators see them. */
import type { ChangedRows } from '../contract.ts'
import type { RowChanges } from '../rows/row-changes.ts'
import type { RowCodec } from '../rows/row.ts'

/** Says whose row it is. */
export interface RowName {
  key: unknown
  start: number
  end: number
}

export class ToldRows implements ChangedRows, RowName {
  key: unknown
  start = 0
  end = 0
  readonly #changes: RowChanges
  readonly #codec: RowCodec
  readonly #name: (row: string, into: RowName) => void

  constructor(changes: RowChanges, codec: RowCodec, name: (row: string, into: RowName) => void) {
    this.#changes = changes
    this.#codec = codec
    this.#name = name
  }

  next(): boolean {
    const changes = this.#changes
    do if (!changes.next()) return false
    while (!changes.isThere && !changes.wasThere)
    this.#name(changes.key, this)
    return true
  }

  get row(): string {
    return this.#changes.key
  }

  get isThere(): boolean {
    return this.#changes.isThere
  }

  get value(): unknown {
    return this.#changes.isThere ? this.#codec.value(this.#changes.now) : null
  }

  get before(): unknown {
    return this.#changes.wasThere ? this.#codec.value(this.#changes.before) : null
  }

  get timestamp(): number {
    return this.#changes.now.timestamp
  }
}
