/** The HTTP interface of a running application, with its health indicators, metrics and license. */
import { readFileSync } from 'node:fs'
import { systemClock } from '../base/clock.ts'
import type { Config } from '../config/config.ts'
import { createHttpServer, HealthRegistry, httpConfigFrom } from '../http/index.ts'
import type { License } from '../license/license.ts'
import { createMetrics } from '../metrics/index.ts'
import type { LogLine } from './contract.ts'
import type { EngineHost } from './engine-host.ts'

/** From the package file: two folders up in the sources, one in the built package. */
function packageVersion(): string {
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
  readonly url: string
  readonly health: HealthRegistry
  close(): Promise<void>
}

export interface HttpParts {
  readonly config: Config
  readonly host: EngineHost
  readonly license: License
  readonly log: (line: LogLine) => void
}

/** Undefined where `runtime.http.enabled` is false. */
export async function startHttp({ config, host, license, log }: HttpParts): Promise<HttpHandle | undefined> {
  const httpConfig = httpConfigFrom(config)
  if (!httpConfig.enabled) return undefined
  const health = new HealthRegistry({ view: host, license, ha: null, clock: systemClock })
  const metrics = httpConfig.metricsEnabled
    ? createMetrics({
        view: host,
        license,
        health,
        haMode: config.get('ha.mode'),
        version: packageVersion(),
        clock: systemClock,
      })
    : null
  const server = createHttpServer({
    view: host,
    commands: host,
    config: httpConfig,
    health,
    license,
    metrics,
    configView: () => config.toNestedMasked(),
    clock: systemClock,
    log: (level, message) => log({ level, component: 'http', message }),
    maskText: (text) => config.maskText(text),
  })
  const { url } = await server.listen()
  return {
    url,
    health,
    close: async () => {
      await server.close()
      health.close()
    },
  }
}
