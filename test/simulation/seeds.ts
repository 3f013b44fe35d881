/**
 * Seeds on threads of their own. The test runner follows every promise of the thread that its tests run on, and a
 * simulated run is made of promises: there it takes three to five times as long.
 */
import assert from 'node:assert/strict'
import { availableParallelism } from 'node:os'
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

/** One thread, started when it is needed first. */
class SeedThread {
  readonly #simulator: URL
  #worker: Worker | undefined

  constructor(simulator: URL) {
    this.#simulator = simulator
  }

  started(): Worker {
    this.#worker ??= new Worker(new URL('seed-thread.ts', import.meta.url), { workerData: this.#simulator.href })
    return this.#worker
  }

  async end(): Promise<void> {
    await this.#worker?.terminate()
    this.#worker = undefined
  }

  run(t: TestContext, job: SeedsJob): Promise<SeedsOutcome> {
    const worker = this.started()
    const { promise, resolve, reject } = Promise.withResolvers<SeedsOutcome>()
    const ended = (cause: unknown): void => {
      this.#worker = undefined
      reject(cause instanceof Error ? cause : new Error('the thread of the seeds ended and gave no verdict'))
      void worker.terminate()
    }
    // A run that takes too long goes with its thread; the next one gets another.
    t.signal.addEventListener('abort', ended)
    worker.once('message', resolve).once('error', ended).once('exit', ended)
    worker.postMessage(job)
    return promise.finally(() => {
      t.signal.removeEventListener('abort', ended)
      worker.off('message', resolve).off('error', ended).off('exit', ended)
    })
  }
}

/** So many seeds are begun at once; one run knows nothing of another. */
const threads = Math.min(2, availableParallelism())

export class Seeds {
  readonly #first: SeedThread
  readonly #threads: readonly SeedThread[]

  /** `simulator`: a module with `runSeed` and `mutants`. */
  constructor(simulator: URL) {
    this.#first = new SeedThread(simulator)
    this.#threads = [this.#first, ...Array.from({ length: threads - 1 }, () => new SeedThread(simulator))]
    after(() => Promise.all(this.#threads.map((thread) => thread.end())))
  }

  /** None of them violates anything. `replay`: how a run is looked at. */
  async allHold(t: TestContext, job: SeedsJob, replay: string): Promise<SeedsOutcome> {
    const used = this.#threads.slice(0, job.seeds.length)
    const runs = used.map((thread, at) =>
      thread.run(t, { ...job, seeds: job.seeds.filter((_, i) => i % used.length === at) }),
    )
    const outcome = together(await Promise.all(runs))
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
    this.#first.started().on('error', () => undefined)
    try {
      const { violated } = await this.#first.run(t, { seeds: upTo(seeds), mutant })
      assert.ok(violated, `${mutant} went unnoticed in ${seeds} seeds`)
    } catch (error) {
      if (!(error instanceof Error && error.stack?.includes('AssertionFailure') === true)) throw error
    } finally {
      // What a broken run has left undone is not to fail in the middle of the next one.
      await this.#first.end()
    }
  }
}

/** Of several violated runs the one with the least seed. */
function together(outcomes: readonly SeedsOutcome[]): SeedsOutcome {
  const sum = (of: (outcome: SeedsOutcome) => number): number => outcomes.reduce((all, each) => all + of(each), 0)
  const violated = outcomes.flatMap((outcome) => outcome.violated ?? []).sort((a, b) => a.seed - b.seed)
  return {
    ran: sum(({ ran }) => ran),
    restarts: sum(({ restarts }) => restarts),
    promotions: sum(({ promotions }) => promotions),
    violated: violated[0],
  }
}
