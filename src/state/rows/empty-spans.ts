/**
 * Where between two keys of a store no row lies: a walk met many that are gone there and not forgotten yet, and the next one
 * need not meet them again. A queue whose oldest row is looked for with each record would walk over all that it has deleted
 * since the last commit, and in the backend over all that is not written yet.
 */
import { position } from './sorted-keys.ts'

/** Greater than every key. */
const last = '\u{ffff}'
/** So many rows that are gone, one behind the other, are worth a note. */
const leastGone = 8
/** Spans that are kept, at most. */
const mostSpans = 1024

export class EmptySpans {
  /** Spans [start, end), which do not touch. */
  #starts: string[] = []
  #ends: string[] = []
  /** Moves whenever a row may have come: what a walk has seen before says nothing then. */
  #version = 0

  /** A row comes with this key, which had none. */
  cut(key: string): void {
    this.#version++
    if (this.#starts.length === 0) return
    const at = this.#spanOf(key)
    if (at < 0) return
    const start = this.#starts[at] as string
    const end = this.#ends[at] as string
    const next = `${key}\0`
    const spans: Array<[string, string]> = []
    if (start < key) spans.push([start, key])
    if (next < end) spans.push([next, end])
    this.#starts.splice(at, 1, ...spans.map(([from]) => from))
    this.#ends.splice(at, 1, ...spans.map(([, to]) => to))
  }

  /** Rows may have come anywhere. */
  clear(): void {
    this.#version++
    this.#starts.length = 0
    this.#ends.length = 0
  }

  /** A walk over [from, to). */
  walk(from: string | undefined, to: string | undefined, reverse: boolean): SpanWalk {
    return new SpanWalk(this, from ?? '', to ?? last, reverse)
  }

  get version(): number {
    return this.#version
  }

  /** Where rows may lie again, from `key` on. */
  endOf(key: string): string {
    const at = this.#spanOf(key)
    return at < 0 ? key : (this.#ends[at] as string)
  }

  /** Before which key rows may lie again, before `key`. */
  startOf(key: string): string {
    const at = position(this.#starts, key) - 1
    return at >= 0 && (this.#ends[at] as string) >= key ? (this.#starts[at] as string) : key
  }

  add(start: string, end: string): void {
    // Those that it touches become one with it.
    let first = position(this.#starts, start)
    if (first > 0 && (this.#ends[first - 1] as string) >= start) first--
    let behind = first
    while (behind < this.#starts.length && (this.#starts[behind] as string) <= end) behind++
    const from = behind > first && (this.#starts[first] as string) < start ? (this.#starts[first] as string) : start
    const to = behind > first && (this.#ends[behind - 1] as string) > end ? (this.#ends[behind - 1] as string) : end
    this.#starts.splice(first, behind - first, from)
    this.#ends.splice(first, behind - first, to)
    if (this.#starts.length > mostSpans) this.clear()
  }

  /** The span in which the key lies, or -1. */
  #spanOf(key: string): number {
    const at = position(this.#starts, `${key}\0`) - 1
    return at >= 0 && key < (this.#ends[at] as string) ? at : -1
  }
}

/** What a walk learns. Between two of its rows it looks at all keys at once, without a pause. */
export class SpanWalk {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly #spans: EmptySpans
  readonly #reverse: boolean
  readonly #version: number
  /** No row lies from here to where the walk is. */
  #edge: string
  #end: string
  #gone = 0

  constructor(spans: EmptySpans, from: string, to: string, reverse: boolean) {
    this.#spans = spans
    this.#reverse = reverse
    this.#version = spans.version
    const first = reverse ? from : spans.endOf(from)
    const behind = reverse ? spans.startOf(to) : to
    this.from = first === '' ? undefined : first
    this.to = behind === last ? undefined : behind
    this.#edge = reverse ? behind : first
    this.#end = reverse ? first : behind
  }

  get isEmpty(): boolean {
    return this.#reverse ? this.#edge <= this.#end : this.#edge >= this.#end
  }

  /** A key had no row. */
  gone(): void {
    this.#gone++
  }

  /** A key had one. */
  found(key: string): void {
    const next = `${key}\0`
    if (this.#gone >= leastGone) this.#note(this.#reverse ? next : key)
    this.#gone = 0
    this.#edge = this.#reverse ? key : next
  }

  /** There is no further key. */
  ended(): void {
    if (this.#gone >= leastGone) this.#note(this.#end)
  }

  #note(to: string): void {
    if (this.#spans.version !== this.#version) return
    if (this.#reverse) this.#spans.add(to, this.#edge)
    else this.#spans.add(this.#edge, to)
  }
}
