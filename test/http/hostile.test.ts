import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ThreadsSnapshot } from '../../src/view/view.ts'
import { eventually } from '../support/millrace.ts'
import { answersIn, ask, talk } from './support/client.ts'
import { FakeEngine } from './support/fake-engine.ts'
import { startFake } from './support/fake-subject.ts'

/** Opens connections that send something, or nothing, and then never go on. */
async function hold(url: string, count: number, bytes: string): Promise<Socket[]> {
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    return socket
  })
  await Promise.all(sockets.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
  for (const socket of sockets) if (bytes !== '' && socket.writable) socket.write(bytes)
  return sockets
}

/** An answer larger than what connections hold of it. */
function wide(): NonNullable<FakeEngine['offsetsSnapshot']> {
  const partitions = Array.from({ length: 200_000 }, (_, partition) => ({
    partition,
    committedOffset: 1_000_000_000,
    logEndOffset: 2_000_000_000,
    withheld: 0,
  }))
  return { sources: [{ topic: 'wide', partitions }], changelogs: [] }
}

describe('hostile clients', { timeout: 60_000 }, () => {
  for (const [what, bytes] of [
    ['silent', ''],
    ['half a request line', 'GET /hea'],
    ['half a header', 'GET /state HTTP/1.1\r\nHost: a\r\nX-Slow: '],
    ['half a body', 'POST /pause HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab'],
  ] as const) {
    test(`500 connections that hold ${what}: probes go on answering`, async (t) => {
      const instance = await startFake()
      const sockets = await hold(instance.url, 500, bytes)
      t.after(async () => {
        for (const socket of sockets) socket.destroy()
        await instance.stop()
      })
      for (let i = 0; i < 50; i++) {
        const answer = await ask(instance.url, { path: '/health/live' })
        assert.equal(answer.status, 200)
      }
    })
  }

  test('connections over the limit are closed, the newest are kept', async (t) => {
    const instance = await startFake({ config: { maxConnectionsPerAddress: 10 } })
    const sockets = await hold(instance.url, 100, 'GET /')
    t.after(async () => {
      for (const socket of sockets) socket.destroy()
      await instance.stop()
    })
    for (let i = 0; i < 200 && sockets.filter((socket) => !socket.destroyed).length > 10; i++) await sleep(10)
    assert.ok(sockets.filter((socket) => !socket.destroyed).length <= 10)
  })

  test('a request that does not come to its end is answered 408 and closed', async (t) => {
    const instance = await startFake({ config: { headersTimeoutMs: 200, requestTimeoutMs: 400 } })
    t.after(() => instance.stop())
    const [answer] = answersIn(await talk(instance.url, 'GET /state HTTP/1.1\r\nHost: a\r\nX: '))
    assert.equal(answer?.status, 408)
    assert.deepEqual(Object.keys(answer.json), ['error'])
  })

  test('clients that ask for much and take nothing of it do not keep the others out', async (t) => {
    const instance = await startFake({ config: { maxConnectionsPerAddress: 10, requestTimeoutMs: 500 } })
    instance.fake.offsetsSnapshot = wide()
    const { hostname, port } = new URL(instance.url)
    const sockets = Array.from({ length: 10 }, () => {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => undefined)
      socket.pause()
      socket.write('GET /offsets HTTP/1.1\r\nHost: a\r\n\r\n')
      return socket
    })
    t.after(async () => {
      for (const socket of sockets) socket.destroy()
      await instance.stop()
    })
    for (let i = 0; ; i++) {
      const answer = await ask(instance.url, { path: '/health/live' }).catch(() => undefined)
      if (answer?.status === 200) break
      assert.ok(i < 200, 'the probe is never answered')
      await sleep(50)
    }
  })

  test('an answer that is long in the making comes; the client who does not take it is cut off', async (t) => {
    const begun = Promise.withResolvers<void>()
    const engine = new (class extends FakeEngine {
      override async threads(options: { depth: number }): Promise<ThreadsSnapshot> {
        begun.resolve()
        await sleep(9000)
        return super.threads(options)
      }
    })()
    // Whoever takes nothing is cut off after 4 s.
    const instance = await startFake({ config: { headersTimeoutMs: 1000, requestTimeoutMs: 1000 } }, engine)
    instance.fake.offsetsSnapshot = wide()
    const { hostname, port } = new URL(instance.url)
    const slow = instance.ask({ path: '/debug/threads' })
    await begun.promise
    const idle = connect(Number(port), hostname)
    t.after(async () => {
      idle.destroy()
      await instance.stop()
    })
    idle.pause()
    idle.write('GET /offsets HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal((await slow).status, 200)
    let received = ''
    idle.on('data', (bytes) => {
      received += bytes.toString('latin1')
    })
    idle.resume()
    await once(idle, 'close')
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1])
    assert.ok(received.length < length, `${received.length} of ${length} bytes were kept for it`)
  })

  test('oversized headers, targets and bodies get their status with the body that explains', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const many = Array.from({ length: 70 }, (_, i) => `X-${i}: 1\r\n`).join('')
    const sent: ReadonlyArray<readonly [bytes: string, status: number, says?: RegExp]> = [
      [
        `GET /state HTTP/1.1\r\nHost: a\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
        431,
        /^request headers are larger than 8192 bytes$/,
      ],
      [`GET /state HTTP/1.1\r\nHost: a\r\n${many}\r\n`, 431, /^more than 64 header fields$/],
      [`GET /${'y'.repeat(10_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
      [`GET /state?${'y'.repeat(2100)} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
      [`POST /pause HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'z'.repeat(100_000)}`, 413],
      [`POST /pause HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n`, 413],
      [`POST /pause HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4000\r\n${'z'.repeat(16_384)}\r\n`, 413],
    ]
    for (const [bytes, status, says = /./] of sent) {
      const [answer] = answersIn(await talk(instance.url, bytes))
      assert.equal(answer?.status, status, bytes.slice(0, 30))
      assert.deepEqual(Object.keys(answer.json), ['error'])
      assert.match(String(answer.json.error), says)
    }
    assert.deepEqual(instance.fake.given, [], 'no command was carried out')
  })

  test('invalid HTTP gets 400 with the body, and costs the others nothing', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const sent = [
      '\x16\x03\x01\x02\x00\x01\x00\x01',
      'GET\r\n\r\n',
      'GET /state\r\n\r\n',
      'GET /state HTTP/9.9\r\nHost: a\r\n\r\n',
      'GET /state HTTP/1.1\r\nHost a\r\n\r\n',
      'GET /state HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      'GET /state HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
      'POST /pause HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n',
      'GET /state HTTP/1.1\nHost: a\r\nX\0: 1\r\n\r\n',
      '{"json": true}\r\n\r\n',
    ]
    for (const bytes of sent) {
      const [answer] = answersIn(await talk(instance.url, bytes))
      assert.equal(answer?.status, 400, JSON.stringify(bytes))
      assert.deepEqual(Object.keys(answer.json), ['error'])
      assert.equal((await ask(instance.url, { path: '/health/live' })).status, 200)
    }
    assert.deepEqual(instance.fake.given, [])
  })

  test('a body that does not come to its end: 408 where the answer waits for it, silence where it was given', async (t) => {
    const instance = await startFake({ config: { headersTimeoutMs: 200, requestTimeoutMs: 400 } })
    t.after(() => instance.stop())
    const chunked = 'POST /pause HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab'
    assert.deepEqual(
      answersIn(await talk(instance.url, chunked)).map((answer) => answer.status),
      [408],
    )
    assert.deepEqual(instance.fake.given, [])
    const short = 'POST /pause HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab'
    assert.deepEqual(
      answersIn(await talk(instance.url, short, 4000)).map((answer) => answer.status),
      [200],
    )
  })

  test('pipelined requests are answered in order, and what is no request after them', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
    const said = await talk(
      instance.url,
      `${get('/debug/threads')}${get('/nope')}${get('/metrics')}GARBAGE\r\n\r\n`,
      10_000,
    )
    assert.deepEqual(
      answersIn(said).map((answer) => answer.status),
      [200, 404, 200, 400],
    )
  })

  test('a connection is closed after its number of requests, with every request before answered', async (t) => {
    const instance = await startFake({ config: { maxRequestsPerSocket: 5 } })
    t.after(() => instance.stop())
    const said = await talk(instance.url, 'GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(8))
    const answers = answersIn(said)
    assert.equal(answers.length, 5)
    assert.equal(answers[4]?.headers.connection, 'close')
  })

  test('methods of other protocols are refused with a body', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const [tunnel] = answersIn(await talk(instance.url, 'CONNECT example.com:443 HTTP/1.1\r\nHost: a\r\n\r\n'))
    assert.equal(tunnel?.status, 404)
    const upgrade = 'GET /state HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    assert.equal(answersIn(await talk(instance.url, upgrade))[0]?.status, 200)
    const [expects] = answersIn(await talk(instance.url, 'GET /state HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n'))
    assert.equal(expects?.status, 417)
    assert.deepEqual(Object.keys(expects.json), ['error'])
  })

  test('a tunnel that is asked for behind an answer under way, and a reset, end nothing but the connection', async (t) => {
    const dumps = Promise.withResolvers<void>()
    let underWay = 0
    const engine = new (class extends FakeEngine {
      override async threads(options: { depth: number }): Promise<ThreadsSnapshot> {
        underWay++
        await dumps.promise
        return super.threads(options)
      }
    })()
    const instance = await startFake({}, engine)
    t.after(() => instance.stop())
    const asked = 'GET /debug/threads HTTP/1.1\r\nHost: a\r\n\r\nCONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
    const sockets = await hold(instance.url, 2, asked)
    await eventually('both dumps are under way', () => underWay === 2)
    sockets[0]?.resetAndDestroy()
    await instance.ask({ path: '/health/live' })
    dumps.resolve()
    sockets[1]?.resetAndDestroy()
    assert.equal((await instance.ask({ path: '/debug/threads' })).status, 200)
  })

  test('memory stays flat under thousands of broken requests', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const storm = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) {
        await Promise.all(Array.from({ length: 20 }, () => talk(instance.url, `GET /${'x'.repeat(9000)}`, 1)))
      }
    }
    await storm()
    const before = process.memoryUsage().heapUsed
    await storm()
    await storm()
    const grownMiB = (process.memoryUsage().heapUsed - before) / 2 ** 20
    assert.ok(grownMiB < 40, `grew by ${grownMiB.toFixed(1)} MiB`)
  })
})
