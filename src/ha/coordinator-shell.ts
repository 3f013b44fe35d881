/**
 * The coordinator of high availability on the control thread: a thin shell that reads and writes the coordinator topic,
 * keeps the time, and carries the effects of the state machine out.
 */
import { sleep } from '../base/timers.ts'
import { BrokerError } from '../broker/port.ts'
import { EngineError, messageOf } from '../errors.ts'
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
import { LogReader } from './log-reader.ts'
import { LogWriter } from './log-writer.ts'
import type { Pod } from './pod.ts'
import { type CommandRecord, encode } from './records.ts'
import { signatureOf } from './signature.ts'
import { statusOf } from './status.ts'
import { committedTokenEpoch, dangersOf, ensureTopic } from './topic.ts'
import type { HaCommand, HaStatus } from './view.ts'

/** The state machine, as the shell sees it: the simulator may put another one in its place. */
export interface Machine {
  readonly pod: Pod
  step(event: HaEvent, now: number): HaEffect[]
}

export function createHa(options: HaOptions): HaCoordinator {
  return new CoordinatorShell(options, new Coordinator(options.settings, options.random))
}

const longestWaitMs = 500
const longestPauseMs = 1000
/** Longest time a caller waits to hear that its command was written. */
const publishTimeoutMs = 5000
/** How often the topic is asked whether it is still the same. */
const identityCheckMs = 5000

export class CoordinatorShell implements HaCoordinator {
  readonly #o: HaOptions
  readonly #machine: Machine
  readonly #topic: string
  readonly #reader: LogReader
  readonly #writer: LogWriter
  readonly #abort = new AbortController()
  readonly #events: HaEvent[] = []
  #stepping = false
  #topicId = ''
  #checkedAt = 0
  #closed = false
  #cancelTick: (() => void) | undefined
  #started: Promise<void> | undefined
  #ended: (() => void) | undefined
  #failed = false
  #troubled = false

  constructor(options: HaOptions, machine: Machine) {
    this.#o = options
    this.#machine = machine
    this.#topic = coordinatorTopic(options.settings.applicationId)
    this.#reader = new LogReader(options.broker, this.#topic)
    this.#writer = new LogWriter(options.broker, this.#topic, options.clock, (error) => {
      options.log('debug', `a record of the coordinator topic may not have been written: ${messageOf(error)}`)
      // The topic may be gone: look at once.
      if (error instanceof BrokerError && error.errorClass === 'config') this.#checkedAt = Number.NEGATIVE_INFINITY
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

  pauseIntent(paused: boolean): void {
    this.#step({ type: 'pause-intent', paused })
  }

  status(): HaStatus | null {
    return this.#pod.joined ? statusOf(this.#pod, this.#o.clock.monotonic()) : null
  }

  async publish({ command, target, force }: HaCommand): Promise<number> {
    const { settings } = this.#o
    const pod = this.#pod
    const issuer = settings.podId
    const id = pod.nextName()
    const expectEpoch = pod.view.epoch
    const fields = { id, command, target, force, expectEpoch, issuer, signature: null }
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
    await this.#patiently(async () => {
      await this.#openTopic()
      await this.#readToEnd()
    })
    const tagEpoch = await this.#patiently(() => this.#tagEpoch())
    if (this.#closed) return
    this.#step({ type: 'joined', tagEpoch: tagEpoch ?? 0 })
    this.#checkedAt = this.#o.clock.monotonic()
    this.#tick()
    void this.#tail()
  }

  /** Until it succeeds, or this ends: a broker that does not answer is waited for; what it refuses is thrown. */
  async #patiently<T>(call: () => Promise<T>): Promise<T | undefined> {
    while (!this.#closed) {
      try {
        const result = await call()
        this.#troubled = false
        return result
      } catch (error) {
        if (!isPassing(error)) throw refusal(error)
        this.#trouble(error)
        await this.#pause()
      }
    }
    return undefined
  }

  async #openTopic(): Promise<void> {
    const { broker, settings, log } = this.#o
    const info = await ensureTopic(broker, settings.applicationId)
    const dangers = await dangersOf(broker, info)
    if (dangers.length > 0) {
      const message = `the coordinator topic ${this.#topic} is not safe: ${dangers.join('; ')}`
      if (settings.requireSafeTopic) throw new EngineError('CONFIG_INVALID', `${message} (ha.require-safe-topic is on)`)
      log('warn', message)
    }
    if (info.topicId === this.#topicId) return
    // Deleted while it was read for the first time: what was read is void.
    if (this.#topicId !== '') this.#step({ type: 'topic-recreated', tagEpoch: 0 })
    await this.#reader.rewind()
    this.#topicId = info.topicId
  }

  async #readToEnd(): Promise<void> {
    const end = await this.#reader.end()
    while (this.#reader.position < end && !this.#closed) {
      if (await this.#readOnce(0))
        throw new BrokerError('UNKNOWN_TOPIC_OR_PARTITION', 'the topic was deleted meanwhile')
    }
  }

  #tagEpoch(): Promise<number> {
    return committedTokenEpoch(this.#o.broker, this.#o.settings.groupId)
  }

  async #tail(): Promise<void> {
    const maxWaitMs = Math.min(longestWaitMs, this.#o.settings.heartbeatIntervalMs / 2)
    let readAt = this.#o.clock.monotonic()
    while (!this.#closed) {
      try {
        const now = this.#o.clock.monotonic()
        // After a gap, whatever made it, the topic may be another one, and reading on would miss its beginning.
        const gap = now - readAt > 3 * this.#o.settings.heartbeatIntervalMs
        const due = gap || now - this.#checkedAt > identityCheckMs
        const lost = due ? await this.#isAnother() : await this.#readOnce(maxWaitMs)
        readAt = this.#o.clock.monotonic()
        if (lost) await this.#beginAnew()
        this.#troubled = false
      } catch (error) {
        if (this.#closed) return
        this.#trouble(error)
        this.#checkedAt = Number.NEGATIVE_INFINITY
        // Refused, or out of reach: either way the pod isolates itself, and asks on.
        await this.#pause()
      }
    }
  }

  /** True where the topic has to be read anew. */
  async #readOnce(maxWaitMs: number): Promise<boolean> {
    const { records, reachedEnd, lost } = await this.#reader.read(maxWaitMs, this.#abort.signal)
    if (this.#closed) return false
    if (lost) return true
    if (records.length > 0) this.#step({ type: 'records', records })
    if (reachedEnd && !this.#closed) this.#step({ type: 'end-reached' })
    return false
  }

  async #isAnother(): Promise<boolean> {
    const [info] = await this.#o.broker.topics([this.#topic])
    this.#checkedAt = this.#o.clock.monotonic()
    return info?.topicId !== this.#topicId
  }

  async #beginAnew(): Promise<void> {
    const { broker, settings } = this.#o
    const info = await ensureTopic(broker, settings.applicationId)
    this.#checkedAt = this.#o.clock.monotonic()
    // The same topic, cut off at its end, has lost claims like one that was made anew.
    const tagEpoch = await this.#tagEpoch()
    await this.#reader.rewind()
    this.#topicId = info.topicId
    if (!this.#closed) this.#step({ type: 'topic-recreated', tagEpoch })
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

  #trouble(error: unknown): void {
    if (!this.#troubled) this.#o.log('warn', `the coordinator topic cannot be read: ${messageOf(error)}`)
    this.#troubled = true
  }

  #pause(): Promise<void> {
    return sleep(this.#o.timers, Math.min(longestPauseMs, this.#o.settings.heartbeatIntervalMs / 2))
  }

  #close(): void {
    this.#closed = true
    this.#cancelTick?.()
    this.#writer.close()
    this.#abort.abort()
  }
}

/** A topic that is missing is made; everything else that is refused is for people to settle. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof BrokerError)) return false
  return error.errorClass !== 'config' || error.code.startsWith('UNKNOWN_TOPIC')
}

function refusal(error: unknown): unknown {
  if (!(error instanceof BrokerError)) return error
  return new EngineError('BROKER_REFUSED', `the coordinator topic is refused: ${error.message}`, { cause: error })
}
