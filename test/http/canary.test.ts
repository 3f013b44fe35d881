/** A secret in every kind of place must not come out anywhere: no response, no log line, no error. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { HealthRegistry } from '../../src/http/health.ts'
import { httpConfigFrom } from '../../src/http/http-config.ts'
import { createHttpServer } from '../../src/http/index.ts'
import { noKeyLicense } from '../../src/http/license-seam.ts'
import { routes } from '../../src/http/routes/routes.ts'
import { createMetrics } from '../../src/metrics/index.ts'
import { ask } from './support/client.ts'
import { FakeEngine } from './support/fake-engine.ts'
import { endLeftThreads, startLive } from './support/live.ts'

const canary = 'kanarienvogel-7f3a91'

function secretConfig(folder: string) {
  const tokenFile = join(folder, 'token')
  const file = join(folder, 'engine.yaml')
  writeFileSync(tokenFile, `${canary}-token\n`)
  writeFileSync(
    file,
    [
      'broker:',
      `  sasl: { mechanism: plain, username: app, password: ${canary}-a }`,
      `  'sasl.jaas.config': 'org.apache.kafka.PlainLoginModule required username="u" password="${canary}-b";'`,
      '  oauth:',
      `    nested: [ { client-secret: ${canary}-c }, { list: [ { api-key: ${canary}-d } ] } ]`,
      `    tokens: [ ${canary}-e, ${canary}-f ]`,
      'schema-registry:',
      `  url: https://reader:${canary}-g@registry.example`,
      `  basic.auth.user.info: 'reader:${canary}-h'`,
      'producer:',
      `  note: 'connect with password=${canary}-i please'`,
      `  authorization: Bearer ${canary}-j`,
      'license:',
      `  key: ${canary}-k`,
      'runtime:',
      `  http: { auth: { token-file: ${tokenFile} }, host: 127.0.0.1, port: 0 }`,
    ].join('\n'),
  )
  return loadConfig({
    file,
    environment: { CONSUMER_SSL_KEYSTORE_PASSWORD: `${canary}-l`, BROKER_SASL_OAUTH_TOKEN: `${canary}-m` },
    set: [`admin.private-key=${canary}-n`],
  })
}

describe('a canary secret', () => {
  test('in the configuration and the errors of a running application stays inside', async (t) => {
    const live = await startLive({
      app: 'scenario-app',
      config: {
        'producer.sasl.password': `${canary}-a`,
        'broker.sasl.jaas.config': `required username="u" password="${canary}-b";`,
        'schema-registry.url': `http://reader:${canary}-c@127.0.0.1:1`,
        'runtime.http.auth.token': `${canary}-d`,
      },
    })
    t.after(() => live.stop())
    t.after(endLeftThreads)
    await live.untilState('RUNNING')
    const fail = `cannot log in at https://app:${canary}-e@host with ${canary}-a`
    await live.feed('orders', [{ key: 'a', value: { fail }, timestamp: 1e12, partition: 0 }])
    await live.untilState('FAILED')
    const headers = { authorization: `Bearer ${canary}-d`, accept: 'application/json' }
    const state = await live.ask({ path: '/state', headers })
    assert.match(String(state.json.failure?.message), /cannot log in/)
    for (const { method, path } of routes) {
      const answer = await live.ask({ method, path, headers })
      assert.ok(!answer.body.includes(canary), `${path}: ${answer.body.slice(0, 300)}`)
    }
    assert.deepEqual(
      live.log.filter((line) => JSON.stringify(line).includes(canary)),
      [],
    )
  })

  test('appears in no response, no header, no log line', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'canary-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const config = secretConfig(folder)
    const engine = new FakeEngine()
    engine.link = { ...engine.link, bootstrapServers: `sasl://app:${canary}-o@broker:9092` }
    const license = noKeyLicense()
    const log: string[] = []
    const health = new HealthRegistry({ view: engine, license })
    health.register({ name: 'own', check: () => ({ up: true, details: { password: `${canary}-p` } }) })
    health.register({ name: 'broken', check: () => Promise.reject(new Error(`${canary}-q`)) })
    const metrics = createMetrics({ view: engine, health, license, haMode: 'off', version: '0' })
    const httpConfig = httpConfigFrom(config)
    assert.equal(httpConfig.token, `${canary}-token`)
    const server = createHttpServer({
      view: engine,
      commands: engine,
      config: httpConfig,
      health,
      license,
      metrics,
      configView: () => config.toNestedMasked(),
      log: (level, message) => log.push(`${level} ${message}`),
      maskText: (text) => config.maskText(text),
    })
    const { url } = await server.listen()
    t.after(async () => {
      await server.close()
      health.close()
      metrics.close()
    })
    engine.threads = () => Promise.reject(new Error(`cannot reach https://app:${canary}-r@host, token ${canary}-token`))
    const authorization = `Bearer ${canary}-token`
    for (const route of routes) {
      for (const accept of ['application/json', 'text/plain']) {
        const withToken: Record<string, string> = { accept, authorization }
        for (const headers of [{ accept }, withToken]) {
          for (const path of [route.path, `${route.path}?force=${canary}&depth=${canary}&pod=${canary}`]) {
            const answer = await ask(url, { method: route.method, path, headers })
            const whole = JSON.stringify(answer.headers) + answer.body
            assert.ok(!whole.includes(canary), `${route.method} ${path}: ${whole.slice(0, 300)}`)
          }
        }
      }
    }
    assert.ok(log.length > 0)
    assert.deepEqual(
      log.filter((line) => line.includes(canary)),
      [],
    )
    const shown = await ask(url, { path: '/config', headers: { accept: 'application/json', authorization } })
    assert.equal(shown.json.broker?.sasl?.password, '******')
    assert.equal(shown.json.license?.key, '******')
  })
})
