/**
 * A record's place in the one order of all records of an application: first by `at`, the watermark before its source
 * record was dispatched (of a timer the timer's time), then by `seq`, the number of that dispatch, then by `sub`, the
 * hand-offs on the way. A timer's `seq` is negative: a timer fires before the records that find its time reached.
 *
 * The order does not depend on lanes, batches or the speed of functions; `docs/decisions/0026-order-across-levels.md`
 * tells why it is this one.
 */
export interface Place {
  readonly at: number
  readonly seq: number
  readonly sub: number
}

export function isBefore(at: number, seq: number, sub: number, other: Place): boolean {
  if (at !== other.at) return at < other.at
  if (seq !== other.seq) return seq < other.seq
  return sub < other.sub
}

/** Of a number: those before its point count the hand-offs on the way, those behind it tell which of them each one was. */
const bits = 53

/**
 * By level, what one more hand-off from there adds to a record's `sub` beside the one by which all of them are counted: ever
 * smaller digits, of as many bits as there are for each level that hands over. Where a record is handed on more often than its
 * level has numbers, the last of what follows comes among what follows from the next record of that level.
 */
export function digitsOf(levels: number): readonly number[] {
  const handingOver = Math.max(1, levels - 1)
  const each = Math.floor((bits - handingOver.toString(2).length) / handingOver)
  return Array.from({ length: levels }, (_, level) => 2 ** -(each * (level + 1)))
}

/**
 * Everything up to here has come: all before this time, all timers of this time, and of records of this time those up to
 * `seq`. The two belong together: a `seq` says nothing of the records of another time.
 */
export interface Frontier {
  readonly watermark: number
  readonly seq: number
}

/** Whether the first is further on. */
export function isAhead(watermark: number, seq: number, of: Frontier): boolean {
  return watermark > of.watermark || (watermark === of.watermark && seq > of.seq)
}
