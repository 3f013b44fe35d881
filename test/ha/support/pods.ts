/** Several pods of one application in this process, over one embedded broker: real engines, real coordinators. */
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BrokerPort } from '../../../src/broker/port.ts'
import type { HaStatus } from '../../../src/ha/shown/view.ts'
import {
  type EmbeddedBroker,
  type LogLine,
  type Runtime,
  startEmbeddedBroker,
  startRuntime,
} from '../../../src/runtime/index.ts'
import { consume, type In, type Out, produce } from '../../engine/support/engine.ts'

export type Settings = Readonly<Record<string, unknown>>

/** Quick enough for tests, slow enough that a machine under load is not mistaken for a dead one. */
const quick: Settings = {
  'ha.mode': 'hot-standby',
  'ha.heartbeat-interval': 150,
  'ha.failover-timeout': 6000,
  'ha.min-promotion-interval': 200,
  'ha.claim-stagger': 100,
  'engine.lanes.count': 2,
  'commit-barrier.interval-ms': 20,
  'runtime.http.host': '127.0.0.1',
  'runtime.http.port': 0,
}

const partitions = 2

export class Pod {
  readonly id: string
  readonly runtime: Runtime
  readonly log: LogLine[]
  gone = false

  constructor(id: string, runtime: Runtime, log: LogLine[]) {
    this.id = id
    this.runtime = runtime
    this.log = log
  }

  get status(): HaStatus | null {
    return this.runtime.ha?.status() ?? null
  }

  get haState(): string {
    return this.status?.selfState ?? 'NONE'
  }

  get active(): boolean {
    return this.haState === 'ACTIVE' && this.lifecycle === 'RUNNING'
  }

  get lifecycle(): string {
    return this.runtime.view.state().current
  }

  async ask(method: 'GET' | 'POST', path: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const answer = await fetch(`${this.runtime.url}${path}`, { method })
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
  }

  async stop(): Promise<number> {
    this.gone = true
    return this.runtime.stop()
  }

  async kill(): Promise<void> {
    this.gone = true
    await this.runtime.kill()
  }
}

export class Pods {
  readonly broker: EmbeddedBroker
  readonly client: BrokerPort
  readonly #application: URL
  readonly #settings: Settings
  readonly all: Pod[] = []
  readonly #users: Array<() => Promise<unknown>> = []

  private constructor(broker: EmbeddedBroker, application: URL, settings: Settings) {
    this.broker = broker
    this.client = broker.client()
    this.#application = application
    this.#settings = settings
  }

  /** All pods and the broker end with the test. */
  static async start(
    t: Pick<TestContext, 'after'>,
    application: URL,
    ids: readonly string[],
    settings: Settings = {},
  ): Promise<Pods> {
    const pods = await Pods.none(t, application, settings)
    for (const id of ids) await pods.add(id)
    return pods
  }

  static async none(t: Pick<TestContext, 'after'>, application: URL, settings: Settings = {}): Promise<Pods> {
    const broker = await startEmbeddedBroker({ partitions })
    const pods = new Pods(broker, application, settings)
    t.after(() => pods.close())
    return pods
  }

  async add(id: string, settings: Settings = {}, application = this.#application): Promise<Pod> {
    const log: LogLine[] = []
    const runtime = await startRuntime({
      application,
      environment: {},
      broker: this.broker,
      config: { ...quick, 'broker.embedded.partitions': partitions, ...this.#settings, 'ha.pod-id': id, ...settings },
      log: (line) => log.push(line),
    })
    const pod = new Pod(id, runtime, log)
    this.all.push(pod)
    return pod
  }

  get living(): Pod[] {
    return this.all.filter((pod) => !pod.gone)
  }

  pod(id: string): Pod {
    const found = this.living.find((pod) => pod.id === id)
    if (!found) throw new RangeError(`there is no pod ${id}`)
    return found
  }

  /** The one pod that is active and processes. */
  async active(withinMs?: number): Promise<Pod> {
    return this.until(
      'one pod is active',
      () => {
        const active = this.living.filter((pod) => pod.active)
        return active.length === 1 && active[0]
      },
      withinMs,
    )
  }

  /** All others are ready to take over. */
  async ready(): Promise<Pod> {
    const active = await this.active()
    await this.until('the others are ready', () =>
      this.living.every((pod) => pod === active || pod.haState === 'READY_STANDBY'),
    )
    // A view is as old as the last heartbeat that it holds: the active has to know of it too.
    await this.until(
      'the active knows that they are',
      () => active.status?.readyStandbyCount === this.living.length - 1,
    )
    return active
  }

  async until<T>(
    what: string,
    look: () => T | false | undefined | Promise<T | false | undefined>,
    withinMs = 90_000,
  ): Promise<T> {
    const deadline = performance.now() + withinMs
    for (;;) {
      const found = await look()
      if (found !== false && found !== undefined) return found
      if (performance.now() > deadline)
        throw new Error(`waited ${withinMs} ms in vain until ${what}; ${this.#describe()}`)
      await sleep(5)
    }
  }

  /**
   * Gives a command, and again for as long as it is refused: on a machine under load a standby is now and then not ready
   * for a moment, and a view a heartbeat old.
   */
  async command(pod: Pod, path: string): Promise<Record<string, unknown>> {
    return this.until(`${path} is accepted by ${pod.id}`, async () => {
      const { status, body } = await pod.ask('POST', path)
      return status === 202 && body
    })
  }

  /** Gives a command until it is carried out: the acting pod judges once more, and may see what this one does not. */
  async carryOut(pod: Pod, path: string): Promise<void> {
    for (;;) {
      const { commandOffset } = await this.command(pod, path)
      const outcome = await this.until(`${path} has an outcome`, () => {
        const said = this.all
          .flatMap(({ log }) => log)
          .find(({ message }) => message.includes(`(offset ${commandOffset}): `))
        return said?.message
      })
      if (outcome.includes('DONE')) return
    }
  }

  put(topic: string, records: readonly In[]): Promise<void> {
    return produce(this.client, topic, records, partitions)
  }

  read(topic: string): Promise<Out[]> {
    return consume(this.client, topic)
  }

  /** What uses the broker is to end before it does. */
  endsWith(call: () => Promise<unknown>): void {
    this.#users.push(call)
  }

  async close(): Promise<void> {
    await Promise.all(this.#users.map((call) => call()))
    await Promise.all(this.living.map((pod) => pod.stop()))
    await this.client.close()
    await this.broker.close()
  }

  #describe(): string {
    return this.all
      .map(({ id, gone, haState, lifecycle, log }) => {
        const lines = log.slice(-8).map(({ component, message }) => `${component}: ${message}`)
        return `${id} ${gone ? 'gone' : `${haState} ${lifecycle}`}:\n    ${lines.join('\n    ')}`
      })
      .join('\n')
  }
}
