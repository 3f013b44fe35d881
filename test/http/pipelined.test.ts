import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { answersIn, ask, talk } from './support/client.ts'
import { startFake } from './support/fake-subject.ts'
import type { HostileWork } from './support/hostile-client.ts'
import { type Live, startLive } from './support/live.ts'

/**
 * The whole minute, with a probe each second: `HOSTILE_SECONDS=60`. How long a probe waits for the machine is none of the
 * server's doing, and beside other work it may be long. So what counts is how long the server's thread works while the
 * probe waits. On a machine with nothing else to do (`HOSTILE_ALONE=1`) the clock has to agree.
 */
const seconds = Number(process.env.HOSTILE_SECONDS ?? 6)
const isAlone = process.env.HOSTILE_ALONE === '1'
const longestMs = 1000
const asked = (path: string, times: number): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(times)

interface Probes {
  count: number
  /** Of the slowest: by the clock, and how long the server's thread has worked meanwhile; milliseconds. */
  clockMs: number
  workMs: number
}

const workedMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The server runs on the thread of this test; the clients of this kind are processes of their own. */
async function slowestProbe(live: Live, clients: readonly Omit<HostileWork, 'url'>[]): Promise<Probes> {
  const file = fileURLToPath(new URL('support/hostile-client.ts', import.meta.url))
  const children = clients.map(() => fork(file))
  await Promise.all(children.map((child) => once(child, 'message')))
  for (const [i, child] of children.entries()) child.send({ url: live.url, ...clients[i] })
  const probes: Probes = { count: 0, clockMs: 0, workMs: 0 }
  const end = performance.now() + (seconds * 1000) / 3
  while (performance.now() < end) {
    const began = performance.now()
    const worked = workedMs()
    const answer = await live.ask({ path: '/health/live' })
    probes.count++
    probes.clockMs = Math.max(probes.clockMs, performance.now() - began)
    probes.workMs = Math.max(probes.workMs, workedMs() - worked)
    assert.equal(answer.status, 200, answer.body)
    await sleep(seconds < 60 ? 100 : 1000)
  }
  const ended = children.map((child) => once(child, 'exit'))
  // They give way to everything else on the machine: to end by themselves could take them minutes.
  for (const child of children) child.kill('SIGKILL')
  await Promise.all(ended)
  return probes
}

describe('pipelined requests', { timeout: 60_000 + seconds * 2000 }, () => {
  test('whatever clients pipeline, a probe waits for less than a second and memory is bounded', async (t) => {
    const live = await startLive({ app: 'conformance-app' })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    const before = process.memoryUsage.rss()
    let most = before
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 50)
    t.after(() => clearInterval(watch))
    const all = ['/config', '/openapi.json', '/info', '/offsets', '/topology/compiled', '/debug/threads', '/metrics']
    const kinds: ReadonlyArray<readonly Omit<HostileWork, 'url'>[]> = [
      [{ connections: 10, bytes: asked('/config', 200), manner: 'reads' }],
      [{ connections: 60, bytes: asked('/openapi.json', 1000), manner: 'takes nothing' }],
      [
        { connections: 20, bytes: all.map((path) => asked(path, 100)).join(''), manner: 'reads' },
        { connections: 40, bytes: asked('/config', 1600), manner: 'goes away' },
      ],
    ]
    for (const clients of kinds) {
      const { count, clockMs, workMs } = await slowestProbe(live, clients)
      const grownMiB = (most - before) / 2 ** 20
      t.diagnostic(
        `${clients.map(({ manner }) => manner).join(', ')}: ${count} probes, at most ${clockMs.toFixed()} ms, of which the server worked ${workMs.toFixed()} ms, ${grownMiB.toFixed()} MiB`,
      )
      assert.ok(workMs < longestMs, `the server worked for ${workMs.toFixed()} ms while a probe waited`)
      if (isAlone) assert.ok(clockMs < longestMs, `a probe took ${clockMs.toFixed()} ms`)
      assert.ok(grownMiB < 400, `memory grew by ${grownMiB.toFixed()} MiB`)
    }
  })

  test('a client that pipelines and reads is answered all it asked, in order', async (t) => {
    const instance = await startFake({ config: { maxPipelinedRequests: 4 } })
    t.after(() => instance.stop())
    const bodies = ['/state', '/info', '/nope'].map((path) => asked(path, 1)).join('')
    const answers = answersIn(await talk(instance.url, bodies.repeat(40)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array.from({ length: 40 }, () => [200, 200, 404]).flat(),
    )
  })

  test('a connection with far too much unanswered gets what was taken on, then 503, then its end', async (t) => {
    const instance = await startFake({ config: { maxPipelinedRequests: 4 } })
    t.after(() => instance.stop())
    instance.fake.threads = async () => {
      await sleep(100)
      return { timestamp: '', engineThreads: [], platformThreads: [] }
    }
    const answers = answersIn(await talk(instance.url, asked('/debug/threads', 5000), 2000))
    const last = answers.pop()
    assert.equal(last?.status, 503)
    assert.match(String(last?.json.error), /more than 4 requests of this connection are unanswered/)
    assert.equal(last?.headers.connection, 'close')
    assert.ok(answers.length >= 4 && answers.length < 100, String(answers.length))
    assert.ok(answers.every(({ status }) => status === 200))
  })

  test('connections that wait to be taken are taken between answers: a probe among them comes soon', async (t) => {
    const instance = await startFake({ config: { maxConnections: 200, maxConnectionsPerAddress: 200 } })
    t.after(() => instance.stop())
    let made = 0
    instance.fake.threads = async () => {
      made++
      return { timestamp: '', engineThreads: [], platformThreads: [] }
    }
    const { hostname, port } = new URL(instance.url)
    const opened = (count: number): Socket[] =>
      Array.from({ length: count }, () => connect(Number(port), hostname).on('error', () => undefined))
    const busy = opened(40)
    t.after(() => {
      for (const socket of busy) socket.destroy()
    })
    for (const socket of busy) {
      socket.resume()
      socket.write(asked('/debug/threads', 1000))
    }
    while (made < 400) await sleep(1)
    const before = made
    const others = opened(60)
    t.after(() => {
      for (const socket of others) socket.destroy()
    })
    const answer = ask(instance.url, { path: '/health/live' })
    assert.equal((await answer).status, 200)
    // Sixty are taken before the probe, one in each round of the loop; the rounds around them make a few more.
    assert.ok(made - before < 400, `${made - before} answers were made before the probe`)
  })

  test('what a closed connection had asked for is not made', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    let begun = 0
    instance.fake.threads = async () => {
      begun++
      await sleep(50)
      return { timestamp: '', engineThreads: [], platformThreads: [] }
    }
    const { hostname, port } = new URL(instance.url)
    const socket = connect(Number(port), hostname)
    socket.write(asked('/debug/threads', 10))
    while (begun === 0) await sleep(1)
    socket.destroy()
    await sleep(300)
    assert.equal(begun, 1)
    assert.equal((await ask(instance.url, { path: '/health/live' })).status, 200)
  })

  test('the configuration, the topology and the description of the interface are made once', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const stringify = t.mock.method(JSON, 'stringify')
    for (const path of ['/config', '/topology', '/topology/ks', '/topology/compiled', '/openapi.json']) {
      const question = { path, headers: { accept: 'application/json' } }
      const first = await instance.ask(question)
      const made = stringify.mock.callCount()
      const second = await instance.ask(question)
      assert.equal(first.status, 200)
      assert.equal(first.body, second.body)
      assert.equal(stringify.mock.callCount(), made, path)
    }
  })
})
