/**
 * The minimum of many numbers of which one changes at a time: a complete binary tree in one array. A change costs the
 * logarithm of the number of slots at most, and ends as soon as a parent keeps its value.
 */
export class MinTree {
  #capacity: number
  #tree: Float64Array

  /** All slots begin at `Infinity`. `capacity` is a power of two. */
  constructor(capacity: number) {
    this.#capacity = capacity
    this.#tree = new Float64Array(capacity * 2).fill(Number.POSITIVE_INFINITY)
  }

  get min(): number {
    return this.#tree[1] as number
  }

  get(slot: number): number {
    return this.#tree[this.#capacity + slot] as number
  }

  set(slot: number, value: number): void {
    const tree = this.#tree
    let at = this.#capacity + slot
    if (tree[at] === value) return
    tree[at] = value
    while (at > 1) {
      const parent = at >> 1
      const left = tree[parent * 2] as number
      const right = tree[parent * 2 + 1] as number
      const least = Math.min(left, right)
      if (tree[parent] === least) return
      tree[parent] = least
      at = parent
    }
  }

  grow(capacity: number): void {
    const old = this.#tree.subarray(this.#capacity)
    this.#capacity = capacity
    const tree = new Float64Array(capacity * 2).fill(Number.POSITIVE_INFINITY)
    tree.set(old, capacity)
    for (let at = capacity - 1; at >= 1; at--) {
      tree[at] = Math.min(tree[at * 2] as number, tree[at * 2 + 1] as number)
    }
    this.#tree = tree
  }
}
