import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createHttpServer, HealthRegistry, httpConfigFrom } from '../../src/http/index.ts'
import { createLicense } from '../../src/license/license.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { FakeEngine } from '../http/support/fake-engine.ts'

export interface Licensed {
  readonly url: string
  readonly log: readonly string[]
  stop(): Promise<void>
}

/** License, HTTP interface and metrics as they are put together in a process, over an engine that only stands there. */
export async function startLicensed(settings: Readonly<Record<string, unknown>>): Promise<Licensed> {
  const config = loadConfig({
    application: { 'runtime.http.host': '127.0.0.1', 'runtime.http.port': 0, ...settings },
  })
  const log: string[] = []
  const license = createLicense({
    config,
    clock: systemClock,
    random: new Random(1),
    log: (line) => log.push(`${line.level} ${line.message}`),
  })
  const view = new FakeEngine('RUNNING')
  const health = new HealthRegistry({ view, license })
  const metrics = createMetrics({ view, health, license, haMode: 'off', version: '0', clock: systemClock })
  const http = createHttpServer({
    view,
    commands: view,
    config: httpConfigFrom(config),
    health,
    license,
    metrics,
    configView: () => config.toNestedMasked(),
    log: (level, message) => log.push(`${level} ${message}`),
  })
  const { url } = await http.listen()
  license.start()
  return {
    url,
    log,
    stop: async () => {
      await license.stop()
      await http.close()
      health.close()
      metrics.close()
    },
  }
}
