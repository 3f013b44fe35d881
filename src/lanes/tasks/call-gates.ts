/** The gates of a lane: one for each function of the application that may be asynchronous, for all its tasks. */
import { functionSlot } from '../../base/counters.ts'
import { messageOf } from '../../base/errors.ts'
import type { CallGate, Origin } from '../../operators/contract.ts'
import type { CompiledNode } from '../../topology/compiled.ts'
import type { CallSpec } from '../../topology/operator-spec.ts'
import type { LaneOptions } from '../lane-options.ts'
import { LaneCallGate } from './call-gate.ts'
import type { Calls } from './calls.ts'

/** Calls that fail are told in the log no more often than this. */
const tellEveryMs = 30_000

export class CallGates {
  readonly #options: LaneOptions
  readonly #calls: Calls
  /** The two sides of a join call one function, by the same settings; any other is told by its node. */
  readonly #gates = new Map<number | CallSpec, LaneCallGate>()
  readonly #shown = new Set<number>()
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(options: LaneOptions, calls: Calls) {
    this.#options = options
    this.#calls = calls
  }

  of({ index, name, spec }: CompiledNode): CallGate | undefined {
    const { clock, timers, random, lanes, maxInFlight, wake, layout, counters } = this.#options
    if (timers === undefined || random === undefined) return undefined
    const bounds = 'calls' in spec ? spec.calls : undefined
    if (bounds === undefined && timers.turns === undefined) return undefined
    const known = this.#gates.get(bounds ?? index)
    if (known !== undefined) return known
    this.#shown.add(index)
    const callsSlot = functionSlot(layout, index, 'calls')
    const waitingSlot = functionSlot(layout, index, 'waiting')
    const limitSlot = functionSlot(layout, index, 'limit')
    // What was called before a reset comes back to a lane that knows nothing of it.
    const isOver = (): boolean => this.#gates.get(bounds ?? index) !== gate
    const gate: LaneCallGate = new LaneCallGate(name, bounds, {
      clock,
      timers,
      random,
      lanes,
      maxInFlight,
      show: (gate) => {
        if (isOver()) return
        counters[callsSlot] = gate.out
        counters[waitingSlot] = gate.waiting
        counters[limitSlot] = gate.limit
      },
      held: (origin) => {
        if (!isOver()) this.#calls.held(origin)
      },
      goesOn: (origin) => {
        if (isOver()) return
        this.#calls.goesOn(origin, index)
        // A turn of the lane shows that it is at work.
        wake()
      },
      failed: (origin, times, error) => {
        if (isOver()) return
        this.#calls.failed(origin, index, error)
        if (times === bounds?.breaker?.after) this.#tell(name, origin, times, error)
        wake()
      },
      settled: (origin) => {
        this.#calls.settled(origin)
        wake()
      },
    })
    this.#gates.set(bounds ?? index, gate)
    return gate
  }

  /** Of many that fail together one is enough. */
  #tell(name: string, { topic, partition, offset }: Origin, times: number, error: unknown): void {
    const { clock, log } = this.#options
    if (log?.isEnabled('warn') !== true || clock.monotonic() - this.#toldAt < tellEveryMs) return
    this.#toldAt = clock.monotonic()
    const message =
      `A call of ${name} has failed ${times} times for the record ${topic}/${partition} at offset ${offset}; ` +
      `it is made again, with pauses, and the next commit waits for it. The last error: ${messageOf(error)}`
    log.write('warn', { node: name, topic, partition, offset }, undefined, message)
  }

  /** What is under way is of no interest any more. */
  reset(): void {
    const { layout, counters } = this.#options
    for (const index of this.#shown) {
      counters[functionSlot(layout, index, 'calls')] = 0
      counters[functionSlot(layout, index, 'waiting')] = 0
    }
    this.#shown.clear()
    for (const gate of this.#gates.values()) gate.close()
    this.#gates.clear()
  }
}
