/** Composition of one running application: configuration, broker, engine, license, HTTP interface. */
import { pathToFileURL } from 'node:url'
import { systemClock } from '../base/clock.ts'
import { packageVersion } from '../base/package-version.ts'
import { Random } from '../base/random.ts'
import { longestDelayMs } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { configuredNames } from '../config/sources.ts'
import { answerOf } from '../view/diagnosis/answer.ts'
import type { Diagnosis } from '../view/diagnosis/diagnosis.ts'
import type { EngineCommands, EngineView } from '../view/view.ts'
import { EngineError } from '../base/errors.ts'
import { transactionalIdOf } from '../engine/commit/identity.ts'
import type { DataAccess } from '../http/data-seam.ts'
import { compilingOf, loadApplication } from '../lanes/application.ts'
import { createLicense } from '../license/license.ts'
import { stateFolder } from '../state/backends.ts'
import { lockStateFolder } from '../state/backends/state-lock.ts'
import { unlikeKeys } from '../topology/copartition.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { type HoldingCircle, holdingCircles } from '../topology/levels/held-back.ts'
import { sayWait, waitForAbove } from '../topology/levels/wait-for-above.ts'
import { splitTopology } from '../topology/split.ts'
import { type BrokerHandle, openBroker, serversOf } from './broker.ts'
import type { LogLine, Runtime, RuntimeOptions, StoreReader } from './contract.ts'
import { dataAccess } from './data/data.ts'
import { startDiagnosis } from './why/diagnosis.ts'
import { EngineHost } from './engine/engine-host.ts'
import { exitCodes } from './exit-codes.ts'
import { Identity } from './why/identity.ts'
import { HaLink, isHotStandby, refuseWithHotStandby, stateFolderOf } from './ha.ts'
import { type HttpHandle, startHttp } from './http.ts'
import { levelOf, logOf, maskedLog } from './log.ts'
import { SchemaService } from './schemas/schema-service.ts'
import { KeptFailures } from './why/failures-kept.ts'
import { StoreQueries } from './data/store-queries.ts'
import { ApplicationTopics } from './topics/application-topics.ts'
import { counterLayout, engineSettings, isDurable, policiesOf, writeBehindOf } from './settings.ts'

const unfolded =
  'with `topology.sub-topology-split: repartition-topics` tables tell every update: `emit: per-commit` holds in process only'

const lateInACircle = ({ topic, holder, window }: HoldingCircle): string =>
  `${holder} holds records back that come over ${topic} to ${window} and in a circle to where they were read: through topics the input goes on ` +
  'meanwhile, so while there is a backlog they are late, whatever the grace. Use topology.sub-topology-split: in-process, or let another application do what lies behind the topic'

/**
 * Starts an application: its broker link, its engine threads, its HTTP interface.
 *
 * Resolves as soon as the threads are starting; `runtime.view.state()` says when records are processed. Rejects with an
 * `EngineError`, whose message is one sentence, when the configuration or the application is at fault.
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
  const log = maskedLog(config, logOf(options, config))
  for (const warning of config.warnings) log({ level: 'warn', component: 'config', message: warning })
  for (const line of overlooked(config, options)) log(line)
  const { applicationId } = app
  refuseWithHotStandby(config)
  const compiled = app.compile(compilingOf(config))
  const topology = splitTopology(compiled, config.get('topology.sub-topology-split'))
  refuseSchedules(config, topology)
  if (topology.perCommit.size < compiled.perCommit.size)
    log({ level: 'warn', component: 'topology', message: unfolded })
  for (const { name, sides } of unlikeKeys(topology)) {
    const ways = sides.map(({ topics, serde }) => `those of ${topics} with ${serde}`).join(', ')
    const message =
      `records of several sources are to meet by key at ${name}, and their keys are written in different ways: ${ways}. Their bytes ` +
      'differ, so they do not meet: give all of them the same key serde, or repartition one of them with it'
    log({ level: 'warn', component: 'topology', message })
  }
  const throughTopics = config.get('topology.sub-topology-split') !== 'in-process'
  for (const message of throughTopics ? holdingCircles(topology).map(lateInACircle) : [])
    log({ level: 'warn', component: 'topology', message })
  for (const wait of waitForAbove(compiled, throughTopics).waits)
    log({ level: 'info', component: 'topology', message: sayWait(wait) })
  const stateDir = isDurable(config) ? stateFolderOf(config) : null
  const lock = stateDir === null ? undefined : lockStateFolder(stateDir, applicationId)
  const running = new RunningApplication(config, log, () => lock?.release())
  try {
    await running.start(application, applicationId, topology, stateDir, options)
    return running
  } catch (error) {
    await running.abandon()
    throw error
  }
}

/** What a program may have forgotten to say, and would wonder about. */
function overlooked(config: Config, { environment, broker }: RuntimeOptions): LogLine[] {
  const lines: LogLine[] = []
  if (environment === undefined) {
    const names = configuredNames(process.env)
    if (names.length > 0) {
      const message = `the environment has ${names.join(', ')}, which is not read here: give startRuntime \`environment: process.env\` for it to count`
      lines.push({ level: 'warn', component: 'config', message })
    }
  }
  if (broker === undefined && !config.isSet('broker.bootstrap-servers')) {
    const message =
      'broker.bootstrap-servers is not set: this runs on a broker of its own in memory, empty at first and gone at the end'
    lines.push({ level: 'info', component: 'config', message })
  }
  return lines
}

/** Every process of a split application would fire every schedule, because nothing says which of them should. */
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

class RunningApplication implements Runtime {
  readonly #config: Config
  #brokerHandle: BrokerHandle | undefined
  readonly #log: (line: LogLine) => void
  readonly #release: () => void
  readonly ended: Promise<number>
  #resolveEnded: (code: number) => void = () => undefined
  #host!: EngineHost
  #http: HttpHandle | undefined
  #diagnosis: Diagnosis | undefined
  #failures: KeptFailures | undefined
  #ha: HaLink | null = null
  #identity: Identity | null = null
  #schemas: SchemaService | undefined
  #topics: ApplicationTopics | undefined
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

  get produce(): Runtime['produce'] {
    const topics = this.#topics as ApplicationTopics
    return (topic, records, serdes) => topics.produce(topic, records, serdes)
  }

  get read(): Runtime['read'] {
    const topics = this.#topics as ApplicationTopics
    return (topic, options) => topics.read(topic, options)
  }

  get url(): string | undefined {
    return this.#http?.url
  }

  why(): ReturnType<Runtime['why']> {
    return answerOf((this.#diagnosis as Diagnosis).verdict())
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
    shared: Pick<RuntimeOptions, 'broker' | 'registry'>,
  ): Promise<void> {
    const config = this.#config
    const log = this.#log
    const schemas = new SchemaService({
      config,
      topology,
      folder: stateDir && stateFolder(stateDir, applicationId),
      shared: shared.registry,
      log,
    })
    this.#schemas = schemas
    this.#ha = isHotStandby(config)
      ? new HaLink({ config, applicationId, topology, build: packageVersion(), log })
      : null
    const settings = engineSettings(config, applicationId, topology)
    // Pods of a hot standby take turns in one identity on purpose: their coordinator tells who has it.
    const name = this.#ha === null ? settings.groupInstanceId : null
    this.#identity = name === null ? null : new Identity(applicationId, name, systemClock)
    this.#host = new EngineHost({
      applicationId,
      application,
      compiling: compilingOf(config),
      topology,
      settings,
      policies: policiesOf(config, applicationId),
      logLevel: levelOf('app', config),
      traceRoots: config.get('telemetry.opentelemetry') ? config.get('telemetry.roots') : null,
      layout: counterLayout(topology),
      stateDir,
      writeBehind: writeBehindOf(config),
      maxInFlight: config.get('lane.max-in-flight'),
      schemaPort: () => schemas.port(),
      historySize: config.get('engine.processing.state-transition-history-size'),
      failureExitCode: config.get('runtime.failure-exit-code'),
      bootstrapServers: config.maskText(serversOf(config, shared.broker)),
      brokerTrouble: () => this.#brokerHandle?.trouble() ?? null,
      clock: systemClock,
      log: this.#log,
      ended: (code, error) => this.#engineEnded(code, error !== undefined),
      ...(this.#ha && { ha: this.#ha }),
    })
    // The HTTP interface starts before broker and engine, so that probes are true from the first moment.
    const { host, license, ha } = { host: this.#host, license: this.#license, ha: this.#ha }
    const identity = this.#identity
    this.#failures = new KeptFailures(stateDir === null ? null : stateFolder(stateDir, applicationId))
    const earlier = (): KeptFailures['list'] => this.#failures?.list ?? []
    const transactionalId = transactionalIdOf(settings)
    this.#diagnosis = startDiagnosis({ config, host, license, ha, schemas, earlier, identity, transactionalId, log })
    const data = this.#data(applicationId, topology)
    const diagnosis = this.#diagnosis
    await this.#ha?.load()
    this.#http = await startHttp({ config, host, license, ha, schemas: schemas.check, diagnosis, data, log })
    this.#license.start()
    schemas.start()
    this.#brokerHandle = await openBroker(config, applicationId, shared.broker)
    this.#topics = new ApplicationTopics({ broker: this.broker, topology, ready: schemas.ready })
    await this.#ha?.start(this.#brokerHandle, this.#host)
    this.#host.start(this.#brokerHandle.address())
    identity?.begin(host.askedBroker, () => host.consumer()?.memberId)
  }

  #data(applicationId: string, topology: CompiledTopology): DataAccess {
    const config = this.#config
    const shares = config.get('topology.sub-topology-split') === 'repartition-topics' && config.get('ha.mode') === 'off'
    return dataAccess({
      deadLetterTopic: policiesOf(config, applicationId).deadLetterTopic,
      topology: () => topology,
      broker: () => this.#brokerHandle?.client,
      patienceMs: config.get('broker.request-timeout'),
      store: (name) => this.#queries(name),
      places: shares ? () => this.#host.places : undefined,
      mask: (text) => config.maskText(text),
    })
  }

  get serdesReady(): Promise<void> {
    return this.#schemas?.ready ?? Promise.resolve()
  }

  store<K, V>(name: string): StoreReader<K, V> {
    return this.#queries(name)
  }

  #queries<K, V>(name: string): StoreQueries<K, V> {
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

  drain(withinMs: number): Promise<void> {
    return this.#host.drain(withinMs)
  }

  async stop(): Promise<number> {
    const code = await this.#host.stop(await this.#handOver(this.#config.get('runtime.shutdown.timeout')))
    await this.#close()
    this.#resolveEnded(code)
    return code
  }

  /** An active pod gives its role away before it stops. Returns the time that is left. */
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
    const { failure } = this.#host.state()
    if (failed && failure !== null) this.#failures?.add(failure, systemClock.now())
    if (failed && failure?.code === 'FENCED') {
      this.#fenced(code)
      return
    }
    // A failed engine keeps its HTTP interface, so that people can see why. The process ends only where that is
    // configured.
    if (failed && !this.#config.get('runtime.exit-on-failure')) return
    this.#resolveEnded(code)
  }

  /** Nothing can be done in this process any more. It ends by itself once people had time to ask it why. */
  #fenced(code: number): void {
    const lingerMs = this.#http?.url === undefined ? 0 : this.#config.get('runtime.fenced-linger')
    this.#identity?.fenced(systemClock.now() + lingerMs, this.#host.consumer()?.memberId)
    setTimeout(() => this.#resolveEnded(code), Math.min(lingerMs, longestDelayMs)).unref()
  }

  /** The start has failed: closes everything that was opened. */
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
    this.#diagnosis?.close()
    this.#topics?.close()
    await this.#ha?.close()
    await this.#brokerHandle?.close()
    this.#schemas?.close()
    this.#release()
  }
}
