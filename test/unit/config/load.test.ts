import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Config } from '../../../src/config/config.ts'
import { type ConfigSources, loadConfig } from '../../../src/config/load.ts'
import { crossRules, selfFenceTimeoutMs } from '../../../src/config/rules.ts'
import { environmentName } from '../../../src/config/sources.ts'
import { configKeys, rowOf } from '../../../src/config/table.ts'
import { EngineError } from '../../../src/base/errors.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
function file(text: string, ending = 'yaml'): string {
  const path = join(folder, `${++files}.${ending}`)
  writeFileSync(path, text)
  return path
}

function faultsOf(sources: ConfigSources): string {
  try {
    loadConfig(sources)
  } catch (error) {
    assert.ok(EngineError.is(error), String(error))
    assert.equal(error.code, 'CONFIG_INVALID')
    return error.message
  }
  return assert.fail('the configuration was accepted')
}

describe('the table', () => {
  test('every default passes its own row', () => {
    const config = loadConfig({ set: configKeys.filter((key) => rowOf(key).default !== null).map(setToDefault) })
    for (const key of configKeys) assert.deepEqual(config.get(key), rowOf(key).default, key)
  })

  test('defaults of the specification and of the public contract', () => {
    const config = loadConfig()
    assert.equal(config.get('runtime.http.host'), '0.0.0.0')
    assert.equal(config.get('runtime.http.port'), 8080)
    assert.equal(config.get('runtime.http.enabled'), true)
    assert.equal(config.get('runtime.http.debug.enabled'), true)
    assert.equal(config.get('runtime.metrics.enabled'), true)
    assert.equal(config.get('runtime.endpoints.config.enabled'), true)
    assert.equal(config.get('engine.lanes.count'), null)
    assert.equal(config.get('engine.processing.state-transition-history-size'), 20)
    assert.equal(config.get('engine.processing.buffered-records-per-partition'), 1000)
    assert.equal(config.get('broker.bootstrap-servers'), 'embedded:')
    assert.equal(config.get('broker.embedded.partitions'), 4)
    assert.equal(config.get('ha.mode'), 'off')
    assert.equal(config.get('watermark.idleness-timeout'), 0)
    assert.equal(config.get('engine.processing.guarantee'), 'exactly-once')
  })

  test('no key lies under another, and no two have the same variable', () => {
    const names = new Set(configKeys.map(environmentName))
    assert.equal(names.size, configKeys.length)
    for (const a of configKeys) {
      for (const b of configKeys) assert.ok(!b.startsWith(`${a}.`), `${b} lies under ${a}`)
    }
  })

  test('a secret row may be unset, and the key of its file exists', () => {
    for (const key of configKeys) {
      const row = rowOf(key)
      if (row.secret) assert.ok(row.nullable && row.default === null, key)
      if (row.fromFile)
        assert.ok(
          configKeys.some((other) => other === row.fromFile),
          key,
        )
    }
  })
})

function setToDefault(key: (typeof configKeys)[number]): string {
  return `${key}=${String(rowOf(key).default)}`
}

describe('sources', () => {
  test('each source stands over the one before', () => {
    const key = 'runtime.http.port'
    const application = { [key]: 1 }
    const yaml = file('runtime:\n  http:\n    port: 2\n')
    const environment = { RUNTIME_HTTP_PORT: '3' }
    const set = [`${key}=4`]
    const ports = [
      loadConfig({ application }),
      loadConfig({ application, file: yaml }),
      loadConfig({ application, file: yaml, environment }),
      loadConfig({ application, file: yaml, environment, set }),
    ].map((config) => [config.get(key), config.source(key)])
    assert.deepEqual(ports, [
      [1, 'application'],
      [2, 'file'],
      [3, 'environment'],
      [4, 'command line'],
    ])
  })

  test('nested, dotted and mixed forms say the same', () => {
    for (const application of [
      { engine: { lanes: { count: 3 } } },
      { 'engine.lanes.count': 3 },
      { engine: { 'lanes.count': 3 } },
      { 'engine.lanes': { count: 3 } },
    ]) {
      assert.equal(loadConfig({ application }).get('engine.lanes.count'), 3)
      assert.equal(loadConfig({ file: file(JSON.stringify(application)) }).get('engine.lanes.count'), 3)
    }
  })

  test('of several configurations of the application the later ones stand over the earlier, key by key', () => {
    const config = loadConfig({
      application: [
        { engine: { lanes: { count: 3 }, state: { store: 'lmdb' } } },
        undefined,
        { 'engine.lanes': { count: 4 } },
      ],
    })
    assert.equal(config.get('engine.lanes.count'), 4)
    assert.equal(config.get('engine.state.store'), 'lmdb')
  })

  test('durations, sizes, lists and texts in every spelling', () => {
    const config = loadConfig({
      application: { 'commit-barrier.timeout-ms': 'PT45S', 'lane.queue-bytes': '2MiB' },
      file: file('runtime.http.allowed-hosts: [a.example, b.example]\nha.mode: off\nha.pod-id: 17\n'),
      environment: { COMMIT_BARRIER_INTERVAL_MS: '250ms', RUNTIME_METRICS_ENABLED: 'False' },
      set: ['engine.lanes.count=null', 'watermark.idleness-timeout=1m30s'],
    })
    assert.equal(config.get('commit-barrier.timeout-ms'), 45_000)
    assert.equal(config.get('lane.queue-bytes'), 2_097_152)
    assert.deepEqual(config.get('runtime.http.allowed-hosts'), ['a.example', 'b.example'])
    assert.equal(config.get('ha.mode'), 'off')
    assert.equal(config.get('ha.pod-id'), '17')
    assert.equal(config.get('commit-barrier.interval-ms'), 250)
    assert.equal(config.get('runtime.metrics.enabled'), false)
    assert.equal(config.get('engine.lanes.count'), null)
    assert.equal(config.get('watermark.idleness-timeout'), 90_000)
  })

  test('an option of the broker that has no row is refused, with the key that may be meant', () => {
    for (const [key, message] of [
      ['broker.options.delivery.timeout', /there is no such key/],
      ['broker.delivery-timout', /did you mean broker\.delivery-timeout\?/],
      ['broker.sasl.token-endpoint.client', /did you mean broker\.sasl\.token-endpoint\.client-id\?/],
    ] as const) {
      assert.throws(() => loadConfig({ set: [`${key}=5`] }), message)
    }
  })

  test('OAUTHBEARER wants a token or an endpoint, and an endpoint its credentials', () => {
    const oauth = ['broker.sasl.mechanism=OAUTHBEARER']
    const endpoint = 'broker.sasl.token-endpoint'
    assert.throws(
      () => loadConfig({ set: oauth }),
      /OAUTHBEARER needs one of a token, a token endpoint .* and a token provider/,
    )
    const half = [...oauth, `${endpoint}.url=https://tokens.example/token`]
    assert.throws(() => loadConfig({ set: half }), /wants a client id and a client secret/)
    const config = loadConfig({ set: [...half, `${endpoint}.client-id=engine`, `${endpoint}.client-secret=hush`] })
    assert.equal(config.get('broker.sasl.token-endpoint.client-id'), 'engine')
    loadConfig({ set: [...oauth, 'broker.sasl.token=x'] })
    loadConfig({ set: [...oauth, 'broker.sasl.token-provider=./tokens.ts'] })
    const both = [...oauth, 'broker.sasl.token=x', 'broker.sasl.token-provider=./tokens.ts']
    assert.throws(() => loadConfig({ set: both }), /needs one of/)
  })

  test('client options pass through, with the rows of their section', () => {
    const config = loadConfig({
      application: { consumer: { 'fetch.min.bytes': 5, 'max.poll.records': 7 } },
      environment: { CONSUMER_CHECK_CRCS: 'true', BROKER_SERVICE_HOST: '10.0.0.1', BROKER_PORT: 'tcp://10.0.0.1:80' },
    })
    const consumer = config.section('consumer.')
    assert.equal(consumer['fetch.min.bytes'], 5)
    assert.equal(consumer['max.poll.records'], 7)
    assert.equal(consumer['check.crcs'], 'true')
    assert.match(
      config.warnings.join(),
      /nothing in this version acts on them: consumer\.check\.crcs, consumer\.fetch\.min/,
    )
    assert.equal(config.get('consumer.max.poll.records'), 7)
    assert.deepEqual(config.section('broker.'), {
      'bootstrap-servers': 'embedded:',
      'embedded.partitions': 4,
      'embedded.fsync': false,
      'request-timeout': 30_000,
      'connect-timeout': 5000,
      'delivery-timeout': 60_000,
      'replication-factor': -1,
    })
  })

  test('other variables of the environment are nobody’s business, near misses get a warning', () => {
    const config = loadConfig({
      environment: { HOME: '/home/x', PATH: '/bin', ENGINE_LANE_COUNT: '3', RUNTIME_HTTP_PORT: '' },
    })
    assert.equal(config.get('engine.lanes.count'), null)
    assert.equal(config.get('runtime.http.port'), 8080)
    assert.equal(config.warnings.length, 1)
    assert.match(config.warnings[0] as string, /ENGINE_LANE_COUNT .*ENGINE_LANES_COUNT/)
  })

  test('an accepted and ignored key is accepted, with a word about it', () => {
    const config = loadConfig({ set: ['topology.description.push.enabled=false'] })
    assert.match(config.warnings.join(), /topology\.description\.push\.enabled is accepted and ignored/)
  })

  test('an empty file and empty branches are no fault', () => {
    assert.equal(loadConfig({ file: file('') }).get('runtime.http.port'), 8080)
    assert.equal(loadConfig({ file: file('engine:\n  # lanes:\nruntime: {}\n') }).get('runtime.http.port'), 8080)
  })

  test('a secret may come from a file', () => {
    const path = file('s3cret-from-file\n', 'txt')
    const config = loadConfig({ set: [`broker.sasl.password-file=${path}`, `producer.api-key-file=${path}`] })
    assert.equal(config.get('broker.sasl.password'), 's3cret-from-file')
    assert.equal(config.source('broker.sasl.password'), 'secret file')
    assert.equal(config.section('producer.')['api-key'], 's3cret-from-file')
    assert.ok(!JSON.stringify(config).includes('s3cret-from-file'))
    assert.ok(JSON.stringify(config).includes(path))
  })
})

describe('faults', () => {
  test('a time that no timer of the platform can wait for, and no request to Kafka can carry', () => {
    const keys = [
      'broker.request-timeout',
      'broker.connect-timeout',
      'consumer.session.timeout.ms',
      'producer.transaction.timeout.ms',
      'schema-registry.request-timeout',
      'runtime.http.keep-alive-timeout',
    ]
    for (const key of keys) {
      const refused = faultsOf({ set: [`${key}=25d`] })
      assert.ok(refused.includes(key) && /to 2147483647 ms/.test(refused), refused)
    }
    assert.equal(
      loadConfig({ set: ['broker.delivery-timeout=2147483647'] }).get('broker.delivery-timeout'),
      2_147_483_647,
    )
  })

  test('all are reported at once, each with key, source, what is wrong and the nearest name', () => {
    const message = faultsOf({
      application: { engine: { lane: { count: 2 } }, 'errors.decoding': 'ignore' },
      file: file('runtime.http.prot: 1\nconsumer.max.pol.records: 5\n'),
      environment: { ENGINE_LANES_COUNT: 'two' },
      set: ['nonsense', 'runtime.http.port=70000', 'totally-unknown=1'],
    })
    const lines = message.split('\n')
    assert.equal(lines.length, 9)
    assert.match(message, /^The configuration has 8 faults:/)
    assert.match(
      message,
      /engine\.lane\.count \(application\): there is no such key; did you mean engine\.lanes\.count\?/,
    )
    assert.match(
      message,
      /errors\.decoding \(application\): 'ignore' is not what it takes: one of fail, skip, dead-letter/,
    )
    assert.match(message, /runtime\.http\.prot \(file .*\): there is no such key; did you mean runtime\.http\.port\?/)
    assert.match(message, /consumer\.max\.pol\.records .* did you mean consumer\.max\.poll\.records\?/)
    assert.match(message, /engine\.lanes\.count \(environment\): 'two' is not what it takes: an integer from 1 to 256/)
    assert.match(message, /nonsense \(command line\): settings have the form key=value/)
    assert.match(message, /runtime\.http\.port \(command line\): '70000'/)
    assert.match(message, /totally-unknown \(command line\): there is no such key$/m)
  })

  const refused: ReadonlyArray<readonly [string, string]> = [
    ['engine.lanes.count', '0'],
    ['engine.lanes.count', '1.5'],
    ['engine.lanes.count', '-1'],
    ['engine.lanes.count', '9007199254740993'],
    ['runtime.http.port', ''],
    ['runtime.http.enabled', 'yes please'],
    ['commit-barrier.interval-ms', '-5s'],
    ['commit-barrier.interval-ms', 'soon'],
    ['lane.queue-bytes', '5 parsecs'],
    ['engine.state.store', 'rocksdb'],
    ['errors.dead-letter-topic', 'a topic'],
    ['ha.pod-id', 'pod/7'],
    ['license.server-url', 'ftp://x'],
    ['license.server-url', 'not a url'],
    ['engine.__proto__.x', '1'],
    ['broker.__proto__.x', '1'],
    ['broker.', '1'],
  ]
  for (const [key, value] of refused) {
    test(`${key}=${value} is refused`, () => {
      assert.ok(faultsOf({ set: [`${key}=${value}`] }).includes(key))
    })
  }

  test('a level for a component that nobody writes under is warned of, with those that there are', () => {
    const { warnings } = loadConfig({ set: ['log.levels=engin=debug,ha=warn'] })
    assert.equal(warnings.length, 1)
    assert.match(warnings[0] as string, /^log\.levels names engin; components of the log are config, .*engine/)
    const guide = readFileSync(join(import.meta.dirname, '../../../docs/guide/operations.md'), 'utf8')
    const listed = /^\| `component` \|(.*)$/m.exec(guide)?.[1] ?? ''
    const names = [...listed.matchAll(/`([a-z-]+)`/g)].map(([, name]) => name as string)
    const all = loadConfig({ set: [`log.levels=${names.map((name) => `${name}=info`).join(',')}`] })
    assert.deepEqual(all.warnings, [])
    assert.equal(names.length, 13)
  })

  test('texts without quotes are what the file says, and numbers what they mean', () => {
    const config = loadConfig({
      file: file(`
broker: { sasl: { mechanism: PLAIN, username: 007, password: 12345678901234567890 } }
ha: { pod-id: 1.10 }
schema-registry: { token: 0x1F }
runtime: { http: { port: 0x1F90, allowed-hosts: 10.20, debug: { enabled: False } } }
consumer: { some.secret: 0042, some.number: 0x10 }
`),
    })
    assert.equal(config.get('broker.sasl.username'), '007')
    assert.equal(config.get('broker.sasl.password'), '12345678901234567890')
    assert.equal(config.get('ha.pod-id'), '1.10')
    assert.equal(config.get('schema-registry.token'), '0x1F')
    assert.equal(config.get('runtime.http.port'), 8080)
    assert.deepEqual(config.get('runtime.http.allowed-hosts'), ['10.20'])
    assert.equal(config.get('runtime.http.debug.enabled'), false)
    const { 'some.secret': secret, 'some.number': number } = config.section('consumer.')
    assert.deepEqual([secret, number], ['0042', 16])
    assert.ok(!config.maskText('a 12345678901234567890 b').includes('12345678901234567890'))
  })

  test('a file in which an alias names what it lies in is refused in a sentence', () => {
    for (const text of ['engine: &a\n  lanes: *a\n', 'runtime: { http: { allowed-hosts: &a [*a] } }\n'])
      assert.match(faultsOf({ file: file(text) }), /cannot be read as YAML: an alias names a part of the file/)
  })

  test('a file that names a key twice, whether nested or dotted', () => {
    const nested = 'engine:\n  lanes:\n    count: 3\n'
    const says = /engine\.lanes\.count \(file .*\): stands there more than once; leave one of them/
    for (const more of ['engine.lanes.count: 4\n', 'engine.lanes:\n  count: 4\n', 'engine.lanes.count: 3\n']) {
      assert.match(faultsOf({ file: file(nested + more) }), says)
      assert.match(faultsOf({ file: file(more + nested) }), says)
    }
    assert.match(faultsOf({ file: file('consumer.a.b: 1\nconsumer:\n  a.b: 1\n') }), /consumer\.a\.b .* more than once/)
    assert.equal(loadConfig({ file: file(`${nested}engine.state.store: lmdb\n`) }).get('engine.lanes.count'), 3)
  })

  test('a folder for the state that is no name', () => {
    for (const value of ['', '  '])
      assert.match(faultsOf({ set: [`engine.state.dir=${value}`] }), /the path of a folder/)
    assert.match(faultsOf({ file: file('engine.state.dir: ""\n') }), /engine\.state\.dir .* the path of a folder/)
    assert.equal(loadConfig({ environment: { ENGINE_STATE_DIR: '' } }).get('engine.state.dir'), './state')
    assert.equal(loadConfig({ set: ['engine.state.dir=a folder'] }).get('engine.state.dir'), 'a folder')
  })

  test('a file that is missing, is no YAML or is no map', () => {
    assert.match(faultsOf({ file: join(folder, 'none.yaml') }), /none\.yaml: cannot be read as YAML: ENOENT/)
    assert.match(faultsOf({ file: file('a: [1,\nb: "x') }), /cannot be read as YAML/)
    assert.match(faultsOf({ file: file('- a\n- b\n') }), /must hold a map of keys/)
  })

  test('a secret given twice, an empty or missing secret file', () => {
    const path = file('abc', 'txt')
    assert.match(
      faultsOf({ set: ['license.key=x', `license.key-file=${path}`] }),
      /license\.key and license\.key-file are both set/,
    )
    assert.match(faultsOf({ set: [`license.key-file=${file(' \n', 'txt')}`] }), /is empty/)
    assert.match(faultsOf({ set: [`license.key-file=${join(folder, 'none')}`] }), /cannot be read: ENOENT/)
  })

  const broken: Readonly<Record<string, readonly string[]>> = {
    'ha.heartbeat-interval': ['ha.heartbeat-interval=3s'],
    'ha.self-fence-timeout': ['ha.self-fence-timeout=10s'],
    'consumer.heartbeat.interval.ms': ['consumer.heartbeat.interval.ms=9s'],
    'commit-barrier.interval-ms': ['commit-barrier.interval-ms=10s'],
    'runtime.http.tls.cert-file': ['runtime.http.tls.cert-file=a.pem'],
    'runtime.endpoints.stores.enabled': ['runtime.endpoints.stores.enabled=true'],
    'schema-registry.give-up-after': ['schema-registry.url=embedded', 'schema-registry.give-up-after=30s'],
    'schema-registry.tls.cert-file': ['schema-registry.tls.key-file=a.pem'],
    'broker.tls.cert-file': ['broker.tls.key-file=a.pem'],
    'broker.sasl.mechanism': ['broker.sasl.mechanism=plain', 'broker.sasl.username=u'],
    'broker.sasl.token': ['broker.sasl.mechanism=oauthbearer'],
    'broker.sasl.token-endpoint.url': ['broker.sasl.token-endpoint.url=ftp://x'],
    'runtime.http.advertised-address': ['runtime.http.advertised-address=10.0.0.7:8080'],
    'runtime.http.console.pods': ['runtime.http.console.pods=http://10.0.0.7:8080/console/'],
    'runtime.http.headers-timeout': ['runtime.http.headers-timeout=30s'],
    'license.server-url': ['license.server-url=nowhere'],
    'license.public-keys': ['license.public-keys=http://keys.example/jwks.json'],
  }
  for (const rule of crossRules) {
    test(`rule: ${rule.sentence}`, () => {
      const set = broken[rule.keys[0] as string]
      assert.ok(set, 'a rule without a case')
      assert.ok(faultsOf({ set }).includes(rule.sentence))
    })
  }

  test('a short failover with a short heartbeat is fine without further keys', () => {
    const config = loadConfig({ set: ['ha.failover-timeout=3s', 'ha.heartbeat-interval=300ms'] })
    assert.equal(selfFenceTimeoutMs(config), 2400)
  })
})

describe('renderings', () => {
  test('nested map: groups on top, unset is null', () => {
    const nested = loadConfig({ set: ['runtime.http.port=1'] }).toNested() as {
      engine: { lanes: { count: unknown } }
      runtime: { http: { port: unknown } }
    }
    assert.equal(nested.engine.lanes.count, null)
    assert.equal(nested.runtime.http.port, 1)
  })

  test('a client option that bars the path of another loses neither', () => {
    const config = loadConfig({ application: { 'consumer.ssl': true, 'consumer.ssl.ca.location': '/x' } })
    const consumer = config.toNested().consumer as Record<string, unknown>
    assert.equal(consumer.ssl, true)
    assert.equal(consumer['ssl.ca.location'], '/x')
  })

  test('survives the way to another thread', () => {
    const config = loadConfig({ set: ['license.key=abcdefgh', 'consumer.x=1', 'engine.lanes.count=5'] })
    const copy = Config.fromPlain(structuredClone(config.plain()))
    assert.ok(isDeepStrictEqual(copy.toNested(), config.toNested()))
    assert.equal(copy.get('engine.lanes.count'), 5)
    assert.equal(copy.maskText('key abcdefgh.'), 'key ******.')
  })
})
