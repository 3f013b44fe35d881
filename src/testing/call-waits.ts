/**
 * Waiting for functions of the application, whose promises nobody can move: they take the real time that they take. Two kinds of
 * waiting are the engine's own, and are cut short here. The pause before a call is made again passes at once where nobody
 * else is called, and otherwise as soon as nothing comes for a moment. A call has its timeout, in real time, and never more
 * than `patienceMs`; what really answers within that is never cut off, whatever the clocks of the test say.
 *
 * Real time is counted in turns of the event loop: who stops the process for a while, as a debugger does, cuts off nobody.
 */
import { EngineError, messageOf } from '../base/errors.ts'
import type { CallTimers } from '../lanes/tasks/call-gate.ts'
import type { OpenCall, Origin } from '../operators/contract.ts'

/** What an application waits for, as far as its own functions are concerned. */
export interface Caller {
  /** Some function has been called, and has not come back. */
  readonly isCalling: boolean
  /** Records that came to their end. */
  readonly finished: number
  /** The call that has not answered for longest, and the one that has failed for longest; undefined: none. */
  readonly oldestCall: { readonly name: string; readonly call: OpenCall } | undefined
  readonly oldestFailing: { readonly name: string; readonly origin: Origin; readonly error: unknown } | undefined
}

interface Pause {
  readonly at: number
  readonly alive: () => boolean
  readonly end: () => void
}

/** Kept from before a test runner may put a clock of its own in their place. */
const { clearTimeout: cancel, setImmediate: immediately, setTimeout: later } = globalThis

/** So long nothing has to come before a pause passes beside a call that is out. */
const sliceMs = 50
/** In so many turns of the event loop the time of a call is counted. */
const turnsPerTimeout = 10
/** A call without a timeout may take so many times as long as one that has one. */
const withoutTimeout = 10
/** Pauses of so long, all in all, that brought no record to its end: nobody would wait for the next one. */
const longestPausesMs = 600_000

export class CallWaits {
  readonly #patienceMs: number
  /** In the order of their times, on a clock of their own. */
  readonly #pauses: Pause[] = []
  #time = 0
  /** When a record last came to its end, on that clock, and how many had by then. */
  #since = 0
  #finished = 0
  /** Real time in which nothing came. */
  #quietMs = 0
  /** A call is made again: what comes next is no sign that anything has changed. */
  #isAgain = false

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  /** For a process that may be dead by the time they are due. */
  timers(alive: () => boolean): CallTimers {
    return {
      pauses: { after: (delayMs, end) => this.#pause(delayMs, { alive, end }) },
      timeouts: { after: (delayMs, call) => this.#timeout(delayMs, () => (alive() ? call() : undefined)) },
    }
  }

  /**
   * Resolves when something may have come, or when a pause has passed.
   *
   * @throws EngineError `USAGE` when nothing comes: a promise never settles, or a call never comes through.
   */
  async wait(woken: Promise<void>, callers: readonly Caller[]): Promise<void> {
    const finished = callers.reduce((sum, caller) => sum + caller.finished, 0)
    if (finished !== this.#finished) this.#begin()
    this.#finished = finished
    if (!callers.some(({ isCalling }) => isCalling) && this.#passOne(callers)) return
    const ms = Math.min(sliceMs, this.#patienceMs)
    if (!(await isQuiet(woken, ms))) {
      if (!this.#isAgain) this.#quietMs = 0
      this.#isAgain = false
      return
    }
    this.#quietMs += ms
    if (this.#quietMs >= withoutTimeout * this.#patienceMs) this.#giveUp(callers)
    this.#passOne(callers)
  }

  #begin(): void {
    this.#quietMs = 0
    this.#since = this.#time
  }

  #passOne(callers: readonly Caller[]): boolean {
    let pause = this.#pauses.shift()
    while (pause?.alive() === false) pause = this.#pauses.shift()
    if (pause === undefined) return false
    this.#time = Math.max(this.#time, pause.at)
    this.#isAgain = true
    pause.end()
    if (this.#time - this.#since > longestPausesMs) this.#giveUp(callers)
    return true
  }

  /** Whoever asks next is waited for anew: the test may have put it right. */
  #giveUp(callers: readonly Caller[]): never {
    this.#begin()
    for (const { oldestFailing } of callers) if (oldestFailing !== undefined) throw failsForever(oldestFailing)
    const calls = callers.flatMap(({ oldestCall }) => oldestCall ?? [])
    throw silent(calls[0], withoutTimeout * this.#patienceMs)
  }

  #pause(delayMs: number, of: Omit<Pause, 'at'>): () => void {
    const pause = { ...of, at: this.#time + delayMs }
    const behind = this.#pauses.findIndex(({ at }) => at > pause.at)
    this.#pauses.splice(behind < 0 ? this.#pauses.length : behind, 0, pause)
    return () => {
      const found = this.#pauses.indexOf(pause)
      if (found >= 0) this.#pauses.splice(found, 1)
    }
  }

  #timeout(delayMs: number, call: () => void): () => void {
    const turnMs = Math.min(delayMs, this.#patienceMs) / turnsPerTimeout
    let left = turnsPerTimeout
    let timer: NodeJS.Timeout
    let isOver = false
    const turn = (): void => {
      if (left-- > 0) timer = later(turn, turnMs).unref()
      // An answer that is there by now counts.
      else immediately(() => (isOver ? undefined : call()))
    }
    turn()
    return () => {
      isOver = true
      cancel(timer)
    }
  }
}

/** Whether nothing came for so long. */
async function isQuiet(woken: Promise<void>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = later(() => resolve(true), ms)
  const came = woken.then(() => false)
  return Promise.race([promise, came]).finally(() => cancel(timer))
}

function recordOf(origin: Origin | undefined): string {
  if (origin === undefined) return 'a timer'
  return `the record ${origin.topic}/${origin.partition} at offset ${origin.offset}`
}

function silent(oldest: Caller['oldestCall'], ms: number): EngineError {
  const who = oldest ? `${oldest.name} for ${recordOf(oldest.call.origin)}` : 'a function'
  return new EngineError(
    'USAGE',
    `A call of ${who} has not answered within ${ms / 1000} s, and nothing else is left to do: ` +
      'settle its promise, give its operator a `timeout` where it takes one, or the driver more `patience`.',
  )
}

function failsForever({ name, origin, error }: NonNullable<Caller['oldestFailing']>): EngineError {
  return new EngineError(
    'USAGE',
    `A call of ${name} fails for ${recordOf(origin)} each time that it is made again, and no other call comes through: with ` +
      '`breaker` the engine waits until the service answers. Let the function succeed after some failures, or feed records whose ' +
      `calls come through along with it (\`pipeAll\`), and \`errors.processing\` decides about it. The last error: ${messageOf(error)}`,
  )
}
