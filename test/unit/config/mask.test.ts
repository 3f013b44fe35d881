import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import fc from '../../support/properties.ts'
import { stringify } from 'yaml'
import { loadConfig } from '../../../src/config/load.ts'
import { isSecretKey, mask, maskText, maskValue } from '../../../src/config/mask.ts'
import { configKeys, rowOf } from '../../../src/config/table.ts'

describe('keys that name secrets (R25, R50)', () => {
  const secret = [
    'license.key',
    'broker.sasl.password',
    'broker.ssl.key.password',
    'broker.ssl.key-passphrase',
    'broker.client-secret',
    'broker.clientSecret',
    'broker.CLIENT_SECRET',
    'runtime.http.auth.token',
    'broker.sasl.jaas.config',
    'broker.sasl.jaas',
    'schema-registry.api-key',
    'schema-registry.api.key',
    'schema-registry.apiKey',
    'schema-registry.basic.auth.user.info',
    'broker.private-key',
    'broker.private.key',
    'broker.aws.secret.access.key',
    'admin.authorization',
    'admin.headers.Authorization',
    'broker.credentials',
    'broker.credentials.user',
    'broker.password.value',
    'broker.tokens.0',
    'broker.connection-string',
  ]
  for (const key of secret) test(`${key} is one`, () => assert.equal(isSecretKey(key), true))

  const open = [
    'producer.key.serializer',
    'license.key-file',
    'broker.sasl.password-file',
    'broker.sasl.oauthbearer.token-endpoint',
    'broker.sasl.oauthbearer.token.endpoint.url',
    'broker.tls.key-file',
    'broker.sasl.username',
    'broker.sasl.mechanism',
    'broker.basic.auth.credentials.source',
    'consumer.max.poll.records',
    'license.public-keys',
    'engine.instance-id',
  ]
  for (const key of open) test(`${key} is none`, () => assert.equal(isSecretKey(key), false))

  test('of the table exactly the rows marked secret, and the license key', () => {
    for (const key of configKeys) assert.equal(isSecretKey(key), rowOf(key).secret === true, key)
  })
})

describe('free text', () => {
  const cases: ReadonlyArray<readonly [string, string]> = [
    ['http://user:canary1@host:80/x', 'http://******@host:80/x'],
    ['sasl+ssl://canary1@host', 'sasl+ssl://******@host'],
    ['http://u:can/ary1@host', 'http://******@host'],
    ['kafka://u:canary1@h1:9092,u:canary1@h2:9092', 'kafka://******@h1:9092,******@h2:9092'],
    ['connect to u:canary1@host failed', 'connect to ******@host failed'],
    ['password=canary1', 'password=******'],
    ['x?password=canary1&y=2', 'x?password=******&y=2'],
    ['{"password":"canary1 canary1","y":1}', '{"password":******,"y":1}'],
    [
      "PlainLoginModule required username='u' password='canary1';",
      "PlainLoginModule required username='u' password=******;",
    ],
    ['client_secret: canary1', 'client_secret: ******'],
    ['Authorization: Bearer canary1canary1', 'Authorization: Bearer ******'],
    ['Authorization: Basic Y2FuYXJ5MQ==', 'Authorization: Basic ******'],
    ['sent with bearer canary1canary1', 'sent with bearer ******'],
    ['-----BEGIN PRIVATE KEY-----\ncanary1\n-----END PRIVATE KEY----- rest', '****** rest'],
    ['-----BEGIN EC PRIVATE KEY-----\ncanary1', '******'],
    ['token eyJhbGciOi.canary1.canary1 rest', 'token ****** rest'],
  ]
  for (const [text, masked] of cases) test(text.split('\n')[0] as string, () => assert.equal(maskText(text), masked))

  const untouched = [
    'file:///a/node_modules/@scope/name/x.js:10:5',
    'the password is wrong',
    'set `errors.decoding` to `skip`',
    'https://host/path?email=a@b.example',
    'license.key-file (file x.yaml): cannot be read',
    'bearer token missing',
    'at 12:30:05 host:9092,host:9093 answered',
  ]
  for (const text of untouched) test(`left alone: ${text}`, () => assert.equal(maskText(text), text))

  test('masking twice changes nothing more', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => assert.equal(maskText(maskText(text)), maskText(text))),
    )
  })

  test('long hostile text takes no time to speak of', () => {
    for (const text of [
      'a',
      'a.',
      'password',
      'http://',
      'eyJaaaaa.',
      '"',
      'a:a@',
      '-----BEGIN X',
      'bearer ',
      'token=\\"',
    ]) {
      // Of the processor, which a busy machine gives when it comes to it.
      const before = process.threadCpuUsage()
      maskText(text.repeat(20_000))
      const { user, system } = process.threadCpuUsage(before)
      assert.ok(user + system < 5_000_000, text)
    }
  })
})

test('values are masked through arrays and objects, by key and by look; the mask is exact', () => {
  const value = maskValue('broker.x', {
    list: [{ password: 'canary1', user: 'u' }, 'http://a:canary1@h', 'x password="canary1"'],
    deep: { tokens: ['canary1'], n: 5, none: null, secret: 17 },
  })
  assert.deepEqual(value, {
    list: [{ password: mask, user: 'u' }, 'http://******@h', mask],
    deep: { tokens: mask, n: 5, none: null, secret: mask },
  })
})

/** A canary in every kind of place a secret may come from; none may be found in any rendering. */
test('no secret survives in any rendering', () => {
  const canary = fc.stringMatching(/^[A-Za-z0-9]{10,20}$/).map((text) => `Zq9${text}`)
  const place = fc.constantFrom<(c: string) => Parameters<typeof loadConfig>[0]>(
    (c) => ({ set: [`license.key=${c}`] }),
    (c) => ({ set: [`broker.sasl.password=${c}`] }),
    (c) => ({ environment: { RUNTIME_HTTP_AUTH_TOKEN: c } }),
    (c) => ({ environment: { BROKER_SASL_OAUTHBEARER_CLIENT_SECRET: c } }),
    (c) => ({ environment: { DB_PASSWORD: c }, application: { 'consumer.x': `uses ${c} here` } }),
    (c) => ({ application: { schemaless: undefined, 'schema-registry.url': `https://user:${c}@host/` } }),
    (c) => ({ application: { broker: { 'bootstrap-servers': `sasl://u:${c}@h:9092,h2:9092` } } }),
    (c) => ({ application: { 'consumer.sasl.jaas.config': `X required password="${c}";` } }),
    (c) => ({ application: { 'admin.options': `a=1;password=${c};b=2` } }),
    (c) => ({ application: { 'admin.nested': [{ deep: [{ 'api-key': c }] }] } }),
    (c) => ({ application: { 'admin.credentials': { user: c, list: [c] } } }),
    (c) => ({ application: { 'admin.pem': `-----BEGIN PRIVATE KEY-----\n${c}\n-----END PRIVATE KEY-----` } }),
    (c) => ({ application: { 'admin.header': `Bearer ${c}` } }),
    (c) => ({ set: [`producer.ssl.key.password=${c}`, `producer.note=again ${c}`] }),
  )
  fc.assert(
    fc.property(canary, place, (secret, make) => {
      const config = loadConfig(make(secret))
      const masked = config.toNestedMasked()
      const renderings = [
        JSON.stringify(masked),
        stringify(masked),
        JSON.stringify(config),
        String(config),
        inspect(config, { depth: 20 }),
        config.warnings.join(),
      ]
      for (const text of renderings) assert.ok(!text.includes(secret), text)
      assert.ok((renderings[0] as string).includes(mask))
    }),
  )
})

test('no secret survives in the fault lines', () => {
  const canary = 'Zq9canaryZq9'
  for (const sources of [
    { set: [`broker.sasl.pasword=${canary}`] },
    { set: [`license.key=${canary}`, 'runtime.http.port=x'] },
    { application: { 'engine.lanes.count': [{ password: canary }] } },
    { application: { 'engine.lanes.count': `http://u:${canary}@h` } },
    { environment: { RUNTIME_HTTP_AUTH_TOKEN: canary, RUNTIME_HTTP_HOST: canary, RUNTIME_HTTP_PORT: canary } },
    { application: { license: { key: [canary] } } },
  ]) {
    assert.throws(
      () => loadConfig(sources),
      (error: Error) => !`${error.message}${error.stack}`.includes(canary),
      JSON.stringify(sources),
    )
  }
})
