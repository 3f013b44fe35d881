/** Brings a real engine into states that pass by themselves, and keeps it there: something real does not come back. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../scripts/free-ports.ts'
import { startRuntime } from '../../../src/runtime/index.ts'
import { ask } from './client.ts'
import { type Live, liveConfig, startLive } from './live.ts'

/** What the rows need of an engine that is held. */
export interface Held extends Pick<Live, 'url' | 'ask' | 'state' | 'stop'> {
  readonly log: ReadonlyArray<{ readonly level: string; readonly message: string }>
}
type Config = Readonly<Record<string, unknown>>

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'millrace-held-'))
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

export async function words(live: Live, from = 0): Promise<void> {
  const records = ['a', 'b', 'c', 'd'].map((text, i) => ({ key: text, value: { text }, timestamp: 1e12 + from + i }))
  await live.feed('words', records)
  await live.runtime.untilIdle()
}

/** CREATED: the disk does not answer the broker. The HTTP interface is there before it. */
export async function holdCreated(config: Config): Promise<Held> {
  const folder = newFolder()
  // Reading from a pipe waits until somebody writes into it.
  const pipe = join(folder, 'journal')
  execFileSync('mkfifo', [pipe])
  const port = await freePort()
  const log: Array<{ level: string; message: string }> = []
  const starting = startRuntime({
    application: new URL('../apps/conformance-app.ts', import.meta.url),
    environment: {},
    config: { ...liveConfig, 'runtime.http.port': port, 'broker.bootstrap-servers': `embedded:${folder}`, ...config },
    log: (line) => log.push(line),
  })
  const ended = starting.then(
    (runtime) => runtime.stop(),
    () => undefined,
  )
  const url = `http://127.0.0.1:${port}`
  const deadline = performance.now() + 60_000
  for (;;) {
    const answer = await ask(url, { path: '/state' }).catch(() => undefined)
    if (answer?.json.current !== undefined) break
    if (performance.now() > deadline) throw new Error(`${url} did not answer within 60 s`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return {
    url,
    log,
    ask: (question) => ask(url, question),
    state: async () => String((await ask(url, { path: '/state' })).json.current),
    stop: async () => {
      closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK))
      await ended
      remove(folder)
    },
  }
}

/** Where the application's processors wait while the file is there. */
class Gate {
  readonly #folder = newFolder()
  readonly #file = join(this.#folder, 'shut')

  shut(): void {
    writeFileSync(this.#file, '')
  }

  /** Starts an application whose lanes know this gate: they take the environment over when they begin. */
  async start(app: string, config: Config): Promise<Live> {
    process.env.CONFORMANCE_GATE = this.#file
    try {
      const live = await startLive({ app, config })
      return { ...live, stop: () => this.#stop(live) }
    } finally {
      delete process.env.CONFORMANCE_GATE
    }
  }

  async #stop(live: Live): Promise<void> {
    if (existsSync(this.#file)) rmSync(this.#file)
    await live.stop()
    remove(this.#folder)
  }
}

/** RESTORING: there is state to bring back, and the application's processor does not get done with its beginning. */
export async function holdRestoring(config: Config): Promise<Held> {
  const folder = newFolder()
  const durable = { ...config, 'broker.bootstrap-servers': `embedded:${folder}` }
  const first = await startLive({ app: 'conformance-app', config: durable })
  await words(first)
  await first.stop()
  const gate = new Gate()
  gate.shut()
  const live = await gate.start('conformance-app', durable)
  await live.untilState('RESTORING')
  return {
    ...live,
    stop: async () => {
      await live.stop()
      remove(folder)
    },
  }
}

/** RESTARTING: a record takes longer than a commit may, and what has to begin anew does not get done with it. */
export async function holdRestarting(config: Config): Promise<Held> {
  const gate = new Gate()
  const live = await gate.start('gated-app', { ...config, 'commit-barrier.timeout-ms': 500 })
  await live.untilState('RUNNING')
  await words(live)
  gate.shut()
  await live.feed('words', [{ key: 'slow', value: { text: 'slow', slowMs: 3_600_000 }, timestamp: 1e12 + 10 }])
  await live.untilState('RESTARTING')
  return live
}

/** STOPPED: the interface is mounted in a server of the application's own, which goes on when the engine has ended. */
export async function holdStopped(config: Config): Promise<Held> {
  const live = await startLive({ app: 'conformance-app', config: { ...config, 'runtime.http.enabled': false } })
  await live.untilState('RUNNING')
  await words(live)
  const server = createServer((request, response) => void live.runtime.handler(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await live.runtime.stop()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    log: live.log,
    ask: (question) => ask(url, question),
    state: live.state,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
