/**
 * Records of all sizes for topics that take only small ones: some are too large alone, some only with others in one batch. What
 * topics take is known, or kept from the engine, or another thing by now; then it is found out when a batch is refused. Every
 * record that its topic takes must be there once, in the order of its key, and no other; rows of a store always fit their
 * changelog, though not all in one batch.
 */
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { BrokerError } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { Producer } from '../../src/engine/commit/producer.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { ErrorPolicies } from '../../src/lanes/tasks/error-policy.ts'
import { Outputs } from '../../src/lanes/outputs.ts'
import { serdes } from '../../src/serde/index.ts'
import { byKey, committed } from './checkers.ts'
import type { Tamper } from './faulty-broker.ts'
import { type Broken, played, replaced } from './level-order.ts'
import type { Verdict } from './run-seed.ts'
import type { Delays } from './workload.ts'
import { World } from './world.ts'

interface Made {
  readonly n: number
  readonly pad: string
}

const made = { key: serdes.string, value: serdes.json<Made>() }
/** The last two are named by records alone: nobody asks for them before. */
const sinks = ['small', 'named-0', 'named-1']
const sinkOf = (n: number): string => sinks[n % sinks.length] as string
const changelog = 'sim-latest-changelog'
const pads = [0, 0, 20, 20, 100, 280, 340, 900]
const largestRow = 340

class LargeWorld extends World {
  /** What each topic takes. */
  readonly #limits: ReadonlyMap<string, number>
  /** What the engine is told of that. */
  readonly #told: 'all' | 'nothing' | 'old'
  readonly #policy: ErrorPolicies['producing']
  /** How large the record with this number becomes. */
  readonly #sizes: readonly number[]

  constructor(options: ConstructorParameters<typeof World>[0]) {
    super(options)
    const { random } = this.scheduler
    this.#limits = new Map([...sinks, changelog].map((topic) => [topic, random.pick([500, 700])]))
    this.#told = random.pick(['all', 'nothing', 'old'])
    this.#policy = random.pick(['skip', 'dead-letter'])
    this.#sizes = Array.from({ length: this.derived.records }, () => random.pick(pads))
  }

  protected override application(delays: Delays): Application {
    const make = (n: number): Made => ({ n, pad: 'x'.repeat(this.#sizes[n] ?? 0) })
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const input = topology.stream('in', { key: serdes.string, value: serdes.json<number>() })
        const all = input.mapValues((n) => {
          const wait = delays.next(n)
          return wait ? wait.then(() => make(n)) : make(n)
        }, made)
        all
          .mapValues(({ n, pad }) => ({ n, pad: pad.slice(0, largestRow) }), made)
          .groupByKey()
          .reduce((_, next) => next, { store: 'latest' })
        all.filter(({ n }) => sinkOf(n) === 'small').to('small')
        all.filter(({ n }) => sinkOf(n) !== 'small').to(({ n }) => sinkOf(n))
      },
    })
  }

  protected override policies(): Partial<ErrorPolicies> {
    return { producing: this.#policy }
  }

  protected override settings(): Partial<EngineSettings> {
    return { ...super.settings(), sinkTopics: ['small'] }
  }

  protected override tamper(): Tamper {
    const known = super.tamper()
    const asked = new Set<string>()
    return async (name, args, call, other) => {
      const topic = String(args[0])
      if (name === 'topicConfig' && this.#limits.has(topic)) {
        if (this.#told === 'nothing') throw new BrokerError('TOPIC_AUTHORIZATION_FAILED', 'nobody may look at it')
        if (this.#told === 'old' && !asked.has(topic)) {
          asked.add(topic)
          return {}
        }
      }
      return known ? known(name, args, call, other) : call(args)
    }
  }

  protected override async feed(): Promise<void> {
    const { partitions } = this.derived
    const topics = [...this.#limits].map(([topic, bytes]) => {
      const compacted = topic === changelog ? { 'cleanup.policy': 'compact' } : {}
      return { topic, partitions, config: { ...compacted, 'max.message.bytes': String(bytes) } }
    })
    await this.client.createTopics(topics)
    await super.feed()
  }

  async check(): Promise<void> {
    const { inputs } = this
    for (const sink of sinks) {
      const mine = inputs.filter(({ value }) => sinkOf(value) === sink)
      const told = byKey(await committed(this.cluster, sink), ({ key }) => String(key))
      for (const [key, of] of byKey(mine, (input) => input.key)) {
        const expected = of.filter(({ value }) => this.#fits(sink, key, value)).map(({ value }) => value)
        const found = (told.get(key) ?? []).map(({ value }) => (JSON.parse(String(value)) as Made).n)
        if (String(found) !== String(expected)) this.violate(`${sink} of ${key}: expected ${expected}, found ${found}`)
      }
    }
    await this.#checkLetters()
    await this.#checkRows()
  }

  /** Alone in a batch. */
  #fits(sink: string, key: string, n: number): boolean {
    const builder = new RecordBatchBuilder()
    const value = { n, pad: 'x'.repeat(this.#sizes[n] ?? 0) }
    builder.append(this.inputs[n]?.timestamp ?? 0, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
    return builder.bytes <= (this.#limits.get(sink) as number)
  }

  async #checkLetters(): Promise<void> {
    const refused = this.inputs.filter(({ key, value }) => !this.#fits(sinkOf(value), key, value))
    const expected = this.#policy === 'skip' ? [] : refused.map(({ value }) => value)
    const letters = (await committed(this.cluster, 'dead')).map(({ value }) => Number(String(value)))
    letters.sort((a, b) => a - b)
    if (String(letters) !== String(expected)) this.violate(`letters: expected ${expected}, found ${letters}`)
  }

  async #checkRows(): Promise<void> {
    const rows = byKey(await committed(this.cluster, changelog), ({ key }) => String(key))
    for (const [key, inputs] of byKey(this.inputs, (input) => input.key)) {
      const found = (rows.get(key) ?? []).map(({ value }) => (JSON.parse(String(value)) as Made).n)
      const isInOrder = found.every((n, i) => i === 0 || n > (found[i - 1] as number))
      if (!isInOrder || found.at(-1) !== inputs.at(-1)?.value)
        this.violate(`the changelog of ${key}: found ${found}, the newest is ${inputs.at(-1)?.value}`)
    }
  }
}

const world = { split: 'in-process', foldsMs: 0, asks: 0, breaks: null, diskFaults: null } as const

export const mutants: readonly Broken[] = [
  {
    name: 'what-was-taken-is-written-again',
    // Halves of a batch go out under new numbers, those too that the broker has.
    breaks: () => {
      const { send } = Producer.prototype
      return replaced(Producer.prototype, 'send', {
        value(this: Producer, ...[batches, now, done]: Parameters<typeof send>) {
          const [first] = batches
          const twice = first !== undefined && first.records.length > 400 ? [...batches, copyOf(first)] : batches
          send.call(this, twice, now, done)
        },
      })
    },
  },
  {
    name: 'refused-ones-stay-in-the-batch',
    breaks: () => {
      const { dropLast } = RecordBatchBuilder.prototype
      return replaced(RecordBatchBuilder.prototype, 'dropLast', {
        value(this: RecordBatchBuilder, before: number) {
          if (before === 0) dropLast.call(this, before)
        },
      })
    },
  },
  {
    name: 'limits-go-with-their-run',
    // Lanes forget what they were told, and what they ask again is answered as before.
    breaks: () => {
      const { setTopic } = Outputs.prototype
      return replaced(Outputs.prototype, 'setTopic', {
        value(this: Outputs, known: Parameters<typeof setTopic>[0]) {
          setTopic.call(this, { ...known, maxBatchBytes: 1 << 20 })
        },
      })
    },
  },
]

function copyOf<T extends { readonly records: Uint8Array }>(batch: T): T {
  return { ...batch, records: batch.records.slice(), use: undefined }
}

export async function runSeed(seed: number, mutant?: Broken): Promise<Omit<Verdict, 'restarts'>> {
  const all = { name: 'none', ...mutant, world: { ...world, ...mutant?.world } }
  return played(seed, new LargeWorld({ seed, mutant: all }), mutant)
}
