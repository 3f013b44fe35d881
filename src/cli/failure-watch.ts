import { EngineError, type ErrorCode, errorTable } from '../base/errors.ts'
import type { Runtime } from '../runtime/contract.ts'

const everyMs = 100

/**
 * With these nothing can be done in this process any more, whatever the configuration says. A fenced runtime that answers
 * over HTTP ends by itself.
 */
const fatal: ReadonlySet<string> = new Set(['LANE_STUCK', 'LICENSE_REFUSED'] satisfies ErrorCode[])

/**
 * Rejects once the engine has failed for good. A failed engine that still shows its reason over HTTP may stay
 * (`runtime.exit-on-failure`), unless somebody waits for the run to become idle.
 */
export class FailureWatch {
  readonly failed: Promise<never>
  readonly #timer: NodeJS.Timeout

  constructor(runtime: Runtime, waitsForIdle: boolean) {
    const { promise, reject } = Promise.withResolvers<never>()
    this.failed = promise
    // Whoever races against it hears of it; a run that ends otherwise does not care.
    promise.catch(() => undefined)
    this.#timer = setInterval(() => {
      const { failure } = runtime.view.state()
      if (!failure) return
      if (!waitsForIdle && runtime.url !== undefined && !fatal.has(failure.code)) return
      this.stop()
      reject(failureError(failure))
    }, everyMs)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

/** The engine's reason as an error with its own code. */
export function failureError(failure: { readonly code: string; readonly message: string }): EngineError {
  const known = failure.code in errorTable ? (failure.code as ErrorCode) : 'INVARIANT_BROKEN'
  return new EngineError(known, failure.message)
}
