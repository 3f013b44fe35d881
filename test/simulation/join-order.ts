/**
 * A stream joined with a table, everything in the topics before the start, and a broker that gives it piece by piece and
 * seldom of all partitions at once: the result must be the one of input in the order of time, whatever crashes.
 */
import type { FetchRequest } from '../../src/broker/port.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'
import { noHeaders } from '../../src/broker/wire/headers.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { byKey, committed } from './checkers.ts'
import type { Tamper } from './faulty-broker.ts'
import type { Verdict } from './run-seed.ts'
import { type Mutant, World } from './world.ts'

/** Takes what is buffered, as if nothing else were on its way. */
export const takesWhatIsThere: Mutant = { name: 'takes-what-is-there', settings: { maxTaskIdleMs: -1 } }

/** No mistake: what waits and what is waited for hardly fit beside each other. */
export const hardlyAnyRoom: Mutant = { name: 'hardly-any-room', settings: { bufferedMaxBytes: 300 } }

const keyed = { key: serdes.string, value: serdes.json<number>() }

class JoinWorld extends World {
  /** Of each key, in the order of time. */
  readonly expected = new Map<string, string[]>()

  protected override get optimizes(): boolean {
    return this.derived.optimizes
  }

  protected override application(): Application {
    return defineApp({
      applicationId: 'sim',
      build(topology) {
        const rows = topology.table('rows', keyed)
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
      if (name !== 'fetch') return known ? known(name, args, call, other) : call(args)
      const [request] = args as [FetchRequest]
      const partitions = request.partitions.map((each) => ({ ...each, maxBytes: 100 + random.int(400) }))
      return call([{ ...request, partitions }])
    }
  }

  protected override leftOut(): number {
    return 0.4
  }

  protected override async feed(): Promise<void> {
    const { records, keys, partitions } = this.derived
    const { random } = this.scheduler
    const rows = new Map<string, number>()
    const builders = new Map<string, RecordBatchBuilder>()
    const flush = async (at: string): Promise<void> => {
      const [topic, partition] = at.split(':') as [string, string]
      const bytes = (builders.get(at) as RecordBatchBuilder).finish()
      builders.delete(at)
      const batches = [{ topic, partition: Number(partition), records: bytes }]
      await this.client.produce({ transactionalId: null, batches })
    }
    await this.client.createTopics(['rows', 'asks'].map((topic) => ({ topic, partitions })))
    for (let value = 0; value < records; value++) {
      const key = `k${random.int(keys)}`
      const partition = this.placeOf(key)
      const timestamp = 1_000_000 + value * 10
      const isRow = random.chance(0.4)
      const at = `${isRow ? 'rows' : 'asks'}:${partition}`
      const builder = builders.get(at) ?? new RecordBatchBuilder()
      builders.set(at, builder)
      builder.append(timestamp, Buffer.from(key), Buffer.from(JSON.stringify(value)), noHeaders)
      if (random.chance(0.3)) await flush(at)
      this.inputs.push({ key, value, timestamp, partition })
      if (isRow) rows.set(key, value)
      else this.#expect(key, JSON.stringify([value, rows.get(key) ?? null]))
    }
    for (const at of [...builders.keys()]) await flush(at)
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

export const mutants: readonly Mutant[] = [hardlyAnyRoom, takesWhatIsThere]

export async function runSeed(seed: number, mutant?: Mutant): Promise<Omit<Verdict, 'restarts'>> {
  const world = new JoinWorld({ seed, ...(mutant && { mutant }) })
  await world.run()
  if (world.violations.length === 0) await world.check()
  const { violations, derived } = world
  return { seed, derived, violations, story: '' }
}
