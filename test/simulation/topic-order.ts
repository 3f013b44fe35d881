/**
 * Records that change their key and then meet a table, through topics between sub-topologies: some or all of them there before
 * the start, and a broker that gives it piece by piece and seldom of all partitions at once. Each record must meet the row
 * of its time, and those of a group must come in the order of time, once, whatever crashes and however slow functions are.
 */
import type { FetchRequest } from '../../src/broker/port.ts'
import { keySlot } from '../../src/base/hash.ts'
import type { Application } from '../../src/dsl/app.ts'
import { OffsetQueue } from '../../src/engine/input/repartition/offset-queue.ts'
import { SortedBuffer } from '../../src/engine/input/repartition/sorted-buffer.ts'
import { Upstream } from '../../src/engine/input/repartition/upstream.ts'
import { Gates } from '../../src/time/gates.ts'
import type { Tamper } from './faulty-broker.ts'
import { type Broken, played, replaced } from './level-order.ts'
import { PricedAnswers, pricedAsks } from './priced-asks.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { type Mutant, World } from './world.ts'

class TopicWorld extends World {
  readonly #answers = new PricedAnswers()

  protected override get optimizes(): boolean {
    return this.derived.optimizes
  }

  protected override application(delays: Delays): Application {
    return pricedAsks(() => delays.next())
  }

  protected override tamper(): Tamper {
    const { random } = this.scheduler
    const known = super.tamper()
    return async (name, args, call, other) => {
      if (name !== 'fetch') return known ? known(name, args, call, other) : call(args)
      const [request] = args as [FetchRequest]
      const partitions = request.partitions.map((each) => ({ ...each, maxBytes: 100 + random.int(400) }))
      return call([{ ...request, partitions }])
    }
  }

  protected override leftOut(): number {
    return 0.3
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    await this.client.createTopics(['rows', 'asks'].map((topic) => ({ topic, partitions })))
    const feed = this.orderedFeed()
    const before = random.int(records + 1)
    for (let n = 0; n < records; n++) {
      if (n === before) await feed.goLive()
      const product = `p${random.int(4)}`
      const isRow = random.chance(0.4)
      const key = isRow ? product : `k${random.int(keys)}`
      // Rows have to lie where the topic of the re-key has its records.
      const partition = keySlot(Buffer.from(key)) % partitions
      const topic = isRow ? 'rows' : 'asks'
      await feed.put({ topic, partition, timestamp: 1_000_000 + n * 10, key, value: isRow ? n : { n, product } })
      if (isRow) this.#answers.row(product, n)
      else this.#answers.ask(product, n)
    }
    await feed.end()
  }

  async check(): Promise<void> {
    for (const difference of await this.#answers.differences(this.cluster)) this.violate(difference)
  }
}

const throughTopics = { split: 'repartition-topics', partitions: 3 } as const

/** Not a mistake: these worlds are about topics. */
const plain: Mutant = { name: 'plain', world: { split: 'repartition-topics' } }

export const mutants: readonly Broken[] = [
  {
    name: 'takes-what-comes',
    world: throughTopics,
    settings: { maxTaskIdleMs: -1 },
  },
  {
    name: 'forgets-what-is-done',
    // The commit does not say which of the records behind its offset went before their turn.
    world: { ...throughTopics, crashes: 3 },
    breaks: () => replaced(SortedBuffer.prototype, 'kept', { get: () => undefined }),
  },
  {
    name: 'commits-all-that-was-read',
    // What waits for those who write is lost with the process.
    world: { ...throughTopics, crashes: 3 },
    breaks: () => replaced(OffsetQueue.prototype, 'oldest', { get: () => undefined }),
  },
  {
    name: 'held-heads-let-others-by',
    world: throughTopics,
    breaks: () => replaced(Gates.prototype, 'oldestHeld', { value: () => Number.POSITIVE_INFINITY }),
  },
  {
    name: 'those-who-are-silent-are-done',
    // A feeder counts as one that has done everything, whatever lies in its topic.
    world: throughTopics,
    breaks: () => {
      const { frontierOf } = Upstream.prototype
      return replaced(Upstream.prototype, 'frontierOf', {
        value(this: Upstream, source: Parameters<typeof frontierOf>[0]) {
          return { ...frontierOf.call(this, source), knownUpToMs: Number.POSITIVE_INFINITY }
        },
      })
    },
  },
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new TopicWorld({ seed, mutant: mutant ?? plain }), mutant)
}
