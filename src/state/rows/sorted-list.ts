/**
 * Items in order: a list of short sorted runs, so that no addition and no removal moves many of them. It is mostly appended to, and
 * taken from the front.
 */
export const runLength = 512

export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number
  /** None of them is empty. */
  readonly #runs: T[][] = []
  #size = 0

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  get first(): T | undefined {
    return this.#runs[0]?.[0]
  }

  add(item: T): void {
    this.#size++
    const runs = this.#runs
    const at = this.#runOf(item)
    const run = runs[Math.min(at, runs.length - 1)]
    if (run === undefined) {
      runs.push([item])
    } else if (at === runs.length) {
      if (run.length < runLength) run.push(item)
      else runs.push([item])
    } else {
      run.splice(this.#positionIn(run, item), 0, item)
      if (run.length > runLength) runs.splice(at + 1, 0, run.splice(runLength / 2))
    }
  }

  /** Removes the item that compares as equal. */
  remove(item: T): void {
    const at = this.#runOf(item)
    const run = this.#runs[at]
    if (run === undefined) return
    const i = this.#positionIn(run, item)
    if (this.#compare(run[i] as T, item) !== 0) return
    this.#size--
    if (run.length === 1) this.#runs.splice(at, 1)
    else run.splice(i, 1)
  }

  /** Takes items from the front while the test holds. */
  takeWhile(test: (item: T) => boolean): T[] {
    const taken: T[] = []
    let whole = 0
    for (const run of this.#runs) {
      let count = 0
      while (count < run.length && test(run[count] as T)) taken.push(run[count++] as T)
      if (count < run.length) {
        if (count > 0) run.splice(0, count)
        break
      }
      whole++
    }
    if (whole > 0) this.#runs.splice(0, whole)
    this.#size -= taken.length
    return taken
  }

  /** Shows items in order for as long as `show` wants more, from the first one on that does not lie before: those come first. */
  each(liesBefore: (item: T) => boolean, show: (item: T) => boolean): void {
    const runs = this.#runs
    let at = firstNot(runs, (run) => liesBefore(run[run.length - 1] as T))
    let i = firstNot(runs[at] ?? [], liesBefore)
    for (; at < runs.length; at++) {
      const run = runs[at] as T[]
      for (; i < run.length; i++) if (!show(run[i] as T)) return
      i = 0
    }
  }

  /** First run whose last item does not lie before this one. */
  #runOf(item: T): number {
    const runs = this.#runs
    // Most items come behind all others.
    const last = runs[runs.length - 1]
    if (last === undefined || this.#endsBefore(last, item)) return runs.length
    return firstNot(runs, (run) => this.#endsBefore(run, item))
  }

  #endsBefore(run: readonly T[], item: T): boolean {
    return this.#compare(run[run.length - 1] as T, item) < 0
  }

  #positionIn(run: readonly T[], item: T): number {
    return firstNot(run, (each) => this.#compare(each, item) < 0)
  }
}

/** Position of the first for which this does not hold, where it holds for all before that one and for none behind. */
export function firstNot<T>(items: readonly T[], holds: (item: T) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(items[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}
