/**
 * Seeds on a thread of their own. The test runner follows every promise of the thread that its tests run on, and a
 * simulated run is made of promises: there it takes three to five times as long.
 */
import assert from 'node:assert/strict'
import { after, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'

export interface SeedsJob {
  readonly seeds: readonly number[]
  /** Name of the mistake that the runs have. */
  readonly mutant?: string
  readonly engine?: 'model' | 'real'
}

/** The verdict on a run that violated something, as every simulator gives it. */
export interface Violated {
  readonly seed: number
  readonly derived: object
  readonly violations: readonly string[]
  readonly story: string | readonly string[]
}

export interface SeedsOutcome {
  /** Seeds up to the first that violated something, that one included. */
  ran: number
  /** Restarts of the engine in place, and promotions of pods, in all of them. */
  restarts: number
  promotions: number
  violated: Violated | undefined
}

export const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1)

export class Seeds {
  readonly #simulator: URL
  #thread: Worker | undefined

  /** `simulator`: a module with `runSeed` and `mutants`. */
  constructor(simulator: URL) {
    this.#simulator = simulator
    after(() => this.#thread?.terminate())
  }

  /** None of them violates anything. `replay`: how a run is looked at. */
  async allHold(t: TestContext, job: SeedsJob, replay: string): Promise<SeedsOutcome> {
    const outcome = await this.#run(t, job)
    const { violated } = outcome
    const shown = violated && [JSON.stringify(violated.derived), violated.story].flat().join('\n')
    assert.deepEqual(
      violated?.violations ?? [],
      [],
      `seed ${violated?.seed} violates the protocol; replay it with: ${replay} ${violated?.seed}\n${shown}`,
    )
    return outcome
  }

  /** One of so many runs with this mistake violates something, or what is asserted in the sources: that notices it as well. */
  async notice(t: TestContext, mutant: string, seeds: number): Promise<void> {
    // A broken run may fail once more when its verdict is there.
    this.#started().on('error', () => undefined)
    try {
      const { violated } = await this.#run(t, { seeds: upTo(seeds), mutant })
      assert.ok(violated, `${mutant} went unnoticed in ${seeds} seeds`)
    } catch (error) {
      if (!(error instanceof Error && error.stack?.includes('AssertionFailure') === true)) throw error
    } finally {
      // What a broken run has left undone is not to fail in the middle of the next one.
      await this.#thread?.terminate()
      this.#thread = undefined
    }
  }

  #started(): Worker {
    this.#thread ??= new Worker(new URL('seed-thread.ts', import.meta.url), { workerData: this.#simulator.href })
    return this.#thread
  }

  #run(t: TestContext, job: SeedsJob): Promise<SeedsOutcome> {
    const thread = this.#started()
    const { promise, resolve, reject } = Promise.withResolvers<SeedsOutcome>()
    const ended = (cause: unknown): void => {
      this.#thread = undefined
      reject(cause instanceof Error ? cause : new Error('the thread of the seeds ended and gave no verdict'))
      void thread.terminate()
    }
    // A run that takes too long goes with its thread; the next one gets another.
    t.signal.addEventListener('abort', ended)
    thread.once('message', resolve).once('error', ended).once('exit', ended)
    thread.postMessage(job)
    return promise.finally(() => {
      t.signal.removeEventListener('abort', ended)
      thread.off('message', resolve).off('error', ended).off('exit', ended)
    })
  }
}
