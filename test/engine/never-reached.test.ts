/** A Kafka that was never reached: nobody listens there, or whoever does never says a word. */
import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { BrokerError } from '../../src/broker/port.ts'
import { eventually } from '../support/millrace.ts'
import { TestEngine } from './support/engine.ts'
import { found, quiet } from './support/why.ts'

describe('a Kafka that was never reached', () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).resume()
  })
  before(() => new Promise<void>((done) => silent.listen(0, '127.0.0.1', done)))
  after(() => {
    for (const socket of sockets) socket.destroy()
    silent.close()
  })
  const nobodys = (): string => '127.0.0.1:1'
  const silents = (): string => `127.0.0.1:${(silent.address() as { port: number }).port}`

  for (const [who, address] of [
    ['nobody listens', nobodys],
    ['nobody answers', silents],
  ] as const) {
    for (const when of ['at once', 'when it was asked who has the place', 'when it is known to be gone'] as const) {
      test(`does not keep a process from its end where ${who}, ${when}`, async (t) => {
        const engine = await TestEngine.start(t, 'standing', {
          ...quiet,
          'broker.bootstrap-servers': address(),
          'engine.state.store': 'memory',
        })
        const asked = engine.broker.topics(['works']).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (when === 'when it was asked who has the place') {
          await eventually('the engine has begun to ask', () => engine.runtime.view.broker().nodes?.length !== 0)
        }
        if (when === 'when it is known to be gone') await found(engine, 'BROKER_GONE')
        const code = await engine.stop()
        assert.equal(code, 0, JSON.stringify([engine.runtime.view.state(), engine.log]))
        // Whoever waits for an answer hears that there will be none.
        const error = await asked
        assert.ok(error instanceof BrokerError && error.errorClass === 'unreachable', String(error))
        await assert.rejects(engine.broker.topics(['works']), { code: 'CLOSED', errorClass: 'unreachable' })
      })
    }
  }

  test('is refused in the start where its address is none', async () => {
    for (const [servers, wrong] of [
      ['a b', 'a b'],
      ['127.0.0.1:1, kafka:99999', 'kafka:99999'],
      ['127.0.0.1:1,', ''],
    ] as const) {
      const message = `broker.bootstrap-servers: "${wrong}" is no broker address; write it as host:port`
      const starting = TestEngine.open('standing', { 'broker.bootstrap-servers': servers })
      await assert.rejects(starting, { code: 'CONFIG_INVALID', message })
    }
  })

  test('is refused in the start where it is the embedded broker without its colon, and no host', async () => {
    const starting = TestEngine.open('standing', { 'broker.bootstrap-servers': 'embedded' })
    const message =
      'broker.bootstrap-servers: "embedded" is no broker address; the embedded broker is "embedded:", or "embedded:<folder>"'
    await assert.rejects(starting, { code: 'CONFIG_INVALID', message })
  })

  test('is told with what brought the error about, by clients in another thread too', async (t) => {
    const settings = { 'broker.bootstrap-servers': nobodys(), 'engine.state.store': 'memory' }
    const engine = await TestEngine.start(t, 'standing', settings)
    await assert.rejects(engine.broker.topics(['works']), (error: BrokerError) => {
      assert.equal(error.code, 'UNREACHABLE')
      const chain: Error[] = []
      for (let cause = error.cause; cause instanceof Error; cause = cause.cause) chain.push(cause)
      const refused = chain.find((each) => 'code' in each && each.code === 'ECONNREFUSED')
      assert.match(refused?.message ?? String(chain), /connect ECONNREFUSED 127\.0\.0\.1:1/)
      return true
    })
  })
})
