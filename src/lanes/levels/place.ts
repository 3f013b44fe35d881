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
 * How the numbers of hand-offs are written, each one behind those on the way to it: a class of few numbers takes few bits, and
 * greater numbers come behind smaller ones. Most places hand on a few records; where one hands on very many, it may take the bits
 * that the others leave. No record has 67 million results, which is where this ends.
 */
const classes: readonly { readonly prefixBits: number; readonly bits: number }[] = [
  { prefixBits: 1, bits: 1 },
  { prefixBits: 2, bits: 1 },
  { prefixBits: 3, bits: 2 },
  { prefixBits: 4, bits: 6 },
  { prefixBits: 5, bits: 11 },
  { prefixBits: 6, bits: 18 },
  { prefixBits: 6, bits: 26 },
]

/** Numbers whose places are kept. */
const mostKept = 256

/** A share of the numbers between 0 and 1. */
interface Share {
  readonly start: number
  readonly width: number
}

function shareOf(number: number): Share {
  let index = number - 1
  let start = 0
  for (const { prefixBits, bits } of classes) {
    const count = 2 ** bits
    const width = 2 ** -(prefixBits + bits)
    if (index < count) return { start: start + index * width, width }
    index -= count
    start += count * width
  }
  return { start: 1 - 2 ** -32, width: 2 ** -32 }
}

/** The lowest bit of a whole number below 2 ** 53. */
function lowestBit(whole: number): number {
  const low = whole >>> 0
  if (low !== 0) return (low & -low) >>> 0
  const high = Math.floor(whole / 2 ** 32)
  return ((high & -high) >>> 0) * 2 ** 32
}

/**
 * Places among all that follows from one source record. Each is a share of the numbers between 0 and 1, and is told by the
 * middle of it, whose lowest bit says how wide it is; what follows from there has shares of that share.
 */
export class Places {
  /** Some place may have been given to two records: no smaller shares are to be had. */
  hasRunOut = false
  /** By number: the middles of shares of the whole. */
  readonly #first: Float64Array
  /** The smallest share, as one over it. */
  readonly #most: number

  constructor(levels: number) {
    this.#most = 2 ** (bits - Math.max(1, levels - 1).toString(2).length)
    this.#first = Float64Array.from({ length: mostKept }, (_, number) => {
      const { start, width } = shareOf(Math.max(1, number))
      return start + width / 2
    })
  }

  /** The place of the hand-off with this number, from 1, from there. */
  under(sub: number, number: number): number {
    if (sub === 0 && number < mostKept) return this.#first[number] as number
    const most = this.#most
    const hops = Math.floor(sub)
    const middle = (sub - hops) * most
    const half = middle === 0 ? most / 2 : lowestBit(middle)
    const share = shareOf(number)
    const start = (middle === 0 ? 0 : middle - half) + 2 * half * share.start
    const own = half * share.width
    if (own >= 1) return hops + (start + own) / most
    // The nearest one that there is: among those from the same place, and in their order. The first is alone there yet.
    if (number > 1) this.hasRunOut = true
    return hops + (2 * Math.floor(start / 2) + 1) / most
  }
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
