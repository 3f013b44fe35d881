/**
 * How far a standby's stores lag, in records and in time. Time is measured between two moments of the own clock: when an
 * end was seen at the broker, and now. No record's timestamp and no other machine's clock comes into it.
 */
import type { Clock } from '../../base/clock.ts'
import type { StoreReplay } from './store-replay.ts'

interface Sample {
  readonly end: number
  at: number
}

/** Ends remembered of one store; more would only be needed by one that is far behind anyway. */
const samplesKept = 256

export class Lag {
  readonly #clock: Clock
  readonly #samples = new Map<StoreReplay, Sample[]>()
  readonly #openedAt: number
  /** When the broker last answered with everything there is. */
  #freshAt: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#openedAt = clock.monotonic()
    this.#freshAt = this.#openedAt
  }

  /** The broker has told the ends of these stores; there may be others. */
  sawEnds(stores: readonly StoreReplay[]): void {
    const at = this.#clock.monotonic()
    for (const store of stores) this.#sample(store, at)
  }

  /** The broker has told the ends of all stores. */
  answered(stores: readonly StoreReplay[]): void {
    const at = this.#clock.monotonic()
    this.sawEnds(stores)
    if (stores.every((store) => store.position >= store.end)) this.#freshAt = at
  }

  progress(stores: readonly StoreReplay[]): { lagRecords: number; lagMs: number; freshnessMs: number } {
    const now = this.#clock.monotonic()
    let lagRecords = 0
    let reachedAt = stores.length === 0 ? this.#freshAt : Number.POSITIVE_INFINITY
    for (const store of stores) {
      lagRecords += Math.max(0, store.end - store.applied)
      reachedAt = Math.min(reachedAt, this.#reachedAt(store))
    }
    return { lagRecords, lagMs: now - reachedAt, freshnessMs: now - this.#freshAt }
  }

  #sample(store: StoreReplay, at: number): void {
    const samples = this.#samples.get(store) ?? []
    this.#samples.set(store, samples)
    const newest = samples.at(-1)
    if (newest?.end === store.end) newest.at = at
    else samples.push({ end: store.end, at })
    if (samples.length > samplesKept) samples.splice(1, 1)
  }

  /** The newest moment whose end the store has reached. */
  #reachedAt(store: StoreReplay): number {
    const samples = this.#samples.get(store) ?? []
    while (samples.length > 1 && (samples[1] as Sample).end <= store.applied) samples.shift()
    const [oldest] = samples
    return oldest !== undefined && oldest.end <= store.applied ? oldest.at : this.#openedAt
  }
}
