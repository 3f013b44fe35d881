/** What a lane is given: its place among the lanes, the application, and its ways out. */
import type { Clock } from '../base/clock.ts'
import type { CounterLayout } from '../base/counters.ts'
import type { Failpoint } from '../base/failpoint.ts'
import type { StoreBackendFactory } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { ErrorPolicies } from './error-policy.ts'
import type { FromLane, LaneToLane } from './protocol.ts'
import type { WriteBehindOptions } from './store-writer.ts'

export interface LaneOptions {
  readonly lane: number
  readonly lanes: number
  readonly applicationId: string
  readonly topology: CompiledTopology
  readonly clock: Clock
  readonly backends: StoreBackendFactory
  readonly policies: ErrorPolicies
  readonly maxInFlight: number
  /** Uncommitted state and output from which on the lane asks for a commit. */
  readonly uncommittedMaxBytes: number
  /** When durable stores are written; left out: with every commit. */
  readonly writeBehind?: WriteBehindOptions
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly toEngine: (message: FromLane, transfer: ArrayBuffer[]) => void
  readonly toLane: (lane: number, message: LaneToLane, transfer: ArrayBuffer[]) => void
  /** Asks that `run` be called again soon; called when a user function's promise settled. */
  readonly wake: () => void
  readonly failpoint?: Failpoint | undefined
}
