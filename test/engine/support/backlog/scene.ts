/**
 * An application over a backlog, as a process of its own: it is watched from outside, killed under way, and judged by what it
 * has committed.
 */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerPort } from '../../../../src/broker/port.ts'
import { connectKafka } from '../../../../src/broker/kafka/kafka-broker.ts'
import { startEmbeddedBroker } from '../../../../src/runtime/index.ts'
import type { Command, Told } from './child.ts'
import { type Backlog, fill, judge } from './judge.ts'
import { Service } from './service.ts'

export interface SceneOptions {
  readonly name: string
  /** How its function is slow: see the application. */
  readonly kind: 'waits' | 'computes' | 'later' | 'asks'
  readonly backlog: readonly Backlog[]
  /** Address of a Kafka; undefined: the broker is part of the process. */
  readonly bootstrap?: string
  readonly store: 'memory' | 'lmdb'
  /** So often its end comes under way, in turn by SIGKILL and within the process. */
  readonly kills: number
  /** It is stopped then, done or not; or, where it is short, a while after its last end. */
  readonly seconds: number
  readonly short?: boolean
  /** The service fails for so long, a while after the beginning. */
  readonly failsSeconds?: number
  /** With so many processes beside it that want all of the processor, and less right to it than these. */
  readonly busy?: number
  /** It and these have no other core than this. */
  readonly core?: number
  readonly config?: Readonly<Record<string, unknown>>
}

export interface Outcome {
  readonly committed: number
  readonly seconds: number
  /** Committed offsets that were seen to have grown, and the longest time in which they had not. */
  readonly steps: number
  readonly longestGapMs: number
  readonly kills: number
  /** What it took at most until it ran, from the start of the process on. */
  readonly longestStartMs: number
  /** Most memory of the process, and what it had a quarter of the way. */
  readonly rssBytes: number
  readonly earlyRssBytes: number
  /** Part of one core that it got. */
  readonly cores: number
  /** What it logged as warnings and errors. */
  readonly complaints: readonly string[]
  readonly faults: readonly string[]
  readonly mostCalls: number
}

const child = join(import.meta.dirname, 'child.ts')
const callFails = /^A call of .+ has failed \d+ times .+ the service answered 503$/
const busyLoop = 'for (;;);'
/** So often committed offsets grow between two ends. */
const stepsBetween = 8

export class Scene {
  readonly #o: SceneOptions
  readonly #folder = mkdtempSync(join(tmpdir(), 'millrace-backlog-'))
  readonly #busy: ChildProcess[] = []
  #service: Service | undefined
  #child: ChildProcess | undefined
  #exit: Promise<number | null> = Promise.resolve(null)
  #told: Told | undefined
  #since = 0
  #longestGapMs = 0
  #startedAt = 0
  #longestStartMs = 0
  #steps = 0
  #committed = 0
  #rss = 0
  #earlyRss = 0
  #cpuMs = 0
  #killed = 0
  #failing = false
  readonly #complaints: string[] = []

  constructor(options: SceneOptions) {
    this.#o = options
  }

  async play(): Promise<Outcome> {
    const { kind, busy = 0, name, backlog, failsSeconds = 0, seconds } = this.#o
    try {
      if (kind === 'asks') this.#service = await Service.start()
      await this.#withBroker((broker) => fill(broker, name, backlog))
      for (let i = 0; i < busy; i++)
        this.#busy.push(this.#spawn([process.execPath, '-e', busyLoop], { stdio: 'ignore' }))
      this.#start()
      const began = performance.now()
      const failed = failsSeconds > 0 ? this.#fail(failsSeconds) : Promise.resolve()
      await this.#watch(began + seconds * 1000)
      const spent = performance.now() - began
      await failed
      await this.#stop()
      for (const child of this.#busy) child.kill('SIGKILL')
      const { committed, faults } = await this.#withBroker((broker) => judge(broker, name, backlog))
      return {
        committed,
        seconds: spent / 1000,
        steps: this.#steps,
        longestGapMs: Math.round(this.#longestGapMs),
        kills: this.#killed,
        longestStartMs: Math.round(this.#longestStartMs),
        rssBytes: this.#rss,
        earlyRssBytes: this.#earlyRss,
        cores: this.#cpuMs / spent,
        complaints: this.#complaints,
        faults,
        mostCalls: this.#service?.most ?? 0,
      }
    } finally {
      for (const child of [this.#child, ...this.#busy]) child?.kill('SIGKILL')
      await this.#service?.stop()
      rmSync(this.#folder, { recursive: true, force: true })
    }
  }

  async #withBroker<T>(use: (broker: BrokerPort) => Promise<T>): Promise<T> {
    const { bootstrap } = this.#o
    if (bootstrap !== undefined) {
      const broker = connectKafka({ bootstrapServers: [bootstrap], clientId: 'backlog' })
      return use(broker).finally(() => broker.close())
    }
    const broker = await startEmbeddedBroker({ folder: join(this.#folder, 'broker'), partitions: 4 })
    const client = broker.client()
    return use(client).finally(async () => {
      await client.close()
      await broker.close()
    })
  }

  #start(): void {
    const { name, kind, bootstrap, store, config, busy = 0 } = this.#o
    const all = {
      'broker.bootstrap-servers': bootstrap ?? `embedded:${join(this.#folder, 'broker')}`,
      'broker.embedded.partitions': 4,
      'engine.state.dir': join(this.#folder, 'state'),
      'engine.state.store': store,
      'engine.lanes.count': 2,
      'runtime.http.enabled': false,
      ...config,
    }
    // A test runner's own variables must not reach the child: it would report to it.
    const { NODE_TEST_CONTEXT: _, ...inherited } = process.env
    const env = {
      ...inherited,
      BACKLOG_NAME: name,
      BACKLOG_KIND: kind,
      BACKLOG_URL: this.#service?.url ?? '',
      BACKLOG_CONFIG: JSON.stringify(all),
    }
    const nice = busy > 0 ? ['nice', '-n', '5'] : []
    const made = this.#spawn([...nice, process.execPath, child], {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#child = made
    this.#told = undefined
    this.#startedAt = performance.now()
    this.#exit = new Promise((resolve) => made.once('exit', (code) => resolve(code)))
    let cpuMs = 0
    made.on('message', (told: Told) => {
      this.#cpuMs += told.cpuMs - cpuMs
      cpuMs = told.cpuMs
      this.#hear(told)
    })
  }

  #spawn(command: readonly string[], options: SpawnOptions): ChildProcess {
    const { core } = this.#o
    const pinned = core === undefined ? [] : ['taskset', '-c', String(core)]
    const [file, ...args] = [...pinned, ...command] as [string, ...string[]]
    return spawn(file, args, options)
  }

  #hear(told: Told): void {
    const now = performance.now()
    const before = this.#told
    this.#told = told
    // That calls fail is said once a lane while the service is away.
    const isOfService = (text: string): boolean => this.#o.failsSeconds !== undefined && callFails.test(text)
    this.#complaints.push(...told.complaints.filter((text) => !isOfService(text)))
    this.#rss = Math.max(this.#rss, told.rss)
    if (told.committed < this.#o.backlog.length / 4) this.#earlyRss = this.#rss
    // What it takes to start is not counted, nor what nobody could have committed.
    const runs = told.state === 'RUNNING' && before?.state === 'RUNNING'
    if (runs && this.#startedAt > 0) {
      this.#longestStartMs = Math.max(this.#longestStartMs, now - this.#startedAt)
      this.#startedAt = 0
    }
    if (!runs || this.#failing) this.#since = now
    else this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#since)
    if (told.committed <= this.#committed) return
    this.#committed = told.committed
    this.#since = now
    this.#steps++
  }

  async #fail(seconds: number): Promise<void> {
    const service = this.#service as Service
    while (this.#steps < 20) {
      this.#alive()
      await sleep(50)
    }
    service.fails = true
    this.#failing = true
    await sleep(seconds * 1000)
    service.fails = false
    this.#failing = false
  }

  /** Until all is committed, or that time has come; its ends come in between. */
  async #watch(until: number): Promise<void> {
    const { backlog, kills, short } = this.#o
    let steps = 0
    while (this.#committed < backlog.length && performance.now() < until) {
      await sleep(50)
      this.#alive()
      if (this.#steps < steps + stepsBetween || this.#failing) continue
      if (this.#killed >= kills && short) return
      if (this.#killed >= kills) continue
      await this.#kill()
      steps = this.#steps
    }
  }

  /** Throws where it has ended by itself, or stands still for good. */
  #alive(): void {
    const code = this.#child?.exitCode
    const state = this.#told?.state
    if (state === 'FAILED' || typeof code === 'number')
      throw new Error(`it is ${state}, its exit code ${code}:\n${this.#complaints.join('\n')}`)
  }

  async #kill(): Promise<void> {
    this.#killed++
    if (this.#killed % 2 === 0) {
      this.#child?.send('kill' satisfies Command)
      return
    }
    this.#child?.kill('SIGKILL')
    await this.#exit
    this.#start()
  }

  async #stop(): Promise<void> {
    while (this.#told?.state !== 'RUNNING') {
      this.#alive()
      await sleep(50)
    }
    this.#child?.send('stop' satisfies Command)
    const code = await this.#exit
    if (code !== 0) throw new Error(`it ended with ${code}\n${this.#complaints.join('\n')}`)
  }
}
