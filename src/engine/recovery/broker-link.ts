/**
 * Whether the broker answers, and since when it does not. Several parts of the engine talk to it, and each hears of an
 * outage at a moment of its own; a single answer in between, or one part that knows nothing yet, is not its end.
 */
import type { Clock } from '../../base/clock.ts'
import { WallClockOffset } from '../../time/watermark-report.ts'

/** Who tells: each takes back what it has told itself. */
export type LinkSource = 'input' | 'group'

export interface BrokerLinkOptions {
  readonly clock: Clock
  readonly log: (level: 'info' | 'warn', message: string) => void
}

export interface LinkState {
  readonly connected: boolean
  /** Epoch milliseconds, by the wall clock as it is set now. */
  readonly sinceMs: number
  /** Why it is not connected, with the broker's address. */
  readonly fault: string | null
}

/** So long without a fault, and an outage is over. */
const settledMs = 1000
/** An outage that lasts is worth a line, a hiccup is not. */
const toldAfterMs = 2000

export class BrokerLink {
  readonly #o: BrokerLinkOptions
  readonly #cut = new Map<LinkSource, string | undefined>()
  readonly #wall = new WallClockOffset()
  #state: Omit<LinkState, 'sinceMs'> = { connected: true, fault: null }
  #since: number
  #lastBadAt = Number.NEGATIVE_INFINITY
  #hiccup = false
  #told = false

  constructor(options: BrokerLinkOptions) {
    this.#o = options
    this.#since = options.clock.monotonic()
    this.#wall.observe(this.#since, options.clock.now())
  }

  get state(): LinkState {
    return { ...this.#state, sinceMs: this.#wall.epochMs(this.#since) }
  }

  told(source: LinkSource, connected: boolean, why?: string): void {
    if (connected) this.#cut.delete(source)
    else this.#cut.set(source, why)
  }

  /** A call failed for want of an answer; whoever made it does not tell when the next one succeeds. */
  failed(): void {
    this.#hiccup = true
  }

  /** A run is over: what its input knew of the broker is void. */
  forget(source: LinkSource): void {
    this.#cut.delete(source)
  }

  /** To be called a few times a second. `fault`: what the client says of its last exchange. */
  look(connected: boolean, fault: string | undefined): void {
    const { clock } = this.#o
    const now = clock.monotonic()
    this.#wall.observe(now, clock.now())
    const isBad = !connected || this.#cut.size > 0 || this.#hiccup
    this.#hiccup = false
    if (isBad) {
      this.#lastBadAt = now
      if (this.#state.connected) this.#turn(now, false)
      const why = fault ?? [...this.#cut.values()].find((each) => each !== undefined) ?? this.#state.fault
      if (why !== this.#state.fault) this.#state = { ...this.#state, fault: why }
      this.#tell(now)
    } else if (!this.#state.connected && now - this.#lastBadAt >= settledMs) {
      this.#tellEnd(now)
      this.#turn(now, true)
    }
  }

  #turn(now: number, connected: boolean): void {
    this.#told = false
    this.#since = now
    this.#state = { connected, fault: null }
  }

  #tell(now: number): void {
    const downMs = now - this.#since
    if (this.#told || downMs < toldAfterMs) return
    this.#told = true
    const why = this.#state.fault === null ? '' : `: ${this.#state.fault}`
    this.#o.log('warn', `the broker has not answered for ${seconds(downMs)} s${why}`)
  }

  #tellEnd(now: number): void {
    if (this.#told) this.#o.log('info', `the broker answers again, after ${seconds(now - this.#since)} s`)
  }
}

const seconds = (ms: number): number => Math.round(ms / 1000)
