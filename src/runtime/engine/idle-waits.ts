/** Those who wait until nothing is left to do. Where that can never be, they hear why instead of waiting, or of taking it for done. */
import { EngineError } from '../../base/errors.ts'

export class IdleWaits {
  readonly #waiting = new Map<number, PromiseWithResolvers<void>>()
  readonly #ask: (id: number) => void
  #count = 0
  #over: EngineError | undefined

  /** `ask` has the engine say when nothing is left. */
  constructor(ask: (id: number) => void) {
    this.#ask = ask
  }

  begin(): Promise<void> {
    if (this.#over !== undefined) return Promise.reject(this.#over)
    const id = ++this.#count
    const wait = Promise.withResolvers<void>()
    this.#waiting.set(id, wait)
    this.#ask(id)
    return wait.promise
  }

  answered(id: number): void {
    this.#waiting.get(id)?.resolve()
    this.#waiting.delete(id)
  }

  /** Nothing more is processed here: the engine has failed with this, or was stopped. */
  end(error: EngineError | undefined): void {
    this.#over ??= error ?? new EngineError('USAGE', stopped)
    for (const { reject } of this.#waiting.values()) reject(this.#over)
    this.#waiting.clear()
  }
}

const stopped =
  'the runtime was stopped before all of its input was processed; await untilIdle() before stop(), or start it again'
