/** The HTTP interface of a running application, with its health indicators, metrics and license. */
import { readFileSync } from 'node:fs'
import { systemClock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import {
  createHttpServer,
  HealthRegistry,
  type HttpServer,
  httpConfigFrom,
  schemaRegistryCheck,
} from '../http/index.ts'
import type { License } from '../license/license.ts'
import { createMetrics, type Metrics } from '../metrics/index.ts'
import type { LogLine } from './contract.ts'
import type { EngineHost } from './engine-host.ts'
import type { HaLink } from './ha.ts'

/** From the package file: two folders up in the sources, one in the built package. */
export function packageVersion(): string {
  for (const path of ['../../package.json', '../package.json']) {
    try {
      const file = readFileSync(new URL(path, import.meta.url), 'utf8')
      return (JSON.parse(file) as { version: string }).version
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return 'unknown'
}

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
  readonly log: (line: LogLine) => void
}

/** Serves the interface where it is enabled; otherwise it is there to be mounted in a server of the application's own. */
export async function startHttp({ config, host, license, ha, log }: HttpParts): Promise<HttpHandle> {
  const httpConfig = httpConfigFrom(config)
  const version = packageVersion()
  const registry = config.get('schema-registry.url')
  const health = new HealthRegistry({
    view: host,
    license,
    ha,
    standbyIsReady: config.get('ha.readiness-when-standby'),
    clock: systemClock,
    ...(registry !== null && { schemaRegistry: schemaRegistryCheck(registry) }),
  })
  const haMode = config.get('ha.mode')
  const warn = (level: 'warn', message: string): void => log({ level, component: 'metrics', message })
  const metrics = httpConfig.metricsEnabled
    ? createMetrics({ view: host, license, health, ha, haMode, version, clock: systemClock, log: warn })
    : null
  const server = createHttpServer({
    view: host,
    commands: host,
    config: httpConfig,
    health,
    license,
    metrics,
    ha,
    configView: () => config.toNestedMasked(),
    version,
    clock: systemClock,
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
      metrics?.close()
      health.close()
    },
  }
}
