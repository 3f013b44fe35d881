import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { loadConfig } from '../../src/config/load.ts'
import { EngineError } from '../../src/base/errors.ts'
import { defaultHttpConfig, type HttpConfig, httpConfigFrom } from '../../src/http/http-config.ts'
import { type Route, routeDefaults } from '../../src/http/routes/route.ts'
import { ask, answersIn, talk } from './support/client.ts'
import { expectError } from './support/expect.ts'
import { startFake } from './support/fake-subject.ts'
import type { Instance } from './support/subject.ts'

describe('configuration and start', () => {
  test('[1.prefix] [1.bind] [R47] the defaults are those of the specification', () => {
    const config = httpConfigFrom(loadConfig({ environment: {} }))
    assert.deepEqual(config, defaultHttpConfig)
    assert.equal(config.host, '0.0.0.0')
    assert.equal(config.port, 8080)
    assert.ok(config.enabled && config.debugEnabled && config.metricsEnabled && config.configEndpointEnabled)
    assert.equal(config.haEnabled, false)
  })

  test('[1.enabled] [R34] keys turn things off and on', () => {
    const set = [
      'runtime.http.enabled=false',
      'runtime.http.port=9090',
      'runtime.http.debug.enabled=false',
      'ha.mode=hot-standby',
    ]
    const config = httpConfigFrom(loadConfig({ environment: {}, set }))
    assert.equal(config.enabled, false)
    assert.equal(config.port, 9090)
    assert.equal(config.debugEnabled, false)
    assert.equal(config.haEnabled, true)
  })

  test('a port that is taken is PORT_TAKEN', async (t) => {
    const first = await startFake()
    t.after(() => first.stop())
    const port = Number(new URL(first.url).port)
    await assert.rejects(
      startFake({ config: { port } }),
      (error) => EngineError.is(error) && error.code === 'PORT_TAKEN',
    )
  })

  test('bound to all interfaces, a warning names the sensitive paths; with a token or on one address there is none', async (t) => {
    const open = await startFake({ config: { host: '0.0.0.0' } })
    t.after(() => open.stop())
    assert.equal(open.log.length, 1)
    for (const path of ['/config', '/license', '/info', '/topology', '/debug/threads']) {
      assert.ok(open.log[0]?.includes(path), path)
    }
    const guarded = await startFake({ config: { host: '0.0.0.0', token: 'canary-token' } })
    t.after(() => guarded.stop())
    const local = await startFake()
    t.after(() => local.stop())
    assert.deepEqual([...guarded.log, ...local.log], [])
  })

  test('at a port that browsers refuse, a warning says so', async (t) => {
    const instance = await startFake({ config: { port: 6697 } })
    t.after(() => instance.stop())
    assert.match(instance.log.join(), /browsers refuse to ask port 6697, .+ set runtime\.http\.port to another/)
  })

  test('a token is asked of everything but the probes, before anything else is told', async (t) => {
    const instance = await startFake({ config: { token: 'canary-token' } })
    t.after(() => instance.stop())
    const headers = { authorization: 'Bearer canary-token' }
    for (const path of ['/state', '/nope', '/metrics', '/openapi.json']) {
      const refused = await instance.ask({ path })
      expectError(refused, 401, /bearer token/)
      assert.equal(refused.headers['www-authenticate'], 'Bearer')
      assert.equal((await instance.ask({ path, headers: { authorization: 'Bearer canary-tokem' } })).status, 401)
      assert.notEqual((await instance.ask({ path, headers })).status, 401)
    }
    assert.equal((await instance.ask({ path: '/health/live' })).status, 200)
    assert.equal((await instance.ask({ path: '/health/ready' })).status, 200)
    assert.equal((await instance.ask({ path: '/state', headers })).status, 200)
  })

  test('with allowed hosts, other names are refused, the probes are not', async (t) => {
    const instance = await startFake({ config: { allowedHosts: ['ops.example'] } })
    t.after(() => instance.stop())
    assert.equal((await instance.ask({ path: '/state', headers: { host: 'evil.example' } })).status, 421)
    assert.equal((await instance.ask({ path: '/state', headers: { host: 'ops.example:8080' } })).status, 200)
    assert.equal((await instance.ask({ path: '/health/live', headers: { host: '10.0.0.1' } })).status, 200)
  })

  test('what an endpoint throws is told to the log, masked, and not to the client', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    instance.fake.threadsFail = true
    const answer = await instance.ask({ path: '/debug/threads' })
    expectError(answer, 500)
    assert.ok(!answer.body.includes('canary'))
    assert.equal(instance.log.length, 1)
    assert.match(instance.log[0] ?? '', /\/debug\/threads failed/)
    assert.ok(!instance.log[0]?.includes('canary'))
  })

  test('what nobody foresaw is answered with 500 and told to the log, masked, and requests go on', async (t) => {
    const headers = { Location: 'a line\nand another, password=canary' }
    const broken: Route = {
      ...routeDefaults,
      path: '/broken',
      schema: null,
      summary: 'Broken',
      doc: 'Answers with a header that cannot be sent.',
      handle: () => ({ status: 302, contentType: 'text/plain', body: '', headers }),
    }
    const instance = await startFake({}, undefined, { extraRoutes: [broken] })
    t.after(() => instance.stop())
    const answer = await instance.ask({ path: '/broken' })
    expectError(answer, 500, /the log of this process tells more/)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff')
    assert.equal(instance.log.length, 1)
    assert.match(instance.log[0] ?? '', /^error a request failed: /)
    assert.equal((await instance.ask({ path: '/health/live' })).status, 200)
  })

  test('the handler can be mounted in a server of the application’s own', async (t) => {
    const { createHttpServer } = await import('../../src/http/index.ts')
    const { HealthRegistry } = await import('../../src/http/health.ts')
    const { noKeyLicense } = await import('../../src/http/license-seam.ts')
    const { FakeEngine } = await import('./support/fake-engine.ts')
    const engine = new FakeEngine()
    const license = noKeyLicense()
    const mounted = createHttpServer({
      view: engine,
      commands: engine,
      config: defaultHttpConfig,
      health: new HealthRegistry({ view: engine, license }),
      license,
      metrics: null,
      configView: () => ({}),
    })
    const own = createServer((request, response) => {
      if (request.url?.startsWith('/own')) response.end('mine')
      else void mounted.handler(request, response)
    })
    await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve))
    t.after(() => own.close())
    const url = `http://127.0.0.1:${(own.address() as AddressInfo).port}`
    assert.equal((await ask(url, { path: '/own' })).body, 'mine')
    assert.equal((await ask(url, { path: '/state' })).json.current, 'RUNNING')
    assert.equal((await ask(url, { method: 'DELETE', path: '/state' })).status, 405)
  })

  test('close lets an answer finish and then refuses connections', async () => {
    const instance = await startFake()
    const answers = answersIn(await talk(instance.url, 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n', 50))
    assert.equal(answers[0]?.status, 200)
    await instance.stop()
    await assert.rejects(ask(instance.url, { path: '/health/live' }))
  })
})

describe('the console', () => {
  /** With files of the console of these names; a name that ends with a slash is a folder. */
  async function serving(t: TestContext, names: readonly string[], config: Partial<HttpConfig> = {}) {
    const consoleFolder = mkdtempSync(join(tmpdir(), 'millrace-console-'))
    t.after(() => rmSync(consoleFolder, { recursive: true }))
    for (const name of names) {
      if (name.endsWith('/')) mkdirSync(join(consoleFolder, name))
      else writeFileSync(join(consoleFolder, name), name)
    }
    const instance = await startFake({ config }, undefined, { consoleFolder })
    t.after(() => instance.stop())
    return instance
  }

  test('[R28] is among the endpoints where it is on and built', async (t) => {
    const endpoints = async ({ ask: asked }: Instance): Promise<unknown> =>
      (await asked({ path: '/info' })).json.endpoints
    const without = await endpoints(await serving(t, []))
    assert.ok(Array.isArray(without))
    assert.ok(!without.includes('/console/'))
    assert.deepEqual(await endpoints(await serving(t, ['index.html'])), [...without, '/console/'])
    assert.deepEqual(await endpoints(await serving(t, ['index.html'], { consoleEnabled: false })), without)
  })

  test('lacks a file, or cannot read one: that is told, and the process goes on', async (t) => {
    const instance = await serving(t, ['index.html', 'app.css/'])
    assert.equal((await instance.ask({ path: '/console/' })).status, 200)
    expectError(await instance.ask({ path: '/console/app.js' }), 404, /npm run console/)
    assert.deepEqual(instance.log, [])
    expectError(await instance.ask({ path: '/console/app.css' }), 500)
    assert.match(instance.log[0] ?? '', /^error console failed: /)
    assert.equal((await instance.ask({ path: '/console/' })).status, 200)
  })
})
