/** What an engine is given: everything it knows of the world. */
import type { Clock } from '../base/clock.ts'
import type { CounterLayout } from '../base/counters.ts'
import type { Failpoint } from '../base/failpoint.ts'
import type { Timers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { CursorTimestamp } from '../lanes/extraction.ts'
import type { ToLane } from '../lanes/protocol.ts'
import type { CommitReport } from './commit/machine.ts'
import type { EngineFact } from './protocol.ts'
import type { EngineSettings } from './settings.ts'

export interface EngineOptions {
  readonly settings: EngineSettings
  readonly broker: BrokerPort
  readonly clock: Clock
  readonly timers: Timers
  readonly layout: CounterLayout
  readonly counters: Float64Array
  readonly laneCounters: readonly Float64Array[]
  /** Node names by index, for snapshots. */
  readonly nodeNames: readonly string[]
  readonly send: (lane: number, message: ToLane, transfer: ArrayBuffer[]) => void
  readonly fact: (fact: EngineFact) => void
  /** Timestamp functions of the application by source. */
  readonly extractors?: ReadonlyMap<number, CursorTimestamp>
  readonly failpoint?: Failpoint | undefined
  /** Told of every commit, for traces. */
  readonly committed?: ((report: CommitReport) => void) | undefined
}
