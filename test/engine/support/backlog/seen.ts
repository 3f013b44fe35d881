/** What was seen of a key: a loss, a repetition and another order each make it something else. */
export interface Seen {
  readonly count: number
  readonly sum: number
  readonly order: number
}

export const first: Seen = { count: 0, sum: 0, order: 7 }

export function seenOf({ count, sum, order }: Seen, n: number): Seen {
  return { count: count + 1, sum: sum + n, order: (Math.imul(order, 31) + n) >>> 0 }
}
