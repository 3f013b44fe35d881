/** One of the applications that a driver runs, as tests look at it. */
import { EngineError } from '../base/errors.ts'
import { loadConfig } from '../config/load.ts'
import type { Application } from '../dsl/app.ts'
import { compilingOf } from '../lanes/application.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { AnyStore, WindowStore } from '../state/contract.ts'
import { changelogPartitions } from '../topology/affinity.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { describeText } from '../topology/describe.ts'
import { planOf } from '../topology/plan.ts'
import { splitTopology } from '../topology/split.ts'
import type { DriverOptions, DroppedRecord, TestedApplication } from './contract.ts'
import { connectEmbedded } from './embedded-schemas.ts'
import { explain } from './explain.ts'
import { storeHandle } from './store-handle.ts'
import { VirtualApplication } from './virtual-application.ts'

export type Tested = Pick<Application, 'applicationId' | 'compile' | 'config'>

export interface Hearing {
  readonly dropped: (record: DroppedRecord) => void
  readonly warned: (message: string) => void
  readonly restart: (app: VirtualApplication) => Promise<void>
}

export class ApplicationOfTest implements TestedApplication {
  readonly applicationId: string
  readonly topology: CompiledTopology
  readonly app: VirtualApplication
  readonly #drops: DroppedRecord[] = []
  readonly #warnings: string[] = []
  /** Tasks of every sub-topology, as far as they follow from the topics that are named. */
  readonly #tasks: readonly number[]
  readonly #restart: Hearing['restart']

  constructor(
    tested: Tested,
    options: DriverOptions,
    registry: EmbeddedRegistry,
    partitionsOf: (topic: string) => number,
    hearing: Hearing,
  ) {
    const { applicationId } = tested
    const own = options.applications?.[applicationId]
    const config = loadConfig({
      application: [tested.config, options.config, own?.config, { 'engine.state.store': 'memory' }],
    })
    const split = config.get('topology.sub-topology-split')
    const compile = (): CompiledTopology => {
      const topology = splitTopology(tested.compile(compilingOf(config)), split)
      connectEmbedded(topology, registry)
      return topology
    }
    this.applicationId = applicationId
    this.topology = compile()
    const { sources } = this.topology
    this.#tasks = changelogPartitions(planOf(this.topology), partitionsOf, (source) =>
      // What a pattern will find is not known yet: most likely a topic like any other.
      sources[source]?.pattern === undefined ? (sources[source]?.topics ?? []) : [''],
    )
    this.#restart = hearing.restart
    this.app = new VirtualApplication({
      applicationId,
      config,
      topology: this.topology,
      compile,
      lanes: own?.lanes ?? options.lanes ?? 1,
      log: own?.log ?? options.log,
      dropped: (record) => {
        this.#drops.push(record)
        hearing.dropped(record)
      },
      warned: (message) => {
        this.#warnings.push(message)
        hearing.warned(message)
      },
    })
  }

  store<S = AnyStore>(name: string, partition = 0): S {
    const spec = this.topology.stores.get(name)
    const isThere = this.topology.globalStores.has(name) || partition < this.#partitionsOfStore(name)
    if (spec && isThere) return storeHandle(spec, partition, () => this.app.store(name, partition)) as S
    const known = [...this.topology.stores.keys()].join(', ') || 'none'
    throw new EngineError('USAGE', `There is no store ${name} of partition ${partition} (stores: ${known}).`)
  }

  explain(): string {
    const windows = new Map<string, number>()
    for (const [name, { kind }] of this.topology.stores) {
      if (kind !== 'window' && kind !== 'session') continue
      let count = 0
      for (let partition = 0; partition < this.#partitionsOfStore(name); partition++) {
        const store = this.app.store(name, partition) as WindowStore<unknown, unknown> | undefined
        if (store) for (const _ of store.all()) count++
      }
      windows.set(name, count)
    }
    return explain({ topology: this.topology, watermarks: this.app.watermarks(), windows })
  }

  dropped(): DroppedRecord[] {
    return [...this.#drops]
  }

  warnings(): readonly string[] {
    return this.#warnings
  }

  describe(): string {
    return describeText(this.topology)
  }

  restart(): Promise<void> {
    return this.#restart(this.app)
  }

  #partitionsOfStore(name: string): number {
    if (this.topology.globalStores.has(name)) return 1
    const open = this.app.openPartitions(name)
    if (open > 0) return open
    const owner = this.topology.subtopologies.find((s) => s.stores.includes(name))
    return owner ? (this.#tasks[owner.id] ?? 1) : 1
  }
}
