/**
 * Processes of a group that find full topics and little memory, and of which one is slower than the others or comes later:
 * records that change their key meet the rows of a table through topics. Each must meet the row of its time, and the list of a
 * group a topic further must be in the order of time, once, though what one process has not come to yet is more than fits beside what the others have written.
 */
import { keySlot } from '../../src/base/hash.ts'
import { Random } from '../../src/base/random.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { usualSizes } from '../../src/base/sizes.ts'
import { Lead } from '../../src/engine/input/repartition/lead.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { settingsFor } from './derived.ts'
import { type Broken, replaced } from './level-order.ts'
import { PricedAnswers, pricedAsks } from './priced-asks.ts'
import type { Verdict } from './run-seed.ts'
import { SimulatedGroup } from './simulated-group.ts'

const mostSteps = 1_500_000

/** Of a process: how it differs from the others. */
interface Member {
  readonly startsAt: number
  readonly messageMs: number
  readonly brokerMs: number
  /** Ended or killed then, to come again a while later. */
  readonly goesAt: number | undefined
  readonly isKilled: boolean
}

interface Derived {
  readonly lanes: number
  readonly partitions: number
  readonly records: number
  readonly products: number
  readonly asyncShare: number
  readonly members: readonly Member[]
  /** For what waits for its turn. */
  readonly memory: number
}

function derive(random: Random): Derived {
  const members = 2 + random.int(2)
  const member = (n: number): Member => ({
    startsAt: n === 0 ? 0 : random.int(600),
    messageMs: random.pick([1, 3, 8]),
    brokerMs: random.pick([0.5, 2, 6]),
    goesAt: random.chance(0.3) ? random.int(2500) : undefined,
    isKilled: random.chance(0.5),
  })
  return {
    lanes: 1 + random.int(2),
    partitions: 3 + random.int(3),
    records: 800 + random.int(800),
    products: random.pick([2, 6, 20]),
    asyncShare: random.pick([0, 0, 0.1]),
    members: Array.from({ length: members }, (_, n) => member(n)),
    memory: 1 << 15,
  }
}

class Backlog extends SimulatedGroup {
  readonly derived: Derived
  readonly #answers = new PricedAnswers()

  constructor(seed: number) {
    const derived = derive(new Random(seed ^ 0xbac))
    super(new Random(seed), seed, mostSteps, { members: derived.members.length, partitions: derived.partitions })
    this.derived = derived
  }

  async run(): Promise<void> {
    await this.#fill()
    for (const [n, { startsAt, goesAt }] of this.derived.members.entries()) {
      this.scheduler.at(startsAt, 0, () => this.#start(n))
      if (goesAt !== undefined) this.scheduler.at(goesAt, 0, () => this.#go(n))
    }
    await this.until(() => this.scheduler.now > 6000)
    await this.untilIdle()
    if (this.violations.length === 0) await this.scheduler.drive(this.#check())
  }

  async #fill(): Promise<void> {
    const { records, partitions, products } = this.derived
    const { random } = this.scheduler
    const client = this.cluster.client()
    await client.createTopics(['rows', 'asks'].map((topic) => ({ topic, partitions })))
    const builders = new Map<string, RecordBatchBuilder>()
    for (let n = 0; n < records; n++) {
      const product = `p${random.chance(0.4) ? 0 : random.int(products)}`
      const isRow = random.chance(0.3)
      const key = isRow ? product : `k${random.int(40)}`
      const at = `${isRow ? 'rows' : 'asks'} ${keySlot(Buffer.from(key)) % partitions}`
      const builder = builders.get(at) ?? new RecordBatchBuilder()
      builders.set(at, builder)
      const value = JSON.stringify(isRow ? n : { n, product })
      builder.append(1_000_000 + n * 10, Buffer.from(key), Buffer.from(value), noHeaders)
      if (isRow) this.#answers.row(product, n)
      else this.#answers.ask(product, n)
    }
    const batches = [...builders].map(([at, builder]) => {
      const [topic, partition] = at.split(' ') as [string, string]
      return { topic, partition: Number(partition), records: builder.finish() }
    })
    await client.produce({ transactionalId: null, batches })
  }

  #go(n: number): void {
    const going = this.running[n]
    if (going === undefined) return
    const { isKilled } = this.derived.members[n] as Member
    this.tell(`process ${n} ${isKilled ? 'is killed' : 'stops'}`)
    const again = (): void => {
      going.kill()
      this.running[n] = undefined
      this.scheduler.at(this.scheduler.random.int(1500), 0, () => this.#start(n))
    }
    if (isKilled) again()
    else void going.engine.stop().then(again)
  }

  #settings(n: number, topology: CompiledTopology): EngineSettings {
    const { memory } = this.derived
    return {
      ...settingsFor({ ...this.derived, split: 'repartition-topics' }, topology),
      instanceId: `process-${n}`,
      groupInstanceId: null,
      sessionTimeoutMs: 1500,
      heartbeatIntervalMs: 300,
      bufferedMaxBytes: 1 << 22,
      laneQueueBytes: 300,
      sizes: {
        ...usualSizes,
        dispatchBytes: 96,
        batchBytes: 96,
        outputBytes: 96,
        aheadBytes: 96,
        sortedBytes: 64,
        sortedMostBytes: memory,
      },
    }
  }

  #start(n: number): void {
    const owner = this.nextOwner()
    const { scheduler, derived } = this
    const { messageMs, brokerMs } = derived.members[n] as Member
    const wait = (): Promise<void> | undefined => {
      if (!scheduler.random.chance(derived.asyncShare)) return undefined
      return new Promise((resolve) => scheduler.at(scheduler.random.next() * 50, owner, resolve))
    }
    const topology = pricedAsks(wait).compile()
    this.start(n, owner, {
      topology,
      settings: this.#settings(n, topology),
      messageMs,
      slowLane: -1,
      faults: () => ({ slowestMs: brokerMs, lostAnswer: 0, lostRequest: 0 }),
      tamper: (_name, args, call) => call(args),
      fact: (fact) => this.#fact(n, fact),
    })
  }

  #fact(n: number, fact: EngineFact): void {
    if (fact.type === 'failed') this.violations.push(`process ${n} failed: ${fact.error.code} ${fact.error.message}`)
    if (fact.type === 'log' && fact.level === 'warn') this.tell(`process ${n}: ${fact.message}`)
  }

  async #check(): Promise<void> {
    this.violations.push(...(await this.#answers.differences(this.cluster.cluster)))
  }
}

export const mutants: readonly Broken[] = [
  {
    name: 'waits-for-no-other-process',
    breaks: () => {
      const { othersAt } = Lead.prototype
      return replaced(Lead.prototype, 'othersAt', {
        value(this: Lead, subtopology: number, _: unknown, now: number) {
          othersAt.call(this, subtopology, undefined, now)
        },
      })
    },
  },
  {
    name: 'waits-for-no-commit-of-its-own',
    breaks: () => {
      const { limits } = Lead.prototype
      return replaced(Lead.prototype, 'limits', {
        value(this: Lead, now: number) {
          this.froze()
          this.committed()
          return limits.call(this, now)
        },
      })
    },
  },
]

export async function runSeed(
  seed: number,
  mutant?: Broken,
): Promise<Omit<Verdict, 'restarts' | 'derived'> & { readonly derived: object }> {
  const backlog = new Backlog(seed)
  const mend = mutant?.breaks?.()
  try {
    await backlog.run()
  } finally {
    mend?.()
  }
  const { violations, derived, story } = backlog
  return { seed, derived, violations, story: story.join('\n') }
}
