/**
 * Functions that take from microseconds to a minute over topics that are full at the start, with few keys and one of them
 * in most records: results are right, nothing restarts for it, and commits come as long as functions return.
 */
import { laneIndex } from '../../src/base/counters.ts'
import type { EngineSnapshot } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import type { StoreSpec } from '../../src/state/contract.ts'
import { checkRun } from './checkers.ts'
import type { Verdict } from './run-seed.ts'
import { type Mutant, partitionOf, World } from './world.ts'
import { application } from './workload.ts'

/** The lanes tell that they are done with what they have just been given. */
const doneTooEarly: Mutant = {
  name: 'done-too-early',
  counters: (block) => {
    block[laneIndex.finishedRecords] = (block[laneIndex.finishedRecords] as number) + 1e6
    block[laneIndex.longestChain] = 0
  },
  messages: () => ({
    fromLane: (message, send) => send(message.type === 'finished' ? { ...message, keys: [] } : message),
  }),
}

/** Each record of a key that is done lets ten others of it in. */
const keysForgotten: Mutant = {
  name: 'keys-forgotten',
  counters: (block) => {
    block[laneIndex.longestChain] = 0
    block[laneIndex.callMs] = 1e4
  },
  messages: () => ({
    fromLane: (message, send) =>
      send(
        message.type === 'finished'
          ? { ...message, keys: message.keys.flatMap((k) => new Array(10).fill(k)) }
          : message,
      ),
  }),
}

export const mutants: readonly Mutant[] = [doneTooEarly, keysForgotten]

/** A commit that has begun is through after so many of the slowest calls, and some time for all else. */
const calls = 3
const elseMs = 4000
/** All calls of one key take no longer than this: a run has to end. */
const allMs = 400_000

class SlowWorld extends World {
  /** Calls take between a tenth of this and all of it. */
  readonly #longestMs: number
  readonly #isHot: number
  #slowestMs = 0
  #epoch = -1
  #since = 0

  constructor(options: { readonly seed: number; readonly mutant?: Mutant }) {
    super(options)
    const { random } = this.scheduler
    this.#longestMs = Math.min(10 ** (-3 + random.next() * 7.7), allMs / this.derived.records)
    this.#isHot = random.pick([0, 0.5, 0.95])
  }

  protected override settings(): Partial<EngineSettings> {
    return { commitIntervalMs: 100, commitIdleIntervalMs: 50, barrierTimeoutMs: 60_000, maxRestarts: 3 }
  }

  protected override get mostSteps(): number {
    return 4_000_000
  }

  /** What does not answer later is synchronous: then nothing else happens meanwhile, as on a machine with one core. */
  protected override delay(owner: number): Promise<void> | undefined {
    const { random, clock } = this.scheduler
    const ms = this.#longestMs * (0.1 + 0.9 * random.next())
    this.#slowestMs = Math.max(this.#slowestMs, ms)
    if (!random.chance(this.derived.asyncShare)) {
      clock.advance(Math.min(ms, 100))
      return undefined
    }
    return new Promise((resolve) => {
      this.scheduler.at(ms, owner, resolve)
    })
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics([{ topic: 'in', partitions }])
    for (let value = 0; value < records; value++) {
      const key = random.chance(this.#isHot) ? 'k0' : `k${random.int(keys)}`
      const partition = partitionOf(key, partitions)
      const timestamp = 1_000_000 + value * 20 - random.int(90)
      this.inputs.push({ key, value, timestamp, partition })
      const builder = new RecordBatchBuilder()
      builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
      await this.client.produce({
        transactionalId: null,
        batches: [{ topic: 'in', partition, records: builder.finish() }],
      })
    }
  }

  protected override shown({ barriers }: EngineSnapshot): void {
    const { now } = this.scheduler
    const waits = barriers.phase === 'AWAITING_LANE_ACKS'
    if (!waits || barriers.epoch !== this.#epoch) {
      this.#epoch = waits ? barriers.epoch : -1
      this.#since = now
      return
    }
    const spent = now - this.#since
    if (spent <= calls * this.#slowestMs + elseMs) return
    this.violate(
      `a commit waits for ${Math.round(spent)} ms, and the slowest call took ${Math.round(this.#slowestMs)}: ${JSON.stringify(barriers.lanes)}`,
    )
  }
}

let specs: ReadonlyMap<string, StoreSpec> | undefined

export async function runSeed(seed: number, mutant?: Mutant): Promise<Verdict> {
  specs ??= application({ next: () => undefined }).compile().stores
  // Each update is told, and commits come as often as they do by default: the bound is one of theirs.
  const world = new SlowWorld({ seed, mutant: { name: 'none', ...mutant, world: { foldsMs: 0, ...mutant?.world } } })
  await world.run()
  const { cluster, inputs, stores, remains, violations, derived, facts } = world
  for (const fact of facts) {
    if (fact.type === 'restarting' && /did not reach the barrier/.test(fact.cause)) world.violate(fact.cause)
  }
  if (violations.length === 0) {
    const check = checkRun({ cluster, inputs, stores, remains, specs, violate: (what) => world.violate(what) })
    if (!(await world.scheduler.drive(check))) world.violate('a transaction of the end stays open')
  }
  const story = facts.map((fact) => ('cause' in fact ? `${fact.type} (${fact.cause})` : fact.type)).join(', ')
  return { seed, derived, violations, story, restarts: 0 }
}
