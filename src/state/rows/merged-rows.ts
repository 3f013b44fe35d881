/** Rows laid over those of a backend, in the order of their keys. */
import type { SpanWalk } from './empty-spans.ts'

export interface Layers<T> {
  /** Keys of the rows above, in [from, to); also while rows come and go. */
  keys(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<string>
  /** The row above; null: there is none, or one that came after the walk began; undefined: that is the backend's to tell. */
  at(key: string): T | null | undefined
  /** A row of which the backend knows nothing is to be shown: it did not come after the walk began. */
  isOld(key: string): boolean
  below(from: string | undefined, to: string | undefined, reverse: boolean): IterableIterator<readonly [string, T]>
  /** Moves whenever the backend was written: a walk reads it anew behind its last key. */
  writes(): number
}

/**
 * When a row came, for walks: a number that grows with each row, negative where the row was deleted before. What the
 * backend may still have of such a row is not the one that came.
 */
export function bornAnew(born: number): number {
  return -born
}

/** The row came after a walk began that had `youngest` as the last one: it is not shown. */
export function isYounger(born: number, youngest: number): boolean {
  return born > youngest || -born > youngest
}

/** As `isYounger`, of a row of which the backend may have an older one, where only a deletion in between makes it another. */
export function isAnother(born: number, youngest: number): boolean {
  return -born > youngest
}

/** Rows in [from, to), also while rows come, go, or move from above into the backend. */
export function* mergedRows<T>(
  layers: Layers<T>,
  from: string | undefined,
  to: string | undefined,
  reverse: boolean,
  spans?: SpanWalk,
): IterableIterator<[string, T]> {
  const above = layers.keys(from, to, reverse)
  let over = above.next()
  let version = layers.writes()
  let committed = layers.below(from, to, reverse)
  let under = committed.next()
  let last: string | undefined
  for (;;) {
    if (version !== layers.writes()) {
      version = layers.writes()
      committed = reverse ? layers.below(from, last ?? to, true) : layers.below(behind(last) ?? from, to, false)
      under = committed.next()
    }
    const own = over.done ? undefined : over.value
    const other = under.done ? undefined : under.value
    let key: string
    let row: T | null | undefined
    if (other !== undefined && (own === undefined || (reverse ? other[0] >= own : other[0] <= own))) {
      key = other[0]
      row = layers.at(key)
      if (row === undefined) row = other[1]
      under = committed.next()
    } else if (own !== undefined) {
      key = own
      row = layers.isOld(key) ? layers.at(key) : null
    } else {
      spans?.ended()
      return
    }
    if (key === own) over = above.next()
    last = key
    if (row === null || row === undefined) {
      spans?.gone()
      continue
    }
    spans?.found(key)
    yield [key, row]
  }
}

function behind(key: string | undefined): string | undefined {
  return key === undefined ? undefined : `${key}\0`
}
