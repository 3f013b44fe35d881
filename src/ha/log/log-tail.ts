/**
 * Follows the coordinator topic: makes or checks it, reads it to its end, reads on for ever, and notices when it is another
 * one. What it finds becomes events of the coordinator.
 */
import { sleep } from '../../base/timers.ts'
import { BrokerError } from '../../broker/port.ts'
import { EngineError, messageOf } from '../../base/errors.ts'
import { coordinatorTopic, type HaOptions } from '../contract.ts'
import type { HaEvent } from '../events.ts'
import { LogReader } from './log-reader.ts'
import { committedTokenEpoch, dangersOf, ensureTopic } from './topic.ts'

const longestWaitMs = 500
const longestPauseMs = 1000
/** How often the topic is asked whether it is still the same. */
const identityCheckMs = 5000

export class LogTail {
  readonly #o: HaOptions
  readonly #step: (event: HaEvent) => void
  readonly #topic: string
  readonly #reader: LogReader
  readonly #abort = new AbortController()
  #topicId = ''
  #checkedAt = 0
  #closed = false
  #troubled = false
  #warned = false

  constructor(options: HaOptions, step: (event: HaEvent) => void) {
    this.#o = options
    this.#step = step
    this.#topic = coordinatorTopic(options.settings.applicationId)
    this.#reader = new LogReader(options.broker, this.#topic)
  }

  /** The topic may be gone: it is looked at before it is read again. */
  suspect(): void {
    this.#checkedAt = Number.NEGATIVE_INFINITY
  }

  /** Reads to the end; answers with the highest token epoch in the commit tags. */
  async open(): Promise<number> {
    await this.#patiently(async () => {
      await this.#openTopic()
      await this.#readToEnd()
    })
    const tagEpoch = await this.#patiently(() => this.#tagEpoch())
    this.#checkedAt = this.#o.clock.monotonic()
    return tagEpoch ?? 0
  }

  async follow(): Promise<void> {
    const maxWaitMs = Math.min(longestWaitMs, this.#o.settings.heartbeatIntervalMs / 2)
    let readAt = this.#o.clock.monotonic()
    while (!this.#closed) {
      try {
        const now = this.#o.clock.monotonic()
        // After a gap, whatever made it, the topic may be another one, and reading on would miss its beginning.
        const gap = now - readAt > 3 * this.#o.settings.heartbeatIntervalMs
        const due = gap || now - this.#checkedAt > identityCheckMs
        const lost = due ? await this.#isAnother() : await this.#readOnce(maxWaitMs)
        // Counted from its beginning: the process may have been stopped in the middle of it.
        readAt = now
        if (lost) await this.#beginAnew()
        this.#troubled = false
      } catch (error) {
        if (this.#closed) return
        this.#trouble(error)
        this.suspect()
        // Refused, or out of reach: either way the pod isolates itself, and asks on.
        await this.#pause()
      }
    }
  }

  close(): void {
    this.#closed = true
    this.#abort.abort()
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
      if (!this.#warned) log('warn', message)
      this.#warned = true
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

  #trouble(error: unknown): void {
    // Whoever ends has closed what it read with.
    if (!this.#troubled && !this.#closed)
      this.#o.log('warn', `the coordinator topic cannot be read: ${messageOf(error)}`)
    this.#troubled = true
  }

  #pause(): Promise<void> {
    return sleep(this.#o.timers, Math.min(longestPauseMs, this.#o.settings.heartbeatIntervalMs / 2))
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
