/** The schema registry of a running application: one client for all threads, its health, and what is kept of it. */
import { join } from 'node:path'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { systemClock } from '../../base/clock.ts'
import { EngineError, fromWireError, messageOf, toWireError } from '../../base/errors.ts'
import { systemTimers } from '../../base/timers.ts'
import type { Config } from '../../config/config.ts'
import type { IndicatorResult } from '../../http/index.ts'
import type { SchemaQuestion, ToSchemaPort } from '../../lanes/schema-port.ts'
import { RegistryClient } from '../../serde/registry/client.ts'
import { EmbeddedRegistry } from '../../serde/registry/embedded-registry.ts'
import { SchemaHub, type SchemaMemory } from '../../serde/registry/hub.ts'
import { SchemaStore } from '../../serde/registry/schema-store.ts'
import type { SchemaNeed } from '../../serde/schemas.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { connectSerdes, schemaNeeds } from '../../operators/schema-needs.ts'
import type { SchemaFacts } from '../../view/diagnosis/facts.ts'
import type { LogLine } from '../contract.ts'
import { KeptJsonFile } from '../kept-json.ts'
import { isEmbedded, keptSchemas, schemasFile } from './embedded-folder.ts'
import { registryCallOf } from './registry-call.ts'

export interface SchemaServiceOptions {
  readonly config: Config
  readonly topology: CompiledTopology
  /** Folder of the application's state; null where nothing outlives the process. */
  readonly folder: string | null
  readonly shared: EmbeddedRegistry | undefined
  readonly log: (line: LogLine) => void
}

type Prepared = Extract<ToSchemaPort, { type: 'prepared' | 'refused' }>

export class SchemaService {
  readonly #o: SchemaServiceOptions
  readonly #needs: readonly SchemaNeed[]
  readonly #client: RegistryClient | undefined
  readonly #hub: SchemaHub | undefined
  readonly #ports: MessagePort[] = []
  #prepared: Promise<Prepared> | undefined
  /** Settles when the serdes of this thread's topology may be used, or it is clear that they never may. */
  readonly ready: Promise<void>
  readonly #resolveReady: () => void
  readonly #rejectReady: (error: EngineError) => void

  /** @throws EngineError `CONFIG_INVALID` where serdes need a registry and none is configured. */
  constructor(options: SchemaServiceOptions) {
    this.#o = options
    this.#needs = schemaNeeds(options.topology)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.ready = promise
    this.#resolveReady = resolve
    this.#rejectReady = reject
    // The engine says it too: whoever does not ask need not hear of it.
    promise.catch(() => undefined)
    const url = options.config.get('schema-registry.url')
    if (url === null) {
      const [first] = this.#needs
      if (first !== undefined) throw unset(first)
      this.#resolveReady()
      return
    }
    const isOwn = isEmbedded(url)
    const call = isOwn ? this.#embedded(url).call : registryCallOf(options.config)
    this.#client = new RegistryClient(call)
    if (this.#needs.length === 0) this.#resolveReady()
    else this.#hub = this.#makeHub(this.#client, url, isOwn)
  }

  #embedded(url: string): EmbeddedRegistry {
    if (this.#o.shared !== undefined) return this.#o.shared
    const kept = keptSchemas(url)
    if (kept === undefined) return new EmbeddedRegistry()
    const { file, contents } = kept
    return new EmbeddedRegistry(contents, (now) => file.write(now))
  }

  #makeHub(client: RegistryClient, url: string, isOwn: boolean): SchemaHub {
    const { config, folder, log } = this.#o
    const file = folder === null || isOwn ? undefined : new KeptJsonFile(join(folder, schemasFile))
    const read = file?.read()
    // What is damaged can be had from the registry again.
    const kept = read?.kind === 'whole' ? (read.value as SchemaMemory & { url?: string }) : undefined
    const shownUrl = config.maskText(url)
    return new SchemaHub({
      client,
      shownUrl,
      registersAll: isOwn,
      // Ids are one registry's: those of another mean something else.
      memory: kept?.url === shownUrl ? kept : undefined,
      remember: (memory) => {
        if (file !== undefined) this.#keep(file, { url: shownUrl, ...memory })
      },
      giveUpAfterMs: config.get('schema-registry.give-up-after'),
      againAfterMs: config.get('schema-registry.retry-after'),
      clock: systemClock,
      timers: systemTimers,
      log: (level, message) => log({ level, component: 'schema-registry', message }),
    })
  }

  /** It saves a question at the next start, and is no reason to do without a schema now. */
  #keep(file: KeptJsonFile, memory: object): void {
    try {
      file.write(memory)
    } catch (error) {
      const message = `the schemas could not be kept in ${file.path}, so that a start without the registry will lack some: ${messageOf(error)}`
      this.#o.log({ level: 'warn', component: 'schema-registry', message })
    }
  }

  /** Begins to find out what the serdes need. Threads that ask are told when it is known. */
  start(): void {
    const hub = this.#hub
    if (hub === undefined) return
    this.#prepared = hub
      .prepare(this.#needs)
      .catch((error): Prepared => ({ type: 'refused', error: toWireError(error) }))
    void this.#prepared.then((answer) => {
      if (answer.type === 'prepared') this.#connectHere(hub, answer)
      else this.#rejectReady(fromWireError(answer.error))
    })
  }

  /** The control thread itself reads rows of stores, and records that are fed and printed. */
  #connectHere(hub: SchemaHub, prepared: Extract<Prepared, { type: 'prepared' }>): void {
    const store = new SchemaStore(
      (id) => void hub.schema(id).then((answer) => store.take(answer)),
      () => systemClock.monotonic(),
    )
    store.take(prepared)
    connectSerdes(this.#o.topology, store)
    this.#resolveReady()
  }

  /** A thread's way to ask; null where it has nothing to ask. */
  port(): MessagePort | null {
    const hub = this.#hub
    if (hub === undefined) return null
    const { port1, port2 } = new MessageChannel()
    this.#ports.push(port1)
    void this.#prepared?.then((answer) => port1.postMessage(answer))
    port1.on('message', ({ id, bell }: SchemaQuestion) => {
      void hub.schema(id).then((answer) => {
        port1.postMessage(answer satisfies ToSchemaPort)
        if (bell === undefined) return
        Atomics.store(bell, 0, 1)
        Atomics.notify(bell, 0)
      })
    })
    port1.unref()
    return port2
  }

  /** What the `schema-registry` indicator shows; undefined where no registry is configured. */
  get check(): (() => Promise<IndicatorResult>) | undefined {
    const client = this.#client
    if (client === undefined) return undefined
    return async () => {
      const status = await this.#pinged(client)
      const waiting = this.#hub?.fetching ?? []
      const trouble = this.#hub?.trouble
      const details = {
        ...(status !== undefined && { status }),
        // What comes behind the colon may name hosts, and probes may face the internet.
        ...(trouble !== undefined && { trouble: trouble.split(':', 1)[0] }),
        ...(waiting.length > 0 && { waitingFor: waiting.join(', ') }),
      }
      return { up: trouble === undefined && status !== undefined && status < 500, details }
    }
  }

  /** What records wait for; null: for no schema. */
  get waits(): SchemaFacts | null {
    const fetching = this.#hub?.fetching ?? []
    if (fetching.length === 0) return null
    const trouble = this.#hub?.trouble ?? null
    const { config } = this.#o
    const registry = config.maskText(config.get('schema-registry.url') ?? '')
    const reason = trouble === null ? null : config.maskText(trouble)
    return { registry, ids: fetching, trouble: reason, giveUpAfterMs: config.get('schema-registry.give-up-after') }
  }

  /**
   * One that does not do what is being asked of it need not be asked again: that would take as long as its timeout. What it
   * did not do earlier says nothing of today, and nobody else may ask it for days.
   */
  async #pinged(client: RegistryClient): Promise<number | undefined> {
    const hub = this.#hub
    if (hub?.trouble === undefined) return client.ping()
    if (hub.isAsking) return undefined
    const status = await client.ping()
    if (status < 400) hub.answered()
    return status
  }

  close(): void {
    this.#hub?.close()
    for (const port of this.#ports) port.close()
  }
}

function unset({ where }: SchemaNeed): EngineError {
  return new EngineError(
    'CONFIG_INVALID',
    `schema-registry.url is not set, and ${where} has a serde over a schema registry; set it to the registry's address, or to embedded for one in this process`,
  )
}
