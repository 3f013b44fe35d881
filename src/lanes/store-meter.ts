/** Counts the reads and writes of one store in the lane's block, and measures one in so many of each. */
import type { Clock } from '../base/clock.ts'
import { type CounterLayout, storeDurationHistogram, storeSlot, storeSlots } from '../base/counters.ts'
import { observe, processBounds } from '../base/histograms.ts'
import type { StoreMeter, StoreOperation } from '../state/base-store.ts'

/** Two looks at the clock cost about as much as a read: of so many operations one pays for them. */
export const measuredEvery = 128

class Operation {
  readonly #counters: Float64Array
  readonly #clock: Clock
  readonly #countAt: number
  readonly #durationsAt: number
  #left = measuredEvery
  #beganAt = 0

  constructor(counters: Float64Array, clock: Clock, countAt: number, durationsAt: number) {
    this.#counters = counters
    this.#clock = clock
    this.#countAt = countAt
    this.#durationsAt = durationsAt
  }

  began(): boolean {
    const counters = this.#counters
    counters[this.#countAt] = (counters[this.#countAt] as number) + 1
    if (--this.#left > 0) return false
    this.#left = measuredEvery
    this.#beganAt = this.#clock.monotonic()
    return true
  }

  ended(): void {
    const seconds = (this.#clock.monotonic() - this.#beganAt) / 1000
    observe(this.#counters, this.#durationsAt, processBounds, seconds)
  }
}

/** Made once a store, for it is told of every operation. Undefined: the layout does not know the store. */
export function storeMeter(
  layout: CounterLayout,
  store: string,
  counters: Float64Array,
  clock: Clock,
): StoreMeter | undefined {
  const index = layout.stores.indexOf(store)
  if (index < 0) return undefined
  const operation = (of: 'gets' | 'puts', kind: 0 | 1): Operation =>
    new Operation(
      counters,
      clock,
      storeSlot(layout, index, storeSlots.indexOf(of)),
      storeDurationHistogram(layout, index, kind),
    )
  const get = operation('gets', 0)
  const put = operation('puts', 1)
  return {
    began: (kind: StoreOperation) => (kind === 'get' ? get.began() : put.began()),
    ended: (kind: StoreOperation) => (kind === 'get' ? get.ended() : put.ended()),
  }
}
