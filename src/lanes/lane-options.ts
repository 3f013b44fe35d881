/** What a lane is given: its place among the lanes, the application, and its ways out. */
import type { Clock } from '../base/clock.ts'
import type { CounterLayout } from '../base/counters.ts'
import type { LogPort } from '../base/logger.ts'
import type { Sizes } from '../base/sizes.ts'
import type { Failpoint } from '../base/failpoint.ts'
import type { DropReason, Rec, Tracing } from '../operators/contract.ts'
import type { StoreBackendFactory } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { CallTimers } from './tasks/call-gate.ts'
import type { ErrorPolicies } from './tasks/error-policy.ts'
import type { FromLane, LaneToLane } from './protocol.ts'
import type { WriteBehindOptions } from './stores/store-writer.ts'

export interface LaneOptions {
  readonly lane: number
  readonly lanes: number
  readonly applicationId: string
  readonly topology: CompiledTopology
  readonly clock: Clock
  readonly backends: StoreBackendFactory
  readonly policies: ErrorPolicies
  readonly maxInFlight: number
  /** For calls of asynchronous functions that wait; left out: they all begin at once, and none is made again. */
  readonly timers?: CallTimers
  readonly random?: () => number
  /** Uncommitted state and output from which on the lane asks for a commit. */
  readonly uncommittedMaxBytes: number
  /** Rows to be told at the commit from which on the lane asks for one; left out: any number. */
  readonly maxDirtyRows?: number
  /** Left out: the usual ones. */
  readonly sizes?: Sizes
  /** When durable stores are written; left out: with every commit. */
  readonly writeBehind?: WriteBehindOptions
  readonly layout: CounterLayout
  readonly counters: Float64Array
  /** The engine notes in the counters what is known of the input; left out: all is known at any moment. */
  readonly tellsInput?: boolean
  /** Where all is known at any moment: the earliest event time of what other sub-topologies hold back above this node. */
  readonly heldAbove?: ((node: number) => number) | undefined
  readonly toEngine: (message: FromLane, transfer: ArrayBuffer[]) => void
  readonly toLane: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void
  /** Asks that `run` be called again soon; called when a user function's promise settled. */
  readonly wake: () => void
  readonly failpoint?: Failpoint | undefined
  /** Where the application's functions write to; left out: nowhere. */
  readonly log?: LogPort | undefined
  readonly tracing?: Tracing | undefined
  /** Told of every record that goes no further, for the test driver; running lanes only count them. */
  readonly dropped?: ((rec: Rec, reason: DropReason, node: string | undefined) => void) | undefined
}
