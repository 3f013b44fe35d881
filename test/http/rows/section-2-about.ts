import assert from 'node:assert/strict'
import { parse } from 'yaml'
import type { LicenseState } from '../../../src/http/license-seam.ts'
import { noKeyLicense } from '../../../src/http/license-seam.ts'
import { epochMs } from '../support/fake-engine.ts'
import { expectError, expectJson, expectKeys, jsonType, yamlType } from '../support/expect.ts'
import { standby, withPeer } from '../support/ha-samples.ts'
import type { Instance, Row } from '../support/subject.ts'

type Probe = 'live' | 'ready'
type Expected = 'UP' | 'DOWN'

async function expectProbe(instance: Instance, probe: Probe, status: Expected): Promise<void> {
  const answer = await instance.ask({ path: `/health/${probe}` })
  expectJson(answer, status === 'UP' ? 200 : 503)
  const { json } = answer
  assert.equal(json.status, status)
  const components = json.components as unknown as Array<{ name: string; status: string; details: object }>
  for (const component of components) {
    expectKeys(component, ['name', 'status', 'details'])
    assert.match(component.status, /^(UP|DOWN)$/)
    assert.equal(typeof component.details, 'object')
  }
  assert.equal(components[0]?.name, 'engine')
  expectKeys(components[0]?.details, ['state'])
  if (status === 'UP') assert.ok(!('error' in json))
  else assert.ok(String(json.error).length > 10)
}

async function names(instance: Instance, probe: Probe): Promise<string[]> {
  const { json } = await instance.ask({ path: `/health/${probe}` })
  return (json.components as unknown as Array<{ name: string }>).map((component) => component.name)
}

const byState: ReadonlyArray<readonly [state: Parameters<typeof row>[0], ready: Expected, live: Expected]> = [
  ['CREATED', 'DOWN', 'UP'],
  ['STARTING', 'DOWN', 'UP'],
  ['RESTORING', 'DOWN', 'UP'],
  ['RUNNING', 'UP', 'UP'],
  ['DRAINING', 'UP', 'UP'],
  ['PAUSED', 'UP', 'UP'],
  ['RESTARTING', 'DOWN', 'UP'],
  ['STOPPING', 'DOWN', 'UP'],
  ['STOPPED', 'DOWN', 'UP'],
  ['FAILED', 'DOWN', 'DOWN'],
]
function row(state: NonNullable<NonNullable<Row['when']>['state']>, ready: Expected, live: Expected): Row {
  return {
    rules: ['R7', '3.1.health', '4.live', '4.ready', 'R4', '2.1.report', '2.1.engine'],
    name: `in ${state} readiness is ${ready}, liveness ${live}`,
    when: { state },
    // Whether a failure takes liveness away depends on its cause, which the fake has for certain.
    ...(state === 'FAILED' ? { given: () => undefined } : {}),
    check: async (instance) => {
      await expectProbe(instance, 'ready', ready)
      await expectProbe(instance, 'live', live)
    },
  }
}

const licensed: LicenseState = {
  ...noKeyLicense().state(),
  status: 'VALID',
  licenseId: 'lic-0001',
  tier: 'team',
  customerName: 'Northern Lines',
  expiresAt: '2027-01-01T00:00:00.000Z',
  daysRemaining: 300,
  machinesUsed: 2,
  machinesAllowed: 5,
  modeOnline: true,
}
const epochZero = '1970-01-01T00:00:00.000Z'
const pending: LicenseState = {
  ...noKeyLicense().state(),
  status: 'PENDING',
  expiresAt: epochZero,
  lastValidatedAt: epochZero,
  cachedJwtExpiresAt: epochZero,
  heartbeatLastSuccessAt: epochZero,
}

export const section21: readonly Row[] = [
  ...byState.map(([state, ready, live]) => row(state, ready, live)),
  {
    rules: ['R6'],
    name: 'FAILED for a cause that a restart cannot help is alive',
    when: { state: 'FAILED' },
    given: (engine) => {
      engine.now = { ...engine.now, failure: { code: 'TOPIC_MISSING', message: 'no topic', restartHelps: false } }
    },
    check: async (instance) => {
      await expectProbe(instance, 'live', 'UP')
      await expectProbe(instance, 'ready', 'DOWN')
    },
  },
  {
    rules: ['R6'],
    name: 'an engine thread silent for 30 seconds is neither alive nor ready',
    given: (engine) => {
      engine.silenceMs = 30_000
    },
    check: async (instance) => {
      await expectProbe(instance, 'live', 'DOWN')
      await expectProbe(instance, 'ready', 'DOWN')
    },
  },
  {
    rules: ['R6', 'R51'],
    name: 'silence means nothing once the engine has stopped',
    when: { state: 'STOPPED' },
    given: (engine) => {
      engine.silenceMs = 60_000
    },
    check: async (instance) => expectProbe(instance, 'live', 'UP'),
  },
  {
    rules: ['R5', '2.1.indicators', 'R6'],
    name: 'readiness counts engine, broker and license, liveness the engine alone',
    check: async (instance) => {
      assert.deepEqual(await names(instance, 'ready'), ['engine', 'broker', 'license'])
      assert.deepEqual(await names(instance, 'live'), ['engine'])
    },
  },
  {
    rules: ['R5', '2.1.indicators'],
    name: 'the schema registry is an indicator where it is configured',
    when: { schemaRegistry: 'down' },
    check: async (instance) => {
      assert.deepEqual(await names(instance, 'ready'), ['engine', 'broker', 'license', 'schema-registry'])
      await expectProbe(instance, 'ready', 'DOWN')
      await expectProbe(instance, 'live', 'UP')
    },
  },
  {
    rules: ['R6'],
    name: 'a broker out of reach takes readiness away, not at the first hiccup, and never liveness',
    given: (engine) => {
      engine.link = { ...engine.link, connected: false, sinceMs: epochMs }
    },
    check: async (instance) => {
      await expectProbe(instance, 'ready', 'UP')
      if (instance.fake) instance.fake.link = { ...instance.fake.link, connected: false, sinceMs: epochMs - 60_000 }
      await expectProbe(instance, 'ready', 'DOWN')
      await expectProbe(instance, 'live', 'UP')
    },
  },
  {
    rules: ['R7'],
    name: 'a standby is ready when it could take over',
    when: { state: 'STANDBY', ha: { ...standby, selfRole: 'STANDBY', selfState: 'READY_STANDBY' } },
    check: async (instance) => expectProbe(instance, 'ready', 'UP'),
  },
  {
    rules: ['R7'],
    name: 'a standby that is behind is not ready',
    when: { state: 'STANDBY', ha: withPeer({}, { selfRole: 'STANDBY', selfState: 'CATCHING_UP' }) },
    check: async (instance) => expectProbe(instance, 'ready', 'DOWN'),
  },
]

export const section22: readonly Row[] = [
  {
    rules: ['2.2.fields', '2.2.lanes', 'R26', '4.info'],
    name: '/info holds every field',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/info' })
      expectJson(answer)
      const { app, platform, broker, uptime, state, endpoints } = answer.json
      assert.equal(typeof app?.applicationId, 'string')
      assert.ok(Number(app?.lanes) >= 1)
      assert.deepEqual(platform, {
        version: process.version,
        vendor: 'OpenJS Foundation',
        runtime: `Node.js / V8 ${process.versions.v8}`,
      })
      expectKeys(broker, ['bootstrapServers', 'applicationId'])
      assert.match(String(uptime?.startTime), /Z$/)
      assert.match(String(uptime?.uptime), /^PT(\d+H)?(\d+M)?(\d+(\.\d+)?S)?$/)
      assert.equal(state?.current, 'RUNNING')
      assert.ok(Number.isFinite(Date.parse(String(state?.since))))
      assert.ok(Array.isArray(endpoints))
    },
  },
  {
    rules: ['2.2.fields'],
    name: 'uptime is an ISO 8601 duration that fits its start',
    given: () => undefined,
    check: async (instance) => {
      const { uptime } = (await instance.ask({ path: '/info' })).json
      assert.match(String(uptime?.uptime), /^PT26H3M9/)
    },
  },
  {
    rules: ['2.2.endpoints', 'R11', 'R12', '4.3.9'],
    name: 'endpoints lists what is registered and nothing else',
    when: {
      config: { metricsEnabled: false, configEndpointEnabled: false, debugEnabled: false },
    },
    check: async (instance) => {
      const { endpoints } = (await instance.ask({ path: '/info' })).json
      const listed = endpoints as unknown as string[]
      for (const path of ['/metrics', '/config', '/debug/threads', '/debug/barriers', '/ha/status']) {
        assert.ok(!listed.includes(path), path)
      }
      for (const path of ['/health/live', '/state', '/pause', '/openapi.json']) assert.ok(listed.includes(path), path)
    },
  },
  {
    rules: ['2.2.optional'],
    name: 'optional sections appear with the engine',
    check: async (instance) => {
      expectKeys((await instance.ask({ path: '/info' })).json, ['watermark', 'offsets', 'consumer', 'topology'])
    },
  },
  {
    rules: ['2.2.optional', '4.info'],
    name: 'optional sections are missing before',
    when: { state: 'UNINITIALIZED' },
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/info' })
      for (const section of ['watermark', 'offsets', 'consumer', 'topology']) assert.ok(!(section in json), section)
      assert.equal(json.state?.current, 'CREATED')
    },
  },
  {
    rules: ['R25'],
    name: 'user-info in the bootstrap servers is masked',
    given: (engine) => {
      engine.link = { ...engine.link, bootstrapServers: 'sasl://user:canary-secret@broker:9092' }
    },
    check: async (instance) => assert.ok(!(await instance.ask({ path: '/info' })).body.includes('canary-secret')),
  },
]

const licenseFields = [
  'status',
  'licenseId',
  'tier',
  'customerName',
  'expiresAt',
  'daysRemaining',
  'machinesUsed',
  'machinesAllowed',
  'lastValidatedAt',
  'cachedJwtExpiresAt',
  'heartbeatLastSuccessAt',
  'consecutiveFailures',
  'graceRemainingSeconds',
  'modeOnline',
]

export const section23: readonly Row[] = [
  {
    rules: ['1.json'],
    name: '/flow and /stores are answered, and what shows data is off at first',
    check: async (instance) => {
      expectKeys((await instance.ask({ path: '/flow' })).json, [
        'sources',
        'sinks',
        'nodes',
        'lanes',
        'stages',
        'history',
      ])
      expectKeys((await instance.ask({ path: '/stores' })).json, ['rowsShown', 'stores'])
      for (const path of ['/stores/{name}', '/dead-letters']) expectError(await instance.ask({ path }), 404)
      expectError(await instance.ask({ method: 'POST', path: '/dead-letters/redrive' }), 404)
    },
  },
  {
    rules: ['1.json', '1.text'],
    name: '/why gives verdict, status, findings and flow, and text to whom prefers it',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/why' })
      expectJson(answer)
      expectKeys(answer.json, ['application', 'verdict', 'status', 'since', 'findings', 'flow'])
      const told = await instance.ask({ path: '/why', headers: { Accept: 'text/plain' } })
      assert.match(told.body, /^Application \S+(, process \d+ on [^\n]+)?\n[A-Z_]+ since \d{4}-/)
    },
  },
  {
    rules: ['2.3.no-key', 'R45', '2.3.fields', 'R24', '4.license', 'R23'],
    name: 'without a key the status is NO_KEY with all fields',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/license' })
      expectJson(answer)
      assert.deepEqual(answer.json, noKeyLicense().state())
      assert.deepEqual(Object.keys(answer.json), licenseFields)
    },
  },
  {
    rules: ['2.3.pending', 'R23', 'R6'],
    name: 'PENDING shows epoch zero and is ready',
    when: { license: { ...pending, up: true } },
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/license' })
      assert.equal(json.status, 'PENDING')
      assert.equal(json.expiresAt, epochZero)
      assert.equal(json.machinesUsed, 0)
      await expectProbe(instance, 'ready', 'UP')
    },
  },
  ...(['EXPIRED', 'REVOKED', 'INVALID'] as const).map(
    (status): Row => ({
      rules: ['2.3.readiness', 'R6'],
      name: `${status} takes readiness away and leaves liveness`,
      when: { license: { ...licensed, status, up: false } },
      check: async (instance) => {
        await expectProbe(instance, 'ready', 'DOWN')
        await expectProbe(instance, 'live', 'UP')
        const { json } = await instance.ask({ path: '/license' })
        expectKeys(json, licenseFields)
        const { body } = await instance.ask({ path: '/health/ready' })
        assert.ok(!body.includes('Northern Lines') && !body.includes(String(json.licenseId ?? 'lic-0001')))
      },
    }),
  ),
  ...(['VALID', 'GRACE_PERIOD'] as const).map(
    (status): Row => ({
      rules: ['2.3.readiness', '2.3.fields', '4.license'],
      name: `${status} is ready and shows all fields`,
      when: { license: { ...licensed, status, up: true } },
      check: async (instance) => {
        const { json } = await instance.ask({ path: '/license' })
        expectKeys(json, licenseFields)
        assert.equal(json.status, status)
        assert.equal(json.tier, 'team')
        assert.equal(json.machinesAllowed, 5)
        for (const name of ['expiresAt', 'lastValidatedAt', 'cachedJwtExpiresAt', 'heartbeatLastSuccessAt'] as const) {
          if (json[name] !== null) assert.match(String(json[name]), /^\d{4}-\d\d-\d\dT.*Z$/, name)
        }
        await expectProbe(instance, 'ready', 'UP')
        await expectProbe(instance, 'live', 'UP')
      },
    }),
  ),
  {
    rules: ['2.3.metrics'],
    name: 'the status is a metric, of which exactly one is 1, without the customer',
    when: { license: { ...licensed, up: true } },
    check: async (instance) => {
      const { json } = await instance.ask({ path: '/license' })
      const { body } = await instance.ask({ path: '/metrics' })
      const lines = body.split('\n').filter((line) => line.startsWith('engine_license_status{'))
      assert.equal(lines.length, 7)
      assert.deepEqual(
        lines.filter((line) => line.endsWith(' 1')),
        ['engine_license_status{status="VALID"} 1'],
      )
      assert.match(body, new RegExp(`^engine_license_machines_used ${json.machinesUsed}$`, 'm'))
      assert.ok(!body.includes(String(json.customerName)) && !body.includes(String(json.licenseId)))
    },
  },
]

const configAccepts: ReadonlyArray<readonly [accept: string | undefined, type: string]> = [
  [undefined, yamlType],
  ['', yamlType],
  ['application/json', jsonType],
  ['text/yaml', yamlType],
  ['application/yaml', yamlType],
  ['application/x-yaml', yamlType],
  ['text/html', yamlType],
  ['*/*', yamlType],
  ['image/png', yamlType],
  ['application/json;q=0.5, text/yaml;q=0.4', jsonType],
  ['application/json;q=0.4, text/yaml;q=0.5', yamlType],
  ['application/json, text/yaml', jsonType],
  ['text/yaml, application/json', yamlType],
  ['application/json;charset=utf-8', jsonType],
  ['APPLICATION/JSON', jsonType],
  ['*/*, application/json', jsonType],
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', yamlType],
  ['application/json;q=0', yamlType],
  ['application/json;q=0, */*', yamlType],
  ['text/*', yamlType],
]

export const section24: readonly Row[] = [
  ...configAccepts.map(
    ([accept, type]): Row => ({
      rules: ['4.1.config', 'R10', 'R38', '4.config'],
      name: `/config with Accept ${accept ?? 'unset'} is ${type.split(';')[0]}`,
      check: async (instance) => {
        const answer = await instance.ask({ path: '/config', headers: accept === undefined ? {} : { accept } })
        assert.equal(answer.status, 200)
        assert.equal(answer.headers['content-type'], type)
        assert.equal(answer.headers.vary, 'Accept')
        if (type === jsonType) assert.equal(typeof answer.json, 'object')
      },
    }),
  ),
  {
    rules: ['2.4.nested', '2.4.masked', 'R25', 'R50'],
    name: 'YAML and JSON tell the same nested map',
    check: async (instance) => {
      const yaml = await instance.ask({ path: '/config' })
      const { json } = await instance.ask({ path: '/config', headers: { accept: 'application/json' } })
      assert.deepEqual(parse(yaml.body), json)
      // Many programs read YAML 1.1, in which a bare `off` is false.
      assert.deepEqual(parse(yaml.body, { version: '1.1' }), json)
      expectKeys(json, ['engine', 'runtime', 'broker'])
      if (instance.fake !== undefined) assert.equal(json.engine?.lanes?.count, null)
      else assert.equal(json.engine?.lanes?.count, 2)
    },
  },
  {
    rules: ['4.config'],
    name: '/config/sources tells where each value comes from',
    check: async (instance) => {
      const answer = await instance.ask({ path: '/config/sources' })
      expectJson(answer)
      const { sources } = answer.json as unknown as { sources: Record<string, string> }
      assert.ok(['environment', 'application'].includes(sources['runtime.http.port'] ?? ''), JSON.stringify(sources))
    },
  },
  {
    rules: ['R12', '7.404'],
    name: 'a disabled /config is unknown',
    when: { config: { configEndpointEnabled: false } },
    check: async (instance) => {
      for (const path of ['/config', '/config/sources']) expectError(await instance.ask({ path }), 404)
      expectError(await instance.ask({ method: 'POST', path: '/config' }), 404)
    },
  },
]
