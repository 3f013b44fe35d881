/** The HTTP interface of a running application, with its health indicators, metrics and license. */
import { systemClock } from '../base/clock.ts'
import { packageVersion } from '../base/package-version.ts'
import type { Config } from '../config/config.ts'
import {
  createHttpServer,
  HealthRegistry,
  type HttpServer,
  httpConfigFrom,
  type IndicatorOptions,
} from '../http/index.ts'
import type { License } from '../license/license.ts'
import type { DataAccess } from '../http/data-seam.ts'
import { createMetrics, type Metrics } from '../metrics/index.ts'
import type { Diagnosis } from '../view/diagnosis/diagnosis.ts'
import type { LogLine } from './contract.ts'
import type { EngineHost } from './engine/engine-host.ts'
import type { HaLink } from './ha.ts'

export interface HttpHandle {
  /** Undefined where `runtime.http.enabled` is false. */
  readonly url: string | undefined
  readonly health: HealthRegistry
  readonly metrics: Metrics | null
  readonly handler: HttpServer['handler']
  close(): Promise<void>
}

export interface HttpParts {
  readonly config: Config
  readonly host: EngineHost
  readonly license: License
  /** Null where `ha.mode` is `off`. */
  readonly ha: HaLink | null
  /** The check of the schema registry; undefined where none is configured. */
  readonly schemas: IndicatorOptions['check'] | undefined
  readonly diagnosis: Diagnosis
  readonly data: DataAccess
  readonly log: (line: LogLine) => void
}

/** Serves the interface where it is enabled. Otherwise a server of the application's own may mount it. */
export async function startHttp(parts: HttpParts): Promise<HttpHandle> {
  const { config, host, license, ha, schemas, diagnosis, data, log } = parts
  const httpConfig = httpConfigFrom(config)
  const version = packageVersion()
  const health = new HealthRegistry({
    view: host,
    license,
    ha,
    engineSilentMs: () => diagnosis.engineSilentMs(),
    standbyIsReady: config.get('ha.readiness-when-standby'),
    clock: systemClock,
    ...(schemas && { schemaRegistry: schemas }),
  })
  const haMode = config.get('ha.mode')
  const why = () => diagnosis.verdict()
  const warn = (level: 'warn', message: string): void => log({ level, component: 'metrics', message })
  const metrics = httpConfig.metricsEnabled
    ? createMetrics({ view: host, license, health, ha, haMode, version, clock: systemClock, log: warn, why })
    : null
  const bridge = metrics !== null && config.get('telemetry.opentelemetry') ? await bridgeTo(metrics) : undefined
  const shownConfig = config.toNestedMasked()
  const shownSources = config.allSources()
  const server = createHttpServer({
    view: host,
    commands: host,
    config: httpConfig,
    health,
    license,
    metrics,
    ha,
    why,
    data,
    configView: () => shownConfig,
    configSources: () => shownSources,
    version,
    clock: systemClock,
    startedAtMs: Math.round(systemClock.now() - process.uptime() * 1000),
    log: (level, message) => log({ level, component: 'http', message }),
    maskText: (text) => config.maskText(text),
  })
  const url = httpConfig.enabled ? (await server.listen()).url : undefined
  return {
    url,
    health,
    metrics,
    handler: server.handler,
    close: async () => {
      await server.close()
      bridge?.()
      metrics?.close()
      health.close()
    },
  }
}

/** Loaded only where OpenTelemetry is asked for. */
async function bridgeTo(metrics: Metrics): Promise<() => void> {
  const { loadOtelApi } = await import('../lanes/telemetry/api.ts')
  const { bridgeMetrics } = await import('../metrics/otel.ts')
  return bridgeMetrics(await loadOtelApi(), () => metrics.moment())
}
