/** Counts the reads and writes of one store in the lane's block, and measures one in so many of them. */
import type { Clock } from '../../base/clock.ts'
import { type CounterLayout, storeDurationHistogram, storeSlot, storeSlots } from '../../base/counters.ts'
import { observe, processBounds } from '../../base/histograms.ts'
import type { StoreMeter, StoreOperation } from '../../state/stores/base-store.ts'

/**
 * Two looks at the clock cost about as much as a read: of so many operations one pays for them. A prime, so that where
 * reads and writes take turns both are met.
 */
export const measuredEvery = 127

/** One plain class for all stores, and nothing called in between: it stands in the way of every read and write. */
class LaneStoreMeter implements StoreMeter {
  readonly #counters: Float64Array
  readonly #clock: Clock
  readonly #getsAt: number
  readonly #putsAt: number
  readonly #durationsAt: readonly [get: number, put: number]
  #left = measuredEvery
  #beganAt = 0

  constructor(layout: CounterLayout, store: number, counters: Float64Array, clock: Clock) {
    this.#counters = counters
    this.#clock = clock
    this.#getsAt = storeSlot(layout, store, storeSlots.indexOf('gets'))
    this.#putsAt = storeSlot(layout, store, storeSlots.indexOf('puts'))
    this.#durationsAt = [storeDurationHistogram(layout, store, 0), storeDurationHistogram(layout, store, 1)]
  }

  began(operation: StoreOperation): boolean {
    const at = operation === 'get' ? this.#getsAt : this.#putsAt
    const counters = this.#counters
    counters[at] = (counters[at] as number) + 1
    if (--this.#left > 0) return false
    this.#left = measuredEvery
    this.#beganAt = this.#clock.monotonic()
    return true
  }

  ended(operation: StoreOperation): void {
    const seconds = (this.#clock.monotonic() - this.#beganAt) / 1000
    observe(this.#counters, this.#durationsAt[operation === 'get' ? 0 : 1], processBounds, seconds)
  }
}

/** Undefined: the layout does not know the store. */
export function storeMeter(
  layout: CounterLayout,
  store: string,
  counters: Float64Array,
  clock: Clock,
): StoreMeter | undefined {
  const index = layout.stores.indexOf(store)
  return index < 0 ? undefined : new LaneStoreMeter(layout, index, counters, clock)
}
