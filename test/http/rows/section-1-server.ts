import assert from 'node:assert/strict'
import { lifecycleStates } from '../../../src/view/view.ts'
import { routes } from '../../../src/http/routes/routes.ts'
import { answersIn, talk } from '../support/client.ts'
import { expectCommonHeaders, expectError, jsonType, textType, yamlType } from '../support/expect.ts'
import { standby } from '../support/ha-samples.ts'
import type { Row } from '../support/subject.ts'

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE']
/** Those that are off unless somebody asks for them have tests of their own. */
const offAtFirst = ['ha', 'stores', 'deadLetters']
const plainRoutes = routes.filter((route) => !offAtFirst.includes(route.gate))
const engineRoutes = plainRoutes.filter((route) => route.needs !== 'nothing')

const wrongMethods: Row[] = plainRoutes.flatMap((route) =>
  methods
    .filter((method) => method !== route.method)
    .map((method) => ({
      rules: ['1.method', 'R2', '7.405', 'R30', 'R37'] as const,
      name: `${method} ${route.path} is 405 with Allow: ${route.method}`,
      check: async (instance) => {
        const answer = await instance.ask({ method, path: route.path })
        assert.equal(answer.status, 405)
        assert.equal(answer.headers.allow, route.method)
        expectCommonHeaders(answer)
        if (method === 'HEAD') assert.equal(answer.body, '')
        else expectError(answer, 405, /accepts/)
      },
    })),
)

const uninitialized: Row[] = engineRoutes.map((route) => ({
  rules: ['1.uninitialized', '7.503', '1.error'] as const,
  name: `${route.method} ${route.path} is 503 while the engine is not initialized`,
  when: { state: 'UNINITIALIZED' },
  check: async (instance) =>
    expectError(await instance.ask({ method: route.method, path: route.path }), 503, /not initialized/),
}))

const noSnapshotYet: Row[] = ['/watermarks', '/offsets', '/consumer', '/debug/barriers'].map((path) => ({
  rules: ['1.uninitialized', '7.503', '1.error'] as const,
  name: `GET ${path} is 503 in CREATED: there is no engine yet`,
  when: { state: 'CREATED' },
  check: async (instance) => expectError(await instance.ask({ path }), 503, /CREATED|no partitions/),
}))

const alwaysAnswered: Row[] = (
  ['CREATED', 'STARTING', 'RESTORING', 'RESTARTING', 'STOPPING', 'FAILED'] as const
).flatMap((state) =>
  ['/info', '/license', '/config', '/metrics', '/state', '/topology', '/topology/ks', '/openapi.json'].map((path) => ({
    rules: ['4.info', '4.license', '4.config', '4.metrics', '4.state'] as const,
    name: `GET ${path} is answered in ${state}`,
    when: { state },
    check: async (instance) => assert.equal((await instance.ask({ path })).status, 200),
  })),
)

const evenThen: Row[] = ['/health/live', '/info', '/license', '/config', '/metrics', '/openapi.json'].map((path) => ({
  rules: ['4.info', '4.license', '4.config', '4.metrics', '4.live'] as const,
  name: `GET ${path} is answered while the engine is not initialized`,
  when: { state: 'UNINITIALIZED' },
  check: async (instance) => assert.equal((await instance.ask({ path })).status, 200),
}))

const unknownPaths: Row[] = [
  '/',
  '/nope',
  '/state/',
  '/State',
  '//state',
  '/health',
  '/health/live/',
  '/health%2Flive',
  '/state;a=b',
  '/topology/ks/x',
  '/./state',
].map((path) => ({
  rules: ['R3', 'R36', 'R28'] as const,
  name: `GET ${path} is 404`,
  check: async (instance) => expectError(await instance.ask({ path }), 404, /unknown path/),
}))

/** No endpoint is ever silent or breaks, whatever the state. */
const everyState: Row[] = lifecycleStates.flatMap((state) =>
  routes.map((route) => ({
    rules: ['R8', '1.error', 'R30'] as const,
    name: `${route.method} ${route.path} keeps its word in ${state}`,
    when: route.gate === 'ha' ? { state, ha: standby } : { state },
    check: async (instance) => {
      const query = route.parameters.some((parameter) => parameter.name === 'pod') ? '?pod=pod-b' : ''
      const answer = await instance.ask({ method: route.method, path: route.path + query })
      expectCommonHeaders(answer)
      const allowed = [route.success, ...route.failures]
      assert.ok(allowed.includes(answer.status), `${answer.status}: ${answer.body}`)
      if (answer.status !== route.success) assert.equal(typeof answer.json.error, 'string')
    },
  })),
)

export const section1: readonly Row[] = [
  ...wrongMethods,
  ...uninitialized,
  ...noSnapshotYet,
  ...alwaysAnswered,
  ...evenThen,
  ...unknownPaths,
  ...everyState,
  {
    rules: ['1.exposure'],
    name: 'health details hold flags and counts, nothing that tells strangers about the inside',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/health/ready' })
      const info = await instance.ask({ path: '/info' })
      const inside = [info.json.broker?.bootstrapServers, info.json.app?.applicationId]
      for (const word of inside) assert.ok(!JSON.stringify(json).includes(String(word)))
    },
  },
  {
    rules: ['1.json', '1.text', '1.yaml'],
    name: 'content types are exact',
    check: async (instance) => {
      const types: Readonly<Record<string, string>> = { '/state': jsonType, '/topology': textType, '/config': yamlType }
      for (const [path, type] of Object.entries(types)) {
        assert.equal((await instance.ask({ path })).headers['content-type'], type)
      }
    },
  },
  {
    rules: ['5.none'],
    name: 'no credentials are asked for by default',
    check: async (instance) => {
      for (const path of ['/info', '/config', '/debug/barriers']) {
        assert.equal((await instance.ask({ path })).status, 200)
      }
    },
  },
  {
    rules: ['R36'],
    name: 'unknown parameters and bodies are ignored',
    check: async (instance) => {
      assert.equal((await instance.ask({ path: '/state?x=1&x=2&%zz' })).status, 200)
      assert.equal((await instance.ask({ path: '/state', body: 'ignored' })).status, 200)
      assert.equal((await instance.ask({ path: '/state?' })).status, 200)
    },
  },
  {
    rules: ['R36'],
    name: 'an absolute target is served by its path',
    check: async (instance) =>
      assert.equal((await instance.ask({ path: 'http://elsewhere.example/state' })).status, 200),
  },
  {
    rules: ['R28', '2.2.endpoints'],
    name: '/openapi.json is served, is 3.1, and describes what /info lists',
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/openapi.json' })
      const info = await instance.ask({ path: '/info' })
      assert.match(String(json.openapi), /^3\.1\./)
      // The console is listed as well where it is built, and is no endpoint that programs ask.
      const endpoints = info.json.endpoints as unknown as string[]
      const paths = endpoints.filter((path) => path !== '/console/')
      assert.deepEqual(Object.keys(json.paths as object), paths)
    },
  },
  {
    rules: ['R1', 'R35'],
    name: 'wrong method comes before a foreign origin, that before bad parameters, those before 503',
    when: { state: 'UNINITIALIZED', ha: standby },
    check: async (instance) => {
      const origin = { origin: 'http://evil.example' }
      const path = '/ha/promote'
      expectError(await instance.ask({ method: 'PUT', path, headers: origin }), 405)
      expectError(await instance.ask({ method: 'POST', path, headers: origin }), 403)
      expectError(await instance.ask({ method: 'POST', path }), 400)
      expectError(await instance.ask({ method: 'POST', path: `${path}?pod=pod-b` }), 503)
    },
  },
  {
    rules: ['R1'],
    name: 'an unknown path comes before everything',
    check: async (instance) => {
      const headers = { origin: 'http://evil.example' }
      expectError(await instance.ask({ method: 'POST', path: '/ha/promote', headers }), 404)
      expectError(await instance.ask({ method: 'DELETE', path: '/nope', headers }), 404)
    },
  },
  {
    rules: ['R29', 'R35'],
    name: 'cross-site POSTs are refused and do nothing',
    check: async (instance) => {
      const host = new URL(instance.url).host
      const foreign: ReadonlyArray<Readonly<Record<string, string>>> = [
        { origin: 'http://evil.example' },
        { origin: 'null' },
        { origin: `http://${host}.evil.example` },
        { origin: `ftp://${host}` },
        { 'sec-fetch-site': 'cross-site' },
        { origin: `http://${host}`, 'sec-fetch-site': 'cross-site' },
      ]
      for (const headers of foreign) {
        expectError(await instance.ask({ method: 'POST', path: '/pause', headers }), 403, /cross-site/)
      }
      assert.equal((await instance.ask({ path: '/state' })).json.current, 'RUNNING')
      const own = await instance.ask({ method: 'POST', path: '/pause', headers: { origin: `http://${host}` } })
      assert.equal(own.status, 200)
      assert.equal((await instance.ask({ method: 'POST', path: '/unpause' })).status, 200)
    },
  },
  {
    rules: ['R29'],
    name: 'GET is answered whatever its origin',
    check: async (instance) => {
      const headers = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
      assert.equal((await instance.ask({ path: '/state', headers })).status, 200)
    },
  },
  {
    rules: ['1.method', '7.405', 'R37'],
    name: 'methods that the HTTP parser does not know are wrong methods like any other',
    check: async (instance) => {
      const lines = ['FOO /state', 'get /state', 'CONNECT /state', 'Post /pause', 'x-y.z /metrics', 'GETX /config']
      for (const line of lines) {
        const [answer] = answersIn(await talk(instance.url, `${line} HTTP/1.1\r\nHost: a\r\n\r\n`))
        assert.equal(answer?.status, 405, line)
        assert.equal(answer.headers.allow, line.endsWith('/pause') ? 'POST' : 'GET')
        assert.deepEqual(Object.keys(answer.json), ['error'])
        assert.equal(answer.headers['content-type'], jsonType)
      }
      for (const line of ['FOO /nope', 'CONNECT elsewhere:443', 'FOO toString', 'CONNECT constructor']) {
        const [answer] = answersIn(await talk(instance.url, `${line} HTTP/1.1\r\nHost: a\r\n\r\n`))
        assert.equal(answer?.status, 404, line)
        assert.deepEqual(Object.keys(answer.json), ['error'])
      }
      const two = 'GET /state HTTP/1.1\r\nHost: a\r\n\r\nFOO /state HTTP/1.1\r\nHost: a\r\n\r\n'
      const statuses = answersIn(await talk(instance.url, two)).map((answer) => answer.status)
      assert.equal(statuses[0], 200)
      assert.match(String(statuses[1]), /^40[05]$/)
    },
  },
  {
    rules: ['R37', 'R30', '1.error'],
    name: 'what the parser refuses gets the body and the headers too',
    check: async (instance) => {
      const wrong = [
        ['NONSENSE\r\n\r\n', 400],
        ['GET /state HTTP/1.1\r\n\r\n', 400],
        ['GET /state HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', 400],
        ['GET /state HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n', 400],
        [`GET /state HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(9000)}\r\n\r\n`, 431],
        [`GET /${'y'.repeat(3000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
      ] as const
      for (const [bytes, status] of wrong) {
        const [answer] = answersIn(await talk(instance.url, bytes))
        assert.equal(answer?.status, status, bytes.slice(0, 40))
        assert.deepEqual(Object.keys(answer.json), ['error'])
        assert.equal(answer.headers['content-type'], jsonType)
        assert.equal(answer.headers['x-content-type-options'], 'nosniff')
        assert.equal(answer.headers['cache-control'], 'no-store')
      }
    },
  },
]
