/** Rows of a table laid over those of a backend, in the order of their keys. */
import type { ByteRows } from './byte-rows.ts'
import type { Node } from './node.ts'
import type { NodeTable } from './node-table.ts'
import type { Row } from './row.ts'

export interface Layers {
  readonly table: NodeTable
  readonly below: ByteRows
  /** Moves whenever the backend was written: a walk reads it anew behind its last key. */
  readonly writes: () => number
  /** What the table has to say of a key; undefined where that is the backend's to tell. */
  readonly shown: (node: Node) => Row | undefined
}

/**
 * Rows in [from, to), also while rows come, go, or move from the table into the backend. Keys of which only a node that
 * is younger than `youngest` knows are left out.
 */
export function* mergedRows(
  { table, below, writes, shown }: Layers,
  from: string | undefined,
  to: string | undefined,
  reverse: boolean,
  youngest: number,
): IterableIterator<[string, Row]> {
  const above = table.rows(from, to, reverse)
  let over = above.next()
  let version = writes()
  let committed = below.range(from, to, reverse)
  let under = committed.next()
  let last: string | undefined
  for (;;) {
    if (version !== writes()) {
      version = writes()
      committed = reverse ? below.range(from, last ?? to, true) : below.range(behind(last) ?? from, to, false)
      under = committed.next()
    }
    const own = over.done ? undefined : over.value
    const other = under.done ? undefined : under.value
    let key: string
    let row: Row | undefined
    if (other !== undefined && (own === undefined || (reverse ? other[0] >= own : other[0] <= own))) {
      key = other[0]
      const node = table.get(key)
      row = (node && shown(node)) ?? other[1]
      under = committed.next()
    } else if (own !== undefined) {
      key = own
      const node = table.get(key)
      row = node !== undefined && node.born <= youngest ? shown(node) : undefined
    } else {
      return
    }
    if (key === own) over = above.next()
    last = key
    if (row !== undefined && !row.isDeleted) yield [key, row]
  }
}

function behind(key: string | undefined): string | undefined {
  return key === undefined ? undefined : `${key}\0`
}
