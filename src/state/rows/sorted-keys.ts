/** Keys in order: a list of short sorted runs. Point look-ups do without it; stores build it when a range is first read. */
const runLength = 256

export class SortedKeys {
  #runs: string[][] = []
  /** Moves with every change, so that a cursor knows when its place is no longer its place. */
  #version = 0

  constructor(keys: Iterable<string> = []) {
    const sorted = [...keys].sort()
    for (let i = 0; i < sorted.length; i += runLength / 2) this.#runs.push(sorted.slice(i, i + runLength / 2))
  }

  /** The key must not be there yet. */
  add(key: string): void {
    this.#version++
    const runs = this.#runs
    if (runs.length === 0) {
      runs.push([key])
      return
    }
    const at = Math.min(this.#runOf(key), runs.length - 1)
    const run = runs[at] as string[]
    run.splice(position(run, key), 0, key)
    if (run.length > runLength) {
      // A run that only ever grows at its end, as timestamps make it, is cut near its end and stays full.
      const cut = run[run.length - 1] === key && at === runs.length - 1 ? runLength - 8 : runLength / 2
      runs.splice(at + 1, 0, run.splice(cut))
    }
  }

  delete(key: string): void {
    const at = this.#runOf(key)
    const run = this.#runs[at]
    if (run === undefined) return
    const i = position(run, key)
    if (run[i] !== key) return
    this.#version++
    run.splice(i, 1)
    if (run.length === 0) this.#runs.splice(at, 1)
  }

  /** Keys in [from, to), also while keys come and go: each step continues behind the last key given. */
  *range(from: string | undefined, to: string | undefined, reverse = false): IterableIterator<string> {
    let [at, i] = reverse ? this.#before(to) : this.#atOrAfter(from)
    let version = this.#version
    for (;;) {
      const key = this.#runs[at]?.[i]
      if (key === undefined) return
      if (reverse ? from !== undefined && key < from : to !== undefined && key >= to) return
      yield key
      if (version !== this.#version) {
        ;[at, i] = reverse ? this.#before(key) : this.#atOrAfter(`${key}\0`)
        version = this.#version
      } else if (reverse) {
        if (--i < 0) i = (this.#runs[--at]?.length ?? 0) - 1
      } else if (++i >= (this.#runs[at] as string[]).length) {
        at++
        i = 0
      }
    }
  }

  /** First run whose last key is not less than `key`. */
  #runOf(key: string): number {
    const runs = this.#runs
    let low = 0
    let high = runs.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const run = runs[middle] as string[]
      if ((run[run.length - 1] as string) < key) low = middle + 1
      else high = middle
    }
    return low
  }

  #atOrAfter(key: string | undefined): [run: number, position: number] {
    if (key === undefined) return [0, 0]
    const at = this.#runOf(key)
    const run = this.#runs[at]
    return [at, run === undefined ? 0 : position(run, key)]
  }

  #before(key: string | undefined): [run: number, position: number] {
    const last = this.#runs.length - 1
    if (key === undefined) return [last, (this.#runs[last]?.length ?? 0) - 1]
    const [at, i] = this.#atOrAfter(key)
    return i > 0 ? [at, i - 1] : [at - 1, (this.#runs[at - 1]?.length ?? 0) - 1]
  }
}

/** First position whose key is not less than `key`. */
export function position<K extends string | number>(run: readonly K[], key: K): number {
  let low = 0
  let high = run.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((run[middle] as K) < key) low = middle + 1
    else high = middle
  }
  return low
}
