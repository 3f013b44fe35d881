/** The thread of `Seeds`: runs the seeds of each job up to the first that violates something. */
import { strict as assert } from 'node:assert'
import { parentPort, workerData } from 'node:worker_threads'
import type { SeedsJob, SeedsOutcome, Violated } from './seeds.ts'

interface Verdict extends Violated {
  readonly restarts?: number
  readonly promotions?: number
}

/** What a simulator's module has to offer. */
interface Simulator {
  readonly mutants: ReadonlyArray<{ readonly name: string }>
  runSeed(seed: number, mutant?: { readonly name: string }, engine?: SeedsJob['engine']): Promise<Verdict>
}

const { mutants, runSeed } = (await import(String(workerData))) as Simulator

async function run({ seeds, mutant, engine }: SeedsJob): Promise<SeedsOutcome> {
  const broken = mutants.find(({ name }) => name === mutant)
  assert.equal(broken?.name, mutant)
  const outcome: SeedsOutcome = { ran: 0, restarts: 0, promotions: 0, violated: undefined }
  for (const seed of seeds) {
    const verdict = await runSeed(seed, broken, engine)
    outcome.ran++
    outcome.restarts += verdict.restarts ?? 0
    outcome.promotions += verdict.promotions ?? 0
    if (verdict.violations.length === 0) continue
    outcome.violated = verdict
    break
  }
  return outcome
}

parentPort?.on('message', async (job: SeedsJob) => parentPort?.postMessage(await run(job)))
