/**
 * Calls for which the disk has no room wait here, with whatever is written behind them, until there is some: the engine
 * sees a broker that takes its time, and loses nothing. A feed is told instead, for it may be given up.
 */
import type { BrokerError } from '../port.ts'
import type { Answer, Arguments, Cancel, OperationName, Performer, Reply } from '../calls/protocol.ts'
import { NoRoomError } from './core/storage.ts'

/** Writes, in whose order their callers trust. */
const waiting: ReadonlySet<OperationName> = new Set([
  'createTopics',
  'initProducer',
  'produce',
  'commitOffsetsInTransaction',
  'endTransaction',
  'commitOffsets',
])
/** Writes that are refused while others wait: they would take the room that those wait for. */
const refused: ReadonlySet<OperationName> = new Set(['produceFed', 'deleteTopics'])

const againMs = 500
/** A feed comes again within this time. */
const settledMs = 3000

export interface HeldWritesOptions {
  /** Performs a call; each attempt is given what the ones before it have left, in `done`. */
  readonly perform: <K extends OperationName>(
    name: K,
    args: Arguments<K>,
    reply: Reply<Answer<K>>,
    done: unknown[],
  ) => Cancel
  /** Called behind an attempt that nobody's call brought about. */
  readonly tried: () => void
  /** Told why nothing is written; null: it is again. */
  readonly told: (error: BrokerError | null) => void
}

export class HeldWrites {
  readonly #options: HeldWritesOptions
  /** In the order in which they came. Each says whether it is done. */
  #held: Array<() => boolean> = []
  #error: NoRoomError | undefined
  #refusedAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: HeldWritesOptions) {
    this.#options = options
  }

  readonly perform: Performer = (name, args, reply) => {
    if (!waiting.has(name)) return this.#performOrRefuse(name, args, reply)
    const done: unknown[] = []
    const attempt = (): boolean => {
      let isHeld = false
      this.#options.perform(
        name,
        args,
        {
          done: (answer) => reply.done(answer),
          fail: (error) => {
            isHeld = this.#isNoRoom(error)
            if (!isHeld) reply.fail(error)
          },
        },
        done,
      )
      return !isHeld
    }
    if (this.#held.length === 0 && attempt()) return () => undefined
    this.#held.push(attempt)
    return () => {
      this.#held = this.#held.filter((each) => each !== attempt)
    }
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#held = []
  }

  #performOrRefuse<K extends OperationName>(name: K, args: Arguments<K>, reply: Reply<Answer<K>>): Cancel {
    if (this.#held.length > 0 && this.#error !== undefined && refused.has(name)) {
      reply.fail(this.#error)
      return () => undefined
    }
    const fail = (error: BrokerError): void => {
      this.#isNoRoom(error)
      reply.fail(error)
    }
    return this.#options.perform(name, args, { done: (answer) => reply.done(answer), fail }, [])
  }

  #isNoRoom(error: BrokerError): boolean {
    if (!(error instanceof NoRoomError)) return false
    this.#refusedAt = performance.now()
    if (this.#error === undefined) this.#options.told(error)
    this.#error = error
    this.#timer ??= this.#later()
    return true
  }

  #later(): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.#timer = undefined
      this.#again()
      this.#options.tried()
    }, againMs)
    timer.unref()
    return timer
  }

  #again(): void {
    while (this.#held[0]?.() === true) this.#held.shift()
    if (this.#held.length > 0 || performance.now() - this.#refusedAt < settledMs) this.#timer ??= this.#later()
    else if (this.#error !== undefined) {
      this.#error = undefined
      this.#options.told(null)
    }
  }
}
