/** Composition of one running application: configuration, broker, engine, license, HTTP interface. */
import { pathToFileURL } from 'node:url'
import { systemClock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import type { EmbeddedBroker } from '../broker/embedded/start.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import type { EngineCommands, EngineView } from '../engine/view.ts'
import { EngineError } from '../errors.ts'
import { loadApplication } from '../lanes/application.ts'
import { createLicense } from '../license/license.ts'
import { lockStateFolder } from '../state/state-lock.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { splitTopology } from '../topology/split.ts'
import { type BrokerHandle, openBroker } from './broker.ts'
import type { LogLine, Runtime, RuntimeOptions, StoreReader } from './contract.ts'
import { EngineHost } from './engine-host.ts'
import { exitCodes } from './exit-codes.ts'
import { HaLink, isHotStandby, refuseWithHotStandby, stateFolderOf } from './ha.ts'
import { type HttpHandle, packageVersion, startHttp } from './http.ts'
import { plainLog } from './log.ts'
import { StoreQueries } from './store-queries.ts'
import { counterLayout, engineSettings, isDurable, policiesOf, writeBehindOf } from './settings.ts'

/**
 * Starts an application: its broker link, its engine threads, its HTTP interface.
 *
 * Resolves as soon as the threads are on their way; `runtime.view.state()` tells when records are processed. Rejects
 * with an `EngineError` whose message is one sentence when the configuration or the application is at fault.
 *
 * @example
 * const runtime = await startRuntime({ application: './app.ts', config: { 'runtime.http.enabled': false } })
 * await runtime.untilIdle()
 * const exitCode = await runtime.stop()
 */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const application = applicationUrl(options.application)
  const app = await loadApplication(application)
  const config = loadConfig({
    application: [app.config, options.config],
    ...(options.configFile !== undefined && { file: options.configFile }),
    ...(options.environment && { environment: options.environment }),
    ...(options.set && { set: options.set }),
  })
  const log = masked(config, options.log ?? plainLog(config.get('log.level')))
  for (const warning of config.warnings) log({ level: 'warn', component: 'config', message: warning })
  const { applicationId } = app
  refuseWithHotStandby(config)
  const compiled = app.compile({ optimize: config.get('topology.optimization') === 'all' })
  const topology = splitTopology(compiled, config.get('topology.sub-topology-split'))
  refuseSchedules(config, topology)
  const stateDir = isDurable(config) ? stateFolderOf(config) : null
  const lock = stateDir === null ? undefined : lockStateFolder(stateDir, applicationId)
  const running = new RunningApplication(config, log, () => lock?.release())
  try {
    await running.start(application, applicationId, topology, stateDir, options.broker)
    return running
  } catch (error) {
    await running.abandon()
    throw error
  }
}

/** Every process of a split application would fire every schedule: nobody says which of them should. */
function refuseSchedules(config: Config, topology: CompiledTopology): void {
  if (config.get('topology.sub-topology-split') === 'in-process') return
  const scheduled = topology.sources.find((source) => source.kind === 'scheduled')
  if (!scheduled) return
  throw new EngineError(
    'CONFIG_INVALID',
    `topology.sub-topology-split: the scheduled source ${scheduled.name} runs in one process only; set it to in-process, ` +
      'or give the schedule an application of its own that writes to a topic',
  )
}

function applicationUrl(application: string | URL): string {
  if (application instanceof URL) return application.href
  return application.startsWith('file:') ? application : pathToFileURL(application).href
}

function masked(config: Config, log: (line: LogLine) => void): (line: LogLine) => void {
  return (line) => log({ ...line, message: config.maskText(line.message) })
}

class RunningApplication implements Runtime {
  readonly #config: Config
  #brokerHandle: BrokerHandle | undefined
  readonly #log: (line: LogLine) => void
  readonly #release: () => void
  readonly ended: Promise<number>
  #resolveEnded: (code: number) => void = () => undefined
  #host!: EngineHost
  #http: HttpHandle | undefined
  #ha: HaLink | null = null
  #stopping = false
  readonly #hurried = Promise.withResolvers<void>()
  #closed: Promise<void> | undefined
  readonly #license: ReturnType<typeof createLicense>

  constructor(config: Config, log: (line: LogLine) => void, release: () => void) {
    this.#config = config
    this.#log = log
    this.#release = release
    this.#license = createLicense({ config, clock: systemClock, random: new Random(systemClock.now()), log })
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve
    })
  }

  get view(): EngineView {
    return this.#host
  }

  get commands(): EngineCommands {
    return this.#host
  }

  get ha(): Runtime['ha'] {
    return this.#ha
  }

  get broker(): BrokerPort {
    return (this.#brokerHandle as BrokerHandle).client
  }

  get url(): string | undefined {
    return this.#http?.url
  }

  get indicators(): Runtime['indicators'] {
    return this.#parts().health
  }

  get metrics(): Runtime['metrics'] {
    const { metrics } = this.#parts()
    return { append: (source) => metrics?.append(source) ?? (() => undefined) }
  }

  get handler(): Runtime['handler'] {
    return this.#parts().handler
  }

  #parts(): HttpHandle {
    return this.#http as HttpHandle
  }

  async start(
    application: string,
    applicationId: string,
    topology: Parameters<typeof engineSettings>[2],
    stateDir: string | null,
    shared: EmbeddedBroker | undefined,
  ): Promise<void> {
    const config = this.#config
    const log = this.#log
    this.#ha = isHotStandby(config)
      ? new HaLink({ config, applicationId, topology, build: packageVersion(), log })
      : null
    this.#host = new EngineHost({
      applicationId,
      application,
      optimize: config.get('topology.optimization') === 'all',
      topology,
      settings: engineSettings(config, applicationId, topology),
      policies: policiesOf(config, applicationId),
      layout: counterLayout(topology),
      stateDir,
      writeBehind: writeBehindOf(config),
      maxInFlight: config.get('lane.max-in-flight'),
      historySize: config.get('engine.processing.state-transition-history-size'),
      failureExitCode: config.get('runtime.failure-exit-code'),
      bootstrapServers: config.maskText(config.get('broker.bootstrap-servers')),
      clock: systemClock,
      log: this.#log,
      ended: (code, error) => this.#engineEnded(code, error !== undefined),
      ...(this.#ha && { ha: this.#ha }),
    })
    // The HTTP interface is there before broker and engine, so that probes are true from the first moment.
    this.#http = await startHttp({ config, host: this.#host, license: this.#license, ha: this.#ha, log })
    this.#license.start()
    this.#brokerHandle = await openBroker(config, applicationId, shared)
    await this.#ha?.start(this.#brokerHandle, this.#host)
    this.#host.start(this.#brokerHandle.address())
  }

  store<K, V>(name: string): StoreReader<K, V> {
    const stores = this.#host.topology().stores
    const spec = stores.get(name)
    if (spec === undefined) {
      const known = [...stores.keys()].sort().join(', ') || 'none'
      throw new EngineError('USAGE', `there is no store ${name}; the application has ${known}`)
    }
    return new StoreQueries<K, V>(spec, (query, limit) => this.#host.query(name, query, limit))
  }

  untilIdle(): Promise<void> {
    return this.#host.untilIdle()
  }

  async stop(): Promise<number> {
    const code = await this.#host.stop(await this.#handOver(this.#config.get('runtime.shutdown.timeout')))
    await this.#close()
    this.#resolveEnded(code)
    return code
  }

  /** An active pod gives its role away before it stops; answers with the time that is left. */
  async #handOver(deadlineMs: number): Promise<number> {
    if (!this.#ha) return deadlineMs
    if (this.#stopping) {
      this.#hurried.resolve()
      return deadlineMs
    }
    this.#stopping = true
    const startedAt = systemClock.monotonic()
    this.#host.announceStop()
    await Promise.race([this.#ha.stop(deadlineMs), this.#hurried.promise])
    return Math.max(0, deadlineMs - (systemClock.monotonic() - startedAt))
  }

  async kill(): Promise<void> {
    this.#ha?.abandon()
    await this.#host.kill()
    await this.#close()
    this.#resolveEnded(exitCodes.crash)
  }

  #engineEnded(code: number, failed: boolean): void {
    // A failed engine keeps its HTTP interface, so that people can see why; the process ends where it is told to.
    if (failed && !this.#config.get('runtime.exit-on-failure')) return
    this.#resolveEnded(code)
  }

  /** The start has failed: nothing stays behind. */
  abandon(): Promise<void> {
    return this.#close()
  }

  #close(): Promise<void> {
    this.#closed ??= this.#closeAll()
    return this.#closed
  }

  async #closeAll(): Promise<void> {
    await this.#license.stop()
    await this.#http?.close()
    await this.#ha?.close()
    await this.#brokerHandle?.close()
    this.#release()
  }
}
