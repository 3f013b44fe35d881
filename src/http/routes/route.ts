import type { FlowStage, Verdict } from '../../view/diagnosis/finding.ts'
import type { FlowReport } from '../../view/flow-rates.ts'
import type { EngineCommands, EngineView } from '../../view/view.ts'
import type { Clock } from '../../base/clock.ts'
import type { DataAccess } from '../data-seam.ts'
import type { HaView } from '../ha-seam.ts'
import type { HealthRegistry } from '../health.ts'
import type { LicenseSource } from '../license-seam.ts'
import type { Parameter, ParameterValues } from './parameters.ts'
import type { Reply } from './reply.ts'
import type { SchemaName } from './schemas.ts'

/** Which switch turns an endpoint on; off, it is unknown (404), save `/metrics`, which says so (503). */
export type Gate = 'always' | 'metrics' | 'config' | 'ha' | 'debug' | 'stores' | 'deadLetters'

/** `engine`: 503 until the application's topology is compiled. `started`: 503 until the application has started. */
export type Needs = 'nothing' | 'engine' | 'started'

/** What endpoints answer from. */
export interface RouteServices {
  readonly view: EngineView
  readonly commands: EngineCommands
  readonly health: HealthRegistry
  readonly license: LicenseSource
  /** The merged configuration, masked. */
  readonly configView: () => Readonly<Record<string, unknown>>
  readonly configSources: () => Readonly<Record<string, string>>
  readonly metrics: { scrape(): Promise<string> } | null
  readonly ha: HaView | null
  /** Why nothing moves, as of now. */
  readonly why: () => Verdict
  /** How fast records move; `stages` become part of it. */
  readonly flow: (stages: readonly FlowStage[], withHistory: boolean) => FlowReport
  /** Rows and dead letters; null where nobody gives access to them. */
  readonly data: DataAccess | null
  /** Whether `/stores/{name}` is served. */
  readonly rowsShown: boolean
  readonly clock: Clock
  /** Epoch milliseconds of the process's start, and how long ago that was. */
  readonly startedAtMs: number
  uptimeMs(): number
  /** Takes secrets out of free text. */
  mask(text: string): string
  /** Paths registered in this instance. */
  endpoints(): readonly string[]
  openApi(): object
}

export interface RouteRequest {
  readonly accept: string | undefined
  readonly parameters: ParameterValues
  /** Address of the client, where it is known. */
  readonly from: string | undefined
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal
}

export interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly gate: Gate
  readonly needs: Needs
  /** Reveals internals or customer data: named in the warning at start. */
  readonly sensitive: boolean
  readonly parameters: readonly Parameter[]
  readonly success: 200 | 202
  /** Statuses beyond the success that the endpoint itself gives. */
  readonly failures: readonly number[]
  readonly schema: SchemaName | null
  /** What it answers with besides JSON, by content type; the default first. */
  readonly formats: 'json' | 'json or text' | 'text or json' | 'yaml or json' | 'metrics'
  readonly summary: string
  readonly doc: string
  readonly handle: (services: RouteServices, request: RouteRequest) => Reply | Promise<Reply>
}

/** What most endpoints have in common. */
export const routeDefaults = {
  method: 'GET',
  gate: 'always',
  needs: 'nothing',
  sensitive: false,
  parameters: [],
  success: 200,
  failures: [],
  formats: 'json',
} as const
