/** High availability of a running application: its coordinator on the control thread, linked to engine and HTTP. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import { systemTimers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import type { Config } from '../config/config.ts'
import type { EngineFact } from '../engine/protocol.ts'
import type { HaEngineSettings } from '../engine/settings.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import type { HaCoordinator, HaMetrics } from '../ha/contract.ts'
import { haSettings } from '../ha/settings.ts'
import { shortHash } from '../ha/topology-shape.ts'
import type { HaCommand, HaHistory, HaStatus, HaView } from '../ha/shown/view.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { topologyState } from '../topology/changes/diff.ts'
import { planOf } from '../topology/plan.ts'
import type { BrokerHandle } from './broker.ts'
import type { LogLine } from './contract.ts'
import type { EngineHost } from './engine/engine-host.ts'
import type { EngineHaLink } from './engine/engine-host-options.ts'

export interface HaLinkOptions {
  readonly config: Config
  readonly applicationId: string
  readonly topology: CompiledTopology
  readonly build: string
  readonly log: (line: LogLine) => void
}

export function isHotStandby(config: Config): boolean {
  return config.get('ha.mode') === 'hot-standby'
}

export function haEngineSettings(config: Config): HaEngineSettings | undefined {
  if (!isHotStandby(config)) return undefined
  return { podId: config.get('ha.pod-id') ?? hostname(), groupMode: config.get('ha.group-mode') }
}

/** Pods on one machine that have names of their own have stores of their own. */
export function stateFolderOf(config: Config): string {
  const dir = config.get('engine.state.dir')
  const pod = isHotStandby(config) ? config.get('ha.pod-id') : null
  return pod === null ? dir : join(dir, pod)
}

/** Refuses settings that a hot standby cannot work with. */
export function refuseWithHotStandby(config: Config): void {
  if (!isHotStandby(config) || config.get('engine.processing.guarantee') === 'exactly-once') return
  throw new EngineError(
    'CONFIG_INVALID',
    'ha.mode: hot-standby needs engine.processing.guarantee exactly-once: nothing else keeps two active pods apart; set it, or set ha.mode to off',
  )
}

/** The coordinator, once it exists. Before that nothing is known of any pod. */
export class HaLink implements HaView, EngineHaLink {
  readonly #o: HaLinkOptions
  #coordinator: HaCoordinator | undefined
  #client: BrokerPort | undefined
  readonly #early: EngineFact[] = []

  constructor(options: HaLinkOptions) {
    this.#o = options
  }

  status(): HaStatus | null {
    return this.#coordinator?.status() ?? null
  }

  history(): HaHistory | null {
    return this.#coordinator?.history() ?? null
  }

  async publish(command: HaCommand, from?: string): Promise<number> {
    if (!this.#coordinator) throw new EngineError('STORE_UNAVAILABLE', 'the coordinator is not there yet; ask again')
    return this.#coordinator.publish(command, from)
  }

  /** Undefined while there is nothing to count. */
  get metrics(): (() => HaMetrics) | undefined {
    const coordinator = this.#coordinator
    return coordinator && (() => coordinator.metrics())
  }

  fact(fact: EngineFact): void {
    if (this.#coordinator) this.#coordinator.engineFact(fact)
    else if (fact.type !== 'snapshot') this.#early.push(fact)
  }

  tooLateToPause(): string | null {
    return this.#coordinator?.tooLateToPause() ?? null
  }

  pauseIntent(paused: boolean): void {
    this.#coordinator?.pauseIntent(paused)
  }

  /** The coordinator's code is loaded only where it is used, and before anybody can ask: it would keep them waiting. */
  load(): Promise<typeof import('../ha/coordinator-shell.ts')> {
    return import('../ha/coordinator-shell.ts')
  }

  /** Returns once the coordinator runs. The coordinator waits for the broker by itself. */
  async start(broker: BrokerHandle, host: EngineHost): Promise<void> {
    const { config, applicationId, topology, build, log } = this.#o
    const fail = (error: unknown): void =>
      host.failWith(
        EngineError.is(error) ? error : new EngineError('BROKER_REFUSED', messageOf(error), { cause: error }),
      )
    const { createHa } = await this.load()
    this.#client = await broker.connect()
    const coordinator = createHa({
      broker: this.#client,
      settings: haSettings(config, {
        applicationId,
        groupId: applicationId,
        hostname: hostname(),
        topologyHash: shortHash(JSON.stringify(planOf(topology))),
        topologyState: topologyState(topology),
        build,
      }),
      engine: (command) => host.haCommand(command),
      clock: systemClock,
      timers: systemTimers,
      random: new Random(crypto.getRandomValues(new Uint32Array(1))[0] ?? 0),
      log: (level, message) => log({ level, component: 'ha', message }),
      fail,
    })
    this.#coordinator = coordinator
    for (const fact of this.#early.splice(0)) coordinator.engineFact(fact)
    coordinator.start().catch(fail)
  }

  /** Hands over, if there is a pod to hand over to. */
  async stop(deadlineMs: number): Promise<void> {
    await this.#coordinator?.stop(deadlineMs)
  }

  abandon(): void {
    this.#coordinator?.abandon()
  }

  async close(): Promise<void> {
    this.#coordinator?.abandon()
    await this.#client?.close()
  }
}
