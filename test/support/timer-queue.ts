/**
 * Many timers, of event time or of the wall clock: a binary heap by time, then by the order in which they were set, so
 * that a replay fires them alike. One timer a key at most: setting it anew moves it. Cancelling leaves an empty place
 * that is passed over later, and cleared away when such places are the most.
 */
export class TimerQueue<K> {
  #times: number[] = []
  #orders: number[] = []
  #keys: Array<K | undefined> = []
  /** Order number of a key's timer: an entry with another number is out of date. */
  readonly #live = new Map<K, { time: number; order: number }>()
  #order = 0

  /** Timers that are set. */
  get size(): number {
    return this.#live.size
  }

  /** Sets the timer of a key, in place of the one it may have. */
  set(key: K, time: number): void {
    const before = this.#live.get(key)
    if (before?.time === time) return
    const order = this.#order++
    this.#live.set(key, { time, order })
    this.#push(time, order, key)
    if (this.#times.length > 64 && this.#times.length > this.#live.size * 2) this.#compact()
  }

  /** Sets the timer of a key unless it has an earlier one. */
  setEarliest(key: K, time: number): void {
    const before = this.#live.get(key)
    if (before === undefined || time < before.time) this.set(key, time)
  }

  /** Time of a key's timer, undefined where none is set. */
  timeOf(key: K): number | undefined {
    return this.#live.get(key)?.time
  }

  /** True if there was one. */
  cancel(key: K): boolean {
    return this.#live.delete(key)
  }

  /** When the next one is due; `Infinity` when none is set. */
  nextTime(): number {
    this.#dropStale()
    return this.#times[0] ?? Number.POSITIVE_INFINITY
  }

  /** Takes out the next timer that is due at `time`; undefined when there is none. */
  takeDue(time: number): { readonly key: K; readonly time: number } | undefined {
    if (!(this.nextTime() <= time)) return undefined
    const key = this.#keys[0] as K
    const due = this.#times[0] as number
    this.#live.delete(key)
    this.#pop()
    return { key, time: due }
  }

  clear(): void {
    this.#times = []
    this.#orders = []
    this.#keys = []
    this.#live.clear()
  }

  #dropStale(): void {
    while (this.#times.length > 0 && this.#live.get(this.#keys[0] as K)?.order !== this.#orders[0]) this.#pop()
  }

  #push(time: number, order: number, key: K): void {
    let at = this.#times.length
    this.#times.push(time)
    this.#orders.push(order)
    this.#keys.push(key)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#before(at, parent)) break
      this.#swap(at, parent)
      at = parent
    }
  }

  #pop(): void {
    const last = this.#times.length - 1
    this.#swap(0, last)
    this.#times.pop()
    this.#orders.pop()
    this.#keys.pop()
    this.#sink(0)
  }

  #sink(from: number): void {
    const length = this.#times.length
    let at = from
    for (;;) {
      let least = at
      const left = at * 2 + 1
      if (left < length && this.#before(left, least)) least = left
      if (left + 1 < length && this.#before(left + 1, least)) least = left + 1
      if (least === at) return
      this.#swap(at, least)
      at = least
    }
  }

  #compact(): void {
    this.#times = []
    this.#orders = []
    this.#keys = []
    for (const [key, { time, order }] of this.#live) {
      this.#times.push(time)
      this.#orders.push(order)
      this.#keys.push(key)
    }
    for (let at = (this.#times.length >> 1) - 1; at >= 0; at--) this.#sink(at)
  }

  #before(a: number, b: number): boolean {
    const left = this.#times[a] as number
    const right = this.#times[b] as number
    return left < right || (left === right && (this.#orders[a] as number) < (this.#orders[b] as number))
  }

  #swap(a: number, b: number): void {
    const time = this.#times[a] as number
    const order = this.#orders[a] as number
    const key = this.#keys[a]
    this.#times[a] = this.#times[b] as number
    this.#orders[a] = this.#orders[b] as number
    this.#keys[a] = this.#keys[b]
    this.#times[b] = time
    this.#orders[b] = order
    this.#keys[b] = key
  }
}
