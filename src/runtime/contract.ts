/** What an embedding program and the command line hold of a running application. */
import type { BrokerPort } from '../broker/port.ts'
import type { EngineCommands, EngineView } from '../engine/view.ts'

export interface RuntimeOptions {
  /** Path or file URL of the application's module: every lane loads it anew. */
  readonly application: string | URL
  /** Configuration by dotted key (`{ 'engine.lanes.count': 2 }`) or nested; over the file and under the environment. */
  readonly config?: Readonly<Record<string, unknown>>
  /** YAML file. */
  readonly configFile?: string
  /** `key=value`, strongest of all. */
  readonly set?: readonly string[]
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** Where log lines go; default: standard error. */
  readonly log?: (line: LogLine) => void
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly component: string
  readonly message: string
  readonly fields?: Readonly<Record<string, unknown>>
}

export interface Runtime {
  readonly view: EngineView
  readonly commands: EngineCommands
  /** A client of the broker the engine runs on (feeding, printing, tests). */
  readonly broker: BrokerPort
  /** Address of the HTTP interface, undefined where it is disabled. */
  readonly url: string | undefined
  /**
   * Resolves once every source topic is read to its end, all that follows is processed, every window that the input
   * closes is emitted, and all is committed.
   */
  untilIdle(): Promise<void>
  /** Drains, commits and closes; resolves with the exit code. Again: ends at once. */
  stop(): Promise<number>
  /** Resolves with the exit code when the runtime has ended by itself or by `stop`. */
  readonly ended: Promise<number>
}
