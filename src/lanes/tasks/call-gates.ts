/** The gates of a lane: one for each function of the application that may be asynchronous, for all its tasks. */
import { functionSlot } from '../../base/counters.ts'
import type { CallGate } from '../../operators/contract.ts'
import type { CompiledNode } from '../../topology/compiled.ts'
import type { CallSpec } from '../../topology/operator-spec.ts'
import type { LaneOptions } from '../lane-options.ts'
import { LaneCallGate } from './call-gate.ts'
import type { Calls } from './calls.ts'

export class CallGates {
  readonly #options: LaneOptions
  readonly #calls: Calls
  /** The two sides of a join call one function, by the same settings; any other is told by its node. */
  readonly #gates = new Map<number | CallSpec, LaneCallGate>()
  readonly #shown = new Set<number>()

  constructor(options: LaneOptions, calls: Calls) {
    this.#options = options
    this.#calls = calls
  }

  of({ index, name, spec }: CompiledNode): CallGate | undefined {
    const { clock, timers, random, lanes, maxInFlight, wake, layout, counters } = this.#options
    if (timers === undefined || random === undefined) return undefined
    const bounds = 'calls' in spec ? spec.calls : undefined
    const known = this.#gates.get(bounds ?? index)
    if (known !== undefined) return known
    this.#shown.add(index)
    const gate = new LaneCallGate(name, bounds, {
      clock,
      timers,
      random,
      lanes,
      maxInFlight,
      show: (gate) => {
        counters[functionSlot(layout, index, 'calls')] = gate.out
        counters[functionSlot(layout, index, 'waiting')] = gate.waiting
        counters[functionSlot(layout, index, 'limit')] = gate.limit
      },
      held: (origin) => this.#calls.held(origin),
      goesOn: (origin) => {
        this.#calls.goesOn(origin)
        // A turn of the lane shows that it is at work.
        wake()
      },
    })
    this.#gates.set(bounds ?? index, gate)
    return gate
  }

  /** What is under way is of no interest any more. */
  reset(): void {
    const { layout, counters } = this.#options
    for (const index of this.#shown) {
      counters[functionSlot(layout, index, 'calls')] = 0
      counters[functionSlot(layout, index, 'waiting')] = 0
    }
    this.#shown.clear()
    this.#gates.clear()
  }
}
