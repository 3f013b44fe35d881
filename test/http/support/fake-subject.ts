import { setTimeout as sleep } from 'node:timers/promises'
import type { HaCommand, HaView } from '../../../src/http/ha-seam.ts'
import { HealthRegistry } from '../../../src/http/health.ts'
import { defaultHttpConfig } from '../../../src/http/http-config.ts'
import { noKeyLicense } from '../../../src/http/license-seam.ts'
import { createHttpServer, type HttpServerOptions } from '../../../src/http/server/server.ts'
import { createMetrics } from '../../../src/metrics/index.ts'
import { ask } from './client.ts'
import { epochMs, FakeEngine } from './fake-engine.ts'
import { sampleHistory } from './ha-samples.ts'
import type { Instance, Situation, Subject } from './subject.ts'

export const sampleConfigView = {
  engine: { lanes: { count: null }, processing: { 'state-transition-history-size': 20 } },
  runtime: { http: { host: '127.0.0.1', port: 0 } },
  broker: { sasl: { password: '******' }, 'bootstrap-servers': 'broker-1:9092' },
}

export async function startFake(
  situation: Situation = {},
  engine?: FakeEngine,
  own: Partial<HttpServerOptions> = {},
): Promise<Instance & { fake: FakeEngine }> {
  const state = situation.state ?? 'RUNNING'
  const fake = engine ?? new FakeEngine(state === 'UNINITIALIZED' ? 'CREATED' : state)
  if (state === 'UNINITIALIZED') fake.initialized = false
  const log: string[] = []
  const published: HaCommand[] = []
  const license = situation.license
  const licenseSource =
    license === undefined
      ? noKeyLicense()
      : { state: () => license, readiness: () => ({ up: license.up, details: { status: license.status } }) }
  const ha: HaView | null =
    situation.ha === undefined
      ? null
      : {
          status: () => situation.ha ?? null,
          history: () => (situation.ha === undefined ? null : sampleHistory),
          publish: async (command) => {
            published.push(command)
            return 4711
          },
        }
  const registry = situation.schemaRegistry
  const clock = { now: () => epochMs + 5000, monotonic: () => performance.now() }
  const health = new HealthRegistry({
    view: fake,
    license: licenseSource,
    ha,
    clock,
    ...(registry === undefined ? {} : { schemaRegistry: () => registry === 'up' }),
  })
  const config = { ...defaultHttpConfig, host: '127.0.0.1', port: 0, haEnabled: ha !== null, ...situation.config }
  const metrics = createMetrics({
    view: fake,
    health,
    license: licenseSource,
    ha,
    haMode: 'off',
    version: '0.1.0',
    clock,
  })
  const server = createHttpServer({
    view: fake,
    commands: fake,
    config,
    health,
    license: licenseSource,
    metrics,
    configView: () => sampleConfigView,
    configSources: () => ({ 'runtime.http.port': 'environment' }),
    ha,
    clock,
    startedAtMs: epochMs - 93_784_500,
    log: (level, message) => log.push(`${level} ${message}`),
    ...own,
  })
  const { url } = await server.listen()
  // Lets a check that answers through a promise have its say.
  if (registry !== undefined) await sleep(1)
  return {
    url,
    fake,
    log,
    published,
    ask: (question) => ask(url, question),
    stop: async () => {
      await server.close()
      health.close()
      metrics.close()
    },
  }
}

export const fakeSubject: Subject = {
  name: 'a fake engine',
  isFake: true,
  cannot: () => undefined,
  start: (situation) => startFake(situation),
}
