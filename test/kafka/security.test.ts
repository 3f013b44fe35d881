/** TLS, SASL and refused permissions: each works, or fails with one sentence that says what to do. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { KafkaOptions } from '../../src/broker/kafka/options.ts'
import { BrokerError } from '../../src/broker/port.ts'
import { TestProducer } from '../support/broker-io.ts'
import { eventually } from '../support/millrace.ts'
import { kafkaForTests } from '../support/kafka.ts'

const secured = { username: 'alice', password: 'alice-secret' }
const sessionMs = 1500
const settings = { 'connections.max.reauth.ms': String(sessionMs) }
const kafka = await kafkaForTests({ own: true, secured, settings })
const skip = 'skip' in kafka ? kafka.skip : false
const broker = 'skip' in kafka ? undefined : kafka.broker
const topic = 'secured'

/** What OAUTHBEARER of a broker without a validator takes: a token without a signature. */
function unsecuredToken(): string {
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const nowSeconds = Math.floor(Date.now() / 1000)
  return `${part({ alg: 'none' })}.${part({ sub: 'alice', iat: nowSeconds, exp: nowSeconds + 600 })}.`
}

async function withPort<T>(
  options: Partial<KafkaOptions>,
  use: (port: ReturnType<typeof connectKafka>) => Promise<T>,
): Promise<T> {
  const port = connectKafka({
    bootstrapServers: [broker?.saslBootstrap ?? ''],
    clientId: 'security-test',
    firstContactMs: 300,
    ...options,
  })
  try {
    return await use(port)
  } finally {
    await port.close()
  }
}

async function refusal(call: () => Promise<unknown>): Promise<BrokerError> {
  const error = await call().then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof BrokerError, `expected a BrokerError, got ${String(error)}`)
  return error
}

describe('security of Kafka connections', { skip }, () => {
  after(async () => {
    if (!('skip' in kafka)) await kafka.stop()
  })

  for (const mechanism of ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'] as const) {
    test(`${mechanism} lets the right password in`, () =>
      withPort({ sasl: { mechanism, ...secured } }, async (port) => {
        // Without an access rule alice sees no topic at all, but she is in.
        assert.deepEqual(await port.topics(null), [])
        assert.equal(port.connected, true)
      }))

    test(`${mechanism} with a wrong password fails at once, with what to check`, () =>
      withPort({ sasl: { mechanism, username: 'alice', password: 'wrong' } }, async (port) => {
        const error = await refusal(() => port.topics(null))
        assert.equal(error.code, 'SASL_AUTHENTICATION_FAILED')
        assert.equal(error.errorClass, 'config')
        assert.match(error.message, /refused the credentials; check `broker\.sasl\.\*`/)
        assert.doesNotMatch(error.message, /wrong/)
      }))
  }

  test('OAUTHBEARER takes a token', () =>
    withPort({ sasl: { mechanism: 'OAUTHBEARER', token: unsecuredToken() } }, async (port) => {
      assert.deepEqual(await port.topics(null), [])
    }))

  test('OAUTHBEARER fetches its token from an endpoint, once for all connections', async () => {
    let asked = 0
    const server = createServer((request, response) => {
      asked++
      assert.equal(request.headers.authorization, `Basic ${Buffer.from('engine:hush').toString('base64')}`)
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ access_token: unsecuredToken(), expires_in: 600 }))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port: number } = server.address() as { port: number }
    const tokenEndpoint = { url: `http://127.0.0.1:${number}/token`, clientId: 'engine', clientSecret: 'hush' }
    await withPort({ sasl: { mechanism: 'OAUTHBEARER', tokenEndpoint } }, async (port) => {
      await Promise.all([port.topics(null), port.describeGroup('none').catch(() => undefined)])
    })
    assert.equal(asked, 1)
    await new Promise((resolve) => server.close(resolve))
  })

  test('OAUTHBEARER takes tokens of a module, anew before each ends, and the old one while that fails', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-tokens-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const answers = join(folder, 'answers')
    const module = join(folder, 'tokens.mjs')
    // It says how often it was asked, and fails every second time.
    writeFileSync(
      module,
      `import { appendFileSync, readFileSync } from 'node:fs'
       appendFileSync(${JSON.stringify(answers)}, '')
       const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
       export default ({ signal }) => {
         signal.throwIfAborted()
         appendFileSync(${JSON.stringify(answers)}, '.')
         if (readFileSync(${JSON.stringify(answers)}).length % 2 === 0) throw new Error('the metadata service is away')
         const iat = Math.floor(Date.now() / 1000)
         const token = part({ alg: 'none' }) + '.' + part({ sub: 'alice', iat, exp: iat + 20 }) + '.'
         return { token, expiresAtMs: Date.now() + 4000 }
       }`,
    )
    const asked = (): number => readFileSync(answers).length
    const tokenProvider = pathToFileURL(module).href
    await withPort({ sasl: { mechanism: 'OAUTHBEARER', tokenProvider } }, async (port) => {
      await Promise.all([port.topics(null), port.listOffsets([], 'latest')])
      assert.equal(asked(), 1, 'once for all connections')
      await eventually('it is asked again while nothing is opened', () => asked() >= 4)
    })
    await withPort({ sasl: { mechanism: 'OAUTHBEARER', tokenProvider: `${tokenProvider}?fails` } }, async (port) => {
      if (asked() % 2 === 0) appendFileSync(answers, '.')
      const error = await refusal(() => port.topics(null))
      assert.equal(error.code, 'SASL_AUTHENTICATION_FAILED')
      assert.match(error.message, /the metadata service is away.*`broker\.sasl\.token-provider`/)
    })
  })

  test('sessions that the broker ends cost no call, and leave no connection behind', async () => {
    const read = 'sessions'
    await withPort({ bootstrapServers: [broker?.bootstrap ?? ''] }, (admin) =>
      admin.createTopics([{ topic: read, partitions: 1 }]),
    )
    const rule = ['--add', '--allow-principal', 'User:alice', '--operation', 'READ', '--topic', read]
    await broker?.tool('org.apache.kafka.tools.AclCommand', ['--bootstrap-server', broker.bootstrap, ...rule])
    const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length
    const before = sockets()
    const sasl = { mechanism: 'SCRAM-SHA-256', ...secured } as const
    await withPort({ sasl, requestTimeoutMs: 1000 }, async (port) => {
      const at = { topic: read, partition: 0 }
      const request = { partitions: [{ ...at, offset: 0, maxBytes: 1000 }], maxWaitMs: 300, maxBytes: 1000 }
      const until = performance.now() + 8 * sessionMs
      const again = async (call: () => Promise<unknown>): Promise<void> => {
        while (performance.now() < until) await call()
      }
      await Promise.all([
        again(() => port.fetch({ ...request, isolation: 'read_committed' })),
        again(() => port.listOffsets([at], 'latest')),
      ])
      // One for each use, and what still waits for its last answer.
      await eventually('old connections are ended', () => sockets() - before <= 4, 5000)
    })
  })

  test('a listener with SASL refuses a client without, and the sentence says so', () =>
    withPort({}, async (port) => {
      const error = await refusal(() => port.topics(null))
      assert.equal(error.errorClass, 'unreachable')
      assert.match(error.message, /`broker\.bootstrap-servers`|`broker\.sasl/)
    }))

  test('TLS with the right authority connects', () =>
    withPort({ bootstrapServers: [broker?.tlsBootstrap ?? ''], tls: { ca: broker?.certificate } }, async (port) => {
      assert.ok(Array.isArray(await port.topics(null)))
    }))

  test('TLS with an unknown authority is refused, with what to check', () =>
    withPort({ bootstrapServers: [broker?.tlsBootstrap ?? ''], tls: {} }, async (port) => {
      const error = await refusal(() => port.topics(null))
      assert.equal(error.errorClass, 'unreachable')
      assert.match(error.message, /No TLS connection to Kafka at localhost:\d+ \(.*\); check `broker\.tls\.\*`/)
    }))

  test('TLS towards a plain listener says so', () =>
    withPort({ bootstrapServers: [broker?.bootstrap ?? ''], tls: {} }, async (port) => {
      const error = await refusal(() => port.topics(null))
      assert.match(error.message, /No TLS connection/)
    }))

  test('a plain client at a TLS listener is told of TLS', () =>
    withPort({ bootstrapServers: [broker?.tlsBootstrap ?? ''] }, async (port) => {
      const error = await refusal(() => port.topics(null))
      assert.match(error.message, /TLS/)
    }))

  test('what no access rule allows is refused with the permission to grant', async () => {
    await withPort({ bootstrapServers: [broker?.bootstrap ?? ''] }, (admin) =>
      admin.createTopics([{ topic, partitions: 1 }]),
    )
    await withPort({ sasl: { mechanism: 'PLAIN', ...secured } }, async (port) => {
      const reading = await refusal(() => port.topics([topic]))
      assert.equal(reading.code, 'TOPIC_AUTHORIZATION_FAILED')
      assert.equal(reading.errorClass, 'config')
      assert.match(reading.message, /Grant this principal READ, WRITE and DESCRIBE on the topic/)
      const group = await refusal(() => port.committedOffsets('some-app', [{ topic, partition: 0 }], true))
      assert.match(group.message, /some-app.*Grant this principal READ on the consumer group/)
      const transaction = await refusal(() => TestProducer.open(port, 'some-id'))
      assert.match(transaction.message, /some-id.*Grant this principal WRITE and DESCRIBE on the transactional id/)
      const creating = await refusal(() => port.createTopics([{ topic: 'another', partitions: 1 }]))
      assert.match(creating.message, /creating another.* CREATE where the engine is to make it/)
    })
  })
})
