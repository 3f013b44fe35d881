/**
 * A stream joined with a table, some or all of it in the topics before the start, and a broker that gives it piece by piece
 * and seldom of all partitions at once: the result must be the one of input in the order of time, whatever crashes.
 */
import { BrokerError, type FetchRequest } from '../../src/broker/port.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'
import { byKey, committed } from './checkers.ts'
import type { Leaders } from './flights.ts'
import { type Tamper, traits } from './faulty-broker.ts'
import { EndChecks } from '../../src/engine/input/end-checks.ts'
import { PartitionBuffer } from '../../src/engine/input/partition-buffer.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import { type Mutant, World } from './world.ts'

/** Takes what is buffered, as if nothing else were on its way. */
export const takesWhatIsThere: Mutant = { name: 'takes-what-is-there', settings: { maxTaskIdleMs: -1 } }

/** No mistake: what waits and what is waited for hardly fit beside each other. */
export const hardlyAnyRoom: Mutant = { name: 'hardly-any-room', settings: { bufferedMaxBytes: 300 } }

/** Then all has to come to its end. */
const refusedUntilMs = 3000

const keyed = { key: serdes.string, value: serdes.json<number>() }

class JoinWorld extends World {
  /** Of each key, in the order of time. */
  readonly expected = new Map<string, string[]>()

  /** The table is made of a stream, so that no topic is known for a table's. */
  readonly #isDerived = this.scheduler.random.chance(0.3)
  /** Chance that a running application is not told where a log ends. */
  readonly #refused = this.#oneOf(0, 0.4, 0.8)
  /** Chance that a partition is missing in an answer; that of rows is for seconds where their broker is the slower one. */
  readonly #missing = this.#oneOf(0, 0.4)
  readonly #areRowsAway = this.scheduler.random.chance(0.3)
  readonly #readsAtOnce = this.#oneOf(0, 0.7)
  readonly #leaders = this.#oneOf<Leaders['of'] | undefined>(
    undefined,
    () => 'all',
    ({ topic }) => topic,
    ({ topic }) => topic,
    ({ topic, partition }) => `${topic} ${partition}`,
  )
  /** How much slower the leaders of rows are than those of what asks for them. */
  readonly #slowness = this.#oneOf(1, 30)
  readonly #pauses = {
    longestPauseMs: this.#oneOf(12, 150, 1500),
    firstPauseMs: this.#oneOf(0, 300, 1500),
  }

  protected override get optimizes(): boolean {
    return this.derived.optimizes
  }

  protected override application(): Application {
    const isDerived = this.#isDerived
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const rows = isDerived
          ? topology
              .stream('rows', keyed)
              .groupByKey()
              .reduce((_, row) => row)
          : topology.table('rows', keyed)
        topology
          .stream('asks', keyed)
          .leftJoin(rows, (ask, row) => [ask, row ?? null])
          .to('joined-out')
      },
    })
  }

  protected override tamper(): Tamper {
    const { random } = this.scheduler
    const known = super.tamper()
    return async (name, args, call, other) => {
      if (name === 'listOffsets' && this.#isRefusing() && random.chance(this.#refused))
        throw new BrokerError('REQUEST_TIMED_OUT', 'the broker does not say where it ends')
      if (name !== 'fetch') return known ? known(name, args, call, other) : call(args)
      const [request] = args as [FetchRequest]
      const partitions = request.partitions.map((each) => ({ ...each, maxBytes: 100 + random.int(400) }))
      return call([{ ...request, partitions }])
    }
  }

  protected override leftOut(topic: string): number {
    return this.#areRowsAway && topic === 'rows' && this.scheduler.now % 2000 < 1700 ? 1 : this.#missing
  }

  protected override get readsAtOnce(): number {
    return this.#readsAtOnce
  }

  protected override get leaders(): Leaders | undefined {
    const slowness = (topic: string): number => (topic === 'rows' ? this.#slowness : 1)
    return this.#leaders && { of: this.#leaders, slowness }
  }

  #isRefusing(): boolean {
    if (this.scheduler.now > refusedUntilMs) return false
    return this.facts.findLast(({ type }) => type === 'running' || type === 'restarting')?.type === 'running'
  }

  #oneOf<T>(...choices: readonly T[]): T {
    return choices[this.scheduler.random.int(choices.length)] as T
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    const rows = new Map<string, number>()
    await this.client.createTopics(['rows', 'asks'].map((topic) => ({ topic, partitions })))
    const feed = this.orderedFeed(this.#pauses)
    const before = random.int(records + 1)
    for (let value = 0; value < records; value++) {
      if (value === before) await feed.goLive()
      const key = `k${random.int(keys)}`
      const isRow = random.chance(0.4)
      const topic = isRow ? 'rows' : 'asks'
      await feed.put({ topic, partition: this.placeOf(key), timestamp: 1_000_000 + value * 10, key, value })
      if (isRow) rows.set(key, value)
      else this.#expect(key, JSON.stringify([value, rows.get(key) ?? null]))
    }
    await feed.end()
  }

  async check(): Promise<void> {
    const outputs = byKey(await committed(this.cluster, 'joined-out'), (record) => record.key.toString())
    for (const [key, expected] of this.expected) {
      const actual = (outputs.get(key) ?? []).map((record) => String(record.value))
      const at = expected.findIndex((each, i) => each !== actual[i])
      if (at >= 0 || actual.length !== expected.length)
        this.violate(`joined-out of ${key}: at ${at} expected ${expected[at]}, found ${actual[at]} of ${actual.length}`)
    }
  }

  #expect(key: string, result: string): void {
    const known = this.expected.get(key)
    if (known) known.push(result)
    else this.expected.set(key, [result])
  }
}

/** What a partition was known not to have some time ago it does not have now. */
export const believesWhatWasKnown: Broken = {
  name: 'believes-what-was-known',
  breaks: () => replaced(PartitionBuffer.prototype, 'endsAtLeast', { value: () => undefined }),
}

/** What it reads first may have changed by the time at which it reads the last. */
export const takesAnswersForOneMoment: Broken = {
  name: 'takes-answers-for-one-moment',
  breaks: () => replaced(traits, 'readsInTurn', { value: false }),
}

/** What is known to have more is never in doubt, whatever an answer says that has been under way for long. */
export const doubtsNothingThatHasMore: Broken = {
  name: 'doubts-nothing-that-has-more',
  world: { brokerMs: 3, crashes: 0, lostAnswer: 0, lostRequest: 0 },
  breaks: () => replaced(EndChecks.prototype, 'doubt', { value: () => undefined }),
}

export const mutants: readonly Broken[] = [
  hardlyAnyRoom,
  takesWhatIsThere,
  believesWhatWasKnown,
  takesAnswersForOneMoment,
  doubtsNothingThatHasMore,
]

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  return played(seed, new JoinWorld({ seed, ...(mutant && { mutant }) }), mutant)
}
