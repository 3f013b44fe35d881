/**
 * How many hand-offs deep each source is taken in. All sources of a sub-topology lie at one level, that of the deepest:
 * what meets in a task comes to it in one order. Only sources that feed one another, by way of other sub-topologies,
 * cannot lie beside each other: the left side of a foreign-key join, or a stream re-keyed and joined with its table again.
 */
import { invalid } from '../physical.ts'

export function levelsOf(
  sources: readonly number[],
  feeding: ReadonlyMap<number, readonly number[]>,
  groupOf: (source: number) => number,
  nameOf: (source: number) => string,
  /** Those whose records change what is read on the way to a source. */
  shaping: ReadonlyMap<number, readonly number[]> = new Map(),
): Map<number, number> {
  const together = new Together(sources, feeding)
  const circle = together.circle()
  if (circle !== undefined) {
    throw invalid(`records would go round in a circle through ${nameOf(circle)}; write to a topic instead`)
  }
  for (const [source, shapers] of shaping) for (const shaper of shapers) together.feed(source, shaper)
  for (const source of sources) {
    for (const other of sources) if (other < source && groupOf(other) === groupOf(source)) together.join(other, source)
  }
  return together.levels()
}

/** Sources that lie at one level, and which of these sets feed which. */
class Together {
  readonly #sources: readonly number[]
  #feeding: ReadonlyMap<number, readonly number[]>
  #setOf: Map<number, number>

  constructor(sources: readonly number[], feeding: ReadonlyMap<number, readonly number[]>) {
    this.#sources = sources
    this.#feeding = feeding
    this.#setOf = new Map(sources.map((source) => [source, source]))
  }

  /** Puts a source behind another one, unless that is fed by it. */
  feed(source: number, feeder: number): void {
    const before = this.#feeding
    const feeders = before.get(source) ?? []
    if (feeders.includes(feeder)) return
    this.#feeding = new Map([...before, [source, [...feeders, feeder]]])
    if (this.circle() !== undefined) this.#feeding = before
  }

  /** Puts two sources at one level, unless one of them feeds the other. */
  join(a: number, b: number): void {
    const before = this.#setOf
    const from = before.get(b)
    const to = before.get(a) as number
    this.#setOf = new Map([...before].map(([source, set]) => [source, set === from ? to : set]))
    if (this.circle() !== undefined) this.#setOf = before
  }

  /** A source that is fed by its own set, however indirectly. */
  circle(): number | undefined {
    const done = new Set<number>()
    const visiting = new Set<number>()
    const visit = (set: number): number | undefined => {
      if (visiting.has(set)) return set
      if (done.has(set)) return undefined
      visiting.add(set)
      for (const above of this.#above(set)) {
        const found = visit(above)
        if (found !== undefined) return found
      }
      visiting.delete(set)
      done.add(set)
      return undefined
    }
    for (const source of this.#sources) {
      const found = visit(this.#setOf.get(source) as number)
      if (found !== undefined) return found
    }
    return undefined
  }

  levels(): Map<number, number> {
    const known = new Map<number, number>()
    const of = (set: number): number => {
      let level = known.get(set)
      if (level === undefined) {
        level = Math.max(-1, ...[...this.#above(set)].map(of)) + 1
        known.set(set, level)
      }
      return level
    }
    return new Map([...this.#setOf].map(([source, set]) => [source, of(set)]))
  }

  #above(set: number): Set<number> {
    const above = new Set<number>()
    for (const source of this.#sources) {
      if (this.#setOf.get(source) !== set) continue
      for (const feeder of this.#feeding.get(source) ?? []) above.add(this.#setOf.get(feeder) as number)
    }
    return above
  }
}
