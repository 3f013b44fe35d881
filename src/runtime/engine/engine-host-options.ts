/** What the control thread gives to the host of an engine. */
import type { Clock } from '../../base/clock.ts'
import type { BrokerTrouble } from '../../broker/port.ts'
import type { EngineFact } from '../../engine/protocol.ts'
import type { EngineError } from '../../base/errors.ts'
import type { LogLine } from '../contract.ts'
import type { EngineThreadsOptions } from './engine-threads.ts'

export interface EngineHostOptions extends EngineThreadsOptions {
  readonly historySize: number
  /** The exit code of a failure that has none of its own. */
  readonly failureExitCode: number
  readonly bootstrapServers: string
  /** Why the broker of this process stores nothing. */
  readonly brokerTrouble: () => BrokerTrouble | null
  readonly clock: Clock
  readonly log: (line: LogLine) => void
  /** Called with the exit code once the engine has ended, by itself or by `stop`. */
  readonly ended: (code: number, error: EngineError | undefined) => void
  /** With high availability: what the coordinator is told. */
  readonly ha?: EngineHaLink
}

export interface EngineHaLink {
  fact(fact: EngineFact): void
  /** Why this pod cannot be paused or unpaused any more, though it still processes; null where it can. */
  tooLateToPause(): string | null
  /** The operator paused or unpaused this pod. */
  pauseIntent(paused: boolean): void
}
