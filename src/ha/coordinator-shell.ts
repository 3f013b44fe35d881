/**
 * The coordinator of high availability on the control thread: a thin shell that reads and writes the coordinator topic,
 * keeps the time, and carries the effects of the state machine out.
 */
import { BrokerError } from '../broker/port.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import type { HaCommandToEngine, HaFact } from '../engine/ha-contract.ts'
import type { EngineFact } from '../engine/protocol.ts'
import {
  coordinatorTopic,
  type HaCoordinator,
  type HaMetrics,
  type HaOptions,
  type HaRole,
  type HaState,
} from './contract.ts'
import { Coordinator } from './coordinator.ts'
import type { HaEffect, HaEvent } from './events.ts'
import { tooLateToPause } from './hand-over.ts'
import { LogTail } from './log/log-tail.ts'
import { LogWriter } from './log/log-writer.ts'
import type { Pod } from './pod.ts'
import { type CommandRecord, encode } from './log/records.ts'
import { signatureOf } from './log/signature.ts'
import { historyOf } from './shown/history.ts'
import { statusOf } from './shown/status.ts'
import type { HaCommand, HaHistory, HaStatus } from './shown/view.ts'

/** The state machine, as the shell sees it: the simulator may put another one in its place. */
export interface Machine {
  readonly pod: Pod
  step(event: HaEvent, now: number): HaEffect[]
}

export function createHa(options: HaOptions): HaCoordinator {
  return new CoordinatorShell(options, new Coordinator(options.settings, options.random))
}

/** Longest time a caller waits to hear that its command was written. */
const publishTimeoutMs = 5000

export class CoordinatorShell implements HaCoordinator {
  readonly #o: HaOptions
  readonly #machine: Machine
  readonly #topic: string
  readonly #tail: LogTail
  readonly #writer: LogWriter
  readonly #events: HaEvent[] = []
  #stepping = false
  #closed = false
  #cancelTick: (() => void) | undefined
  #started: Promise<void> | undefined
  #ended: (() => void) | undefined
  #failed = false

  constructor(options: HaOptions, machine: Machine) {
    this.#o = options
    this.#machine = machine
    this.#topic = coordinatorTopic(options.settings.applicationId)
    this.#tail = new LogTail(options, (event) => this.#step(event))
    this.#writer = new LogWriter(options.broker, this.#topic, options.clock, (error) => {
      options.log('debug', `a record of the coordinator topic may not have been written: ${messageOf(error)}`)
      if (!(error instanceof BrokerError)) return
      const { code, message, errorClass } = error
      const refused = ['config', 'record', 'abortable'].includes(errorClass) && !code.startsWith('UNKNOWN_TOPIC')
      this.#step({ type: 'write-failed', code, message, refused })
      // The topic may be gone: look at once.
      if (errorClass === 'config') this.#tail.suspect()
    })
  }

  get #pod(): Pod {
    return this.#machine.pod
  }

  get role(): HaRole {
    return this.#pod.role
  }

  get state(): HaState {
    return this.#pod.state
  }

  get tokenEpoch(): number {
    return this.#pod.run?.epoch ?? 0
  }

  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  engineFact(fact: EngineFact | HaFact): void {
    this.#step({ type: 'fact', fact })
  }

  tooLateToPause(): string | null {
    return tooLateToPause(this.#pod)
  }

  pauseIntent(paused: boolean): void {
    this.#step({ type: 'pause-intent', paused })
  }

  status(): HaStatus | null {
    return this.#pod.joined ? statusOf(this.#pod, this.#o.clock.monotonic()) : null
  }

  history(): HaHistory | null {
    return this.#pod.joined ? historyOf(this.#pod) : null
  }

  async publish({ command, target, force, value = null }: HaCommand, from?: string): Promise<number> {
    const { settings } = this.#o
    const pod = this.#pod
    const issuer = settings.podId
    const id = pod.nextName()
    const expectEpoch = pod.view.epoch
    const fields = { id, command, target, force, value, expectEpoch, issuer, from: from ?? null, signature: null }
    const unsigned: CommandRecord = { kind: 'command', ...fields }
    const secret = settings.commandSecret
    const signature = secret === null ? null : signatureOf(secret, settings.applicationId, unsigned)
    if (this.#closed) throw new EngineError('BROKER_UNREACHABLE', 'this pod is stopping; ask another one')
    let cancel: (() => void) | undefined
    const late = new Promise<never>((_, reject) => {
      const error = new BrokerError('UNREACHABLE', `the broker did not answer within ${publishTimeoutMs} ms`)
      cancel = this.#o.timers.after(publishTimeoutMs, () => reject(error))
    })
    try {
      return await Promise.race([this.#writer.appendOne(encode({ ...unsigned, signature })), late])
    } catch (error) {
      const message = `the command may not have reached the coordinator topic: ${messageOf(error)}`
      throw new EngineError('BROKER_UNREACHABLE', message, { cause: error })
    } finally {
      cancel?.()
    }
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.#closed) return
    const { timers } = this.#o
    let cancel: (() => void) | undefined
    const over = new Promise<void>((resolve) => {
      this.#ended = resolve
      cancel = timers.after(deadlineMs, resolve)
    })
    this.#step({ type: 'stop' })
    // A pod that never joined has nobody to say goodbye to.
    if (this.#pod.joined && !this.#closed) await over
    cancel?.()
    this.#close()
  }

  abandon(): void {
    this.#close()
  }

  metrics(): HaMetrics {
    const pod = this.#pod
    const { promotions, commandResults, lastPromotionMs, handOvers, stepDowns, rollbacks, isolations } = pod
    return {
      promotions,
      commandResults,
      lastPromotionMs,
      handOvers,
      stepDowns,
      rollbacks,
      isolations,
      badRecords: pod.badRecords,
      heartbeatsSent: pod.heartbeat,
      heartbeatAckAgeMs: Math.round(Math.min(pod.fresh.ackAge(this.#o.clock.monotonic()), Number.MAX_SAFE_INTEGER)),
    }
  }

  async #start(): Promise<void> {
    const tagEpoch = await this.#tail.open()
    if (this.#closed) return
    this.#step({ type: 'joined', tagEpoch })
    this.#tick()
    void this.#tail.follow()
  }

  #tick(): void {
    if (this.#closed) return
    this.#step({ type: 'tick' })
    if (this.#closed) return
    const everyMs = Math.max(10, this.#o.settings.heartbeatIntervalMs / 4)
    this.#cancelTick = this.#o.timers.after(everyMs, () => this.#tick())
  }

  /** An effect may bring the next event at once; it waits until the effects of this one are carried out. */
  #step(event: HaEvent): void {
    this.#events.push(event)
    if (this.#stepping) return
    this.#stepping = true
    try {
      for (let next = this.#events.shift(); next !== undefined && !this.#closed; next = this.#events.shift()) {
        for (const effect of this.#machine.step(next, this.#o.clock.monotonic())) this.#carryOut(effect)
      }
    } finally {
      this.#stepping = false
    }
  }

  #carryOut(effect: HaEffect): void {
    switch (effect.type) {
      case 'append':
        this.#writer.append(effect.records)
        break
      case 'engine':
        this.#tellEngine(effect.command)
        break
      case 'log':
        this.#o.log(effect.level, effect.message)
        break
      case 'fail':
        this.#fail(effect.error)
        break
      case 'changed':
        this.#o.changed?.()
        break
      default:
        this.#ended?.()
    }
  }

  #tellEngine(command: HaCommandToEngine): void {
    this.#o.engine(command)
  }

  #fail(error: EngineError): void {
    this.#close()
    this.#ended?.()
    if (this.#failed) return
    this.#failed = true
    this.#o.fail(error)
  }

  #close(): void {
    this.#closed = true
    this.#cancelTick?.()
    this.#writer.close()
    this.#tail.close()
  }
}
