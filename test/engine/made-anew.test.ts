/** A topic that is deleted and made again under its name while the application is behind, on the embedded broker. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sleep } from '../../src/base/timers.ts'
import type { OffsetToCommit } from '../../src/broker/port.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes } from '../../src/index.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const read = { key: serdes.string, value: serdes.json<number>() }
const start = 1_700_000_040_000

const passing = defineApp({
  applicationId: 'sim',
  build(topology) {
    topology.stream('in', read).to('out', read)
    topology.stream('beside', read).to('besides', read)
  },
})

const counting = defineApp({
  applicationId: 'sim',
  build(topology) {
    topology.stream('in', read).groupByKey().count({ store: 'counts' }).toStream().to('out', read)
    topology.stream('beside', read).to('besides', read)
  },
})

const table = defineApp({
  applicationId: 'sim',
  build(topology) {
    topology
      .table('in', { ...read, store: 'rows' })
      .toStream()
      .to('out', read)
    topology.stream('beside', read).to('besides', read)
  },
})

class Rig extends VirtualEngine {
  /** Nothing is fetched, as where buffers are full. */
  isFull = false
  /** As versions before this one commit. */
  isOld = false
  readonly isHa: boolean
  whileStandingBy: () => Promise<void> = async () => undefined
  #tokenEpoch = 2
  #atOffsets: (() => void) | undefined
  #resume: (() => void) | undefined

  constructor(compile: () => CompiledTopology, settings: Partial<EngineSettings> = {}) {
    super({
      compile,
      get settings() {
        return { durableStores: false, ...settings }
      },
      tamper: async (name, args, call) => {
        if (name === 'fetch') return this.#fetch(call, args)
        if (name !== 'commitOffsetsInTransaction' && name !== 'commitOffsets') return call(args)
        if (this.isOld) withoutTopics(args.at(-1) as OffsetToCommit[])
        if (this.#atOffsets !== undefined) {
          const resume = new Promise<void>((resolve) => {
            this.#resume = resolve
          })
          this.#atOffsets()
          this.#atOffsets = undefined
          await resume
        }
        return call(args)
      },
    })
    this.isHa = settings.ha !== undefined
  }

  /** Of who is active: with high availability it stands by before. */
  async begins(): Promise<void> {
    await this.start()
    if (this.isHa) {
      const tokenEpoch = ++this.#tokenEpoch
      await this.until('it stands by', () => this.count('standby') > 0)
      await this.passes(2000)
      await this.whileStandingBy()
      this.command({ type: 'ha-promote', tokenEpoch, paused: false })
      await this.until('it has the identity', () => this.count('identity-taken') + this.count('failed') > 0)
      this.command({ type: 'ha-proceed', tokenEpoch })
    }
    await this.until('it runs', () => this.count('running') + this.count('failed') > 0)
  }

  /** While it is full, no answer comes; what is asked for behind that is asked for anew. */
  async #fetch(call: (args: unknown[]) => Promise<unknown>, args: unknown[]): Promise<unknown> {
    const answer = this.isFull ? undefined : await call(args)
    if (!this.isFull) return answer
    while (this.isFull) await sleep(this.scheduler.timers(0), 10)
    return call(args)
  }

  /** The topic is made anew between what a commit has read of it and that commit's offsets. */
  async madeAnewWhileBehind(topic = 'in'): Promise<void> {
    await this.begins()
    for (const each of ['in', 'beside']) await this.put(each, numbers(0, 4))
    await this.settled()
    let isThere = false
    this.#atOffsets = () => {
      isThere = true
    }
    await this.put('in', numbers(4, 8))
    await this.put('beside', numbers(4, 8))
    await this.until('offsets are sent', () => isThere)
    this.isFull = true
    await this.makeAnew(topic)
    await this.put(topic, numbers(100, 120))
    this.#resume?.()
    await this.passes(3000)
    assert.equal(this.count('failed'), 0)
    this.kill()
    this.isFull = false
  }

  async makeAnew(topic = 'in'): Promise<void> {
    await this.broker.deleteTopics([topic])
    await this.broker.createTopics([{ topic, partitions: 2 }])
  }

  async values(topic = 'out'): Promise<number[]> {
    return (await this.read(topic)).map(({ value }) => value as number).sort((a, b) => a - b)
  }

  async failure(): Promise<{ readonly code: string; readonly message: string } | undefined> {
    await this.until('it has failed', () => this.count('failed') > 0)
    return this.facts.find((fact) => fact.type === 'failed')?.error
  }
}

/** The offsets are told without saying which topic of its name they are of. */
function withoutTopics(offsets: OffsetToCommit[]): void {
  for (const [i, each] of offsets.entries()) offsets[i] = { ...each, metadata: each.metadata.replace(/\|of=[^|]*/, '') }
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({ key: `k${(from + i) % 5}`, value: from + i, timestamp: start + i }))
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i)

describe('a topic that was made again while the application was behind', () => {
  for (const offsetsReset of ['earliest', 'latest'] as const) {
    test(`is read from its beginning without stores, with offsets.reset: ${offsetsReset}`, async () => {
      const rig = new Rig(() => passing.compile(), { offsetsReset })
      await rig.madeAnewWhileBehind()
      await rig.start()
      await rig.runs()
      assert.match(
        rig.warnings.join(),
        /the topic in was deleted and made again, .*: the new one is read from its beginning/,
      )
      await rig.settled()
      const all = await rig.values()
      assert.deepEqual(
        all.filter((value) => value >= 100),
        range(100, 120),
      )
      assert.deepEqual(await rig.values('besides'), range(0, 8), 'of the others nothing is read twice')
      rig.kill()
      await rig.start()
      await rig.runs()
      await rig.settled()
      assert.deepEqual(rig.warnings, [], 'it is told once')
      assert.deepEqual(await rig.values(), all)
    })
  }

  test('is refused where offsets.reset is fail, with the reason', async () => {
    const settings = { offsetsReset: 'earliest' as EngineSettings['offsetsReset'] }
    const rig = new Rig(() => passing.compile(), settings)
    await rig.madeAnewWhileBehind()
    settings.offsetsReset = 'fail'
    await rig.start()
    const failed = await rig.failure()
    assert.equal(failed?.code, 'OFFSETS_MISSING')
    assert.match(
      failed?.message ?? '',
      /in:0 and offsets\.reset is fail: what it has is of a topic of that name that was/,
    )
  })

  for (const guarantee of ['exactly-once', 'at-least-once'] as const) {
    test(`is refused where a store has what was read of the old one, ${guarantee}`, async () => {
      const rig = new Rig(() => counting.compile(), { guarantee })
      await rig.madeAnewWhileBehind()
      const before = await rig.values()
      await rig.start()
      const failed = await rig.failure()
      assert.equal(failed?.code, 'OFFSETS_MISSING')
      assert.match(
        failed?.message ?? '',
        /^the store counts holds what was read of a topic in that was deleted, and the group sim has no offset of/,
      )
      assert.equal(rig.count('running'), 0)
      assert.deepEqual(await rig.values(), before)
    })
  }

  test('is read from its beginning where the stores are of other topics', async () => {
    const rig = new Rig(() => counting.compile())
    await rig.madeAnewWhileBehind('beside')
    await rig.start()
    await rig.runs()
    await rig.settled()
    assert.deepEqual(
      (await rig.values('besides')).filter((value) => value >= 100),
      range(100, 120),
    )
  })

  test('fills a table anew whose rows are its own', async () => {
    const rig = new Rig(() => table.compile({ optimize: true }))
    await rig.madeAnewWhileBehind()
    await rig.start()
    await rig.runs()
    await rig.settled()
    assert.deepEqual(
      (await rig.values()).filter((value) => value >= 100),
      range(100, 120),
    )
  })

  test('goes on where versions before this one have committed, which did not say what they had read', async () => {
    const rig = new Rig(() => passing.compile())
    rig.isOld = true
    await rig.start()
    await rig.runs()
    for (const topic of ['in', 'beside']) await rig.put(topic, numbers(0, 8))
    await rig.settled()
    rig.kill()
    rig.isOld = false
    await rig.start()
    await rig.runs()
    await rig.put('in', numbers(8, 10))
    await rig.settled()
    assert.deepEqual(await rig.values(), range(0, 10))
    assert.deepEqual(rig.warnings, [])
  })
})

describe('a topic that was made again while others were to take over', () => {
  const ha = { podId: 'one', groupMode: 'join' } as const

  test('is read from its beginning by the pod that is active next, without stores', async () => {
    const rig = new Rig(() => passing.compile(), { ha })
    await rig.madeAnewWhileBehind()
    await rig.begins()
    assert.match(rig.warnings.join(), /the topic in was deleted and made again/)
    await rig.settled()
    assert.deepEqual(
      (await rig.values()).filter((value) => value >= 100),
      range(100, 120),
    )
    assert.equal(rig.count('failed'), 0)
  })

  test('is refused by the pod that is to be active next, where a store has what was read of the old one', async () => {
    const rig = new Rig(() => counting.compile(), { ha })
    await rig.madeAnewWhileBehind()
    await rig.begins()
    assert.equal((await rig.failure())?.code, 'OFFSETS_MISSING')
    assert.equal(rig.count('running'), 0)
  })

  test('fills a table anew whose rows are its own, which no standby has of the old one', async () => {
    const rig = new Rig(() => table.compile({ optimize: true }), { ha })
    await rig.madeAnewWhileBehind()
    await rig.begins()
    await rig.settled()
    assert.deepEqual(
      (await rig.values()).filter((value) => value >= 100),
      range(100, 120),
    )
  })

  for (const groupMode of ['join', 'assign'] as const) {
    test(`ends the run of a pod that is active; one that stands by takes it as it is then, ${groupMode}`, async () => {
      const rig = new Rig(() => passing.compile(), { ha: { podId: 'one', groupMode }, metadataMaxAgeMs: 5000 })
      rig.whileStandingBy = async () => {
        for (const topic of ['in', 'beside']) await rig.makeAnew(topic)
      }
      await rig.begins()
      for (const topic of ['in', 'beside']) await rig.put(topic, numbers(0, 8))
      await rig.settled()
      assert.deepEqual(await rig.values(), range(0, 8))
      rig.isFull = true
      await rig.makeAnew()
      const failed = await rig.failure()
      assert.equal(failed?.code, 'TOPIC_MISSING')
    })
  }

  test('is read from its beginning where processes share the partitions', async () => {
    const rig = new Rig(() => passing.compile(), { split: 'repartition-topics' })
    await rig.madeAnewWhileBehind()
    await rig.begins()
    await rig.settled()
    assert.deepEqual(
      (await rig.values()).filter((value) => value >= 100),
      range(100, 120),
    )
  })
})

describe('a topic that is made again while it is read', () => {
  test('ends the run with the next fetch, before anything of the new one is taken for the old one', async () => {
    const rig = new Rig(() => passing.compile())
    await rig.start()
    await rig.runs()
    for (const topic of ['in', 'beside']) await rig.put(topic, numbers(0, 8))
    await rig.settled()
    rig.isFull = true
    await rig.makeAnew()
    await rig.put('in', numbers(100, 120))
    await rig.passes(100)
    rig.isFull = false
    await rig.put('beside', numbers(8, 9))
    const failed = await rig.failure()
    assert.equal(failed?.code, 'TOPIC_MISSING')
    assert.match(failed?.message ?? '', /^the topic in was deleted while it was read, and one that has its name now is/)
    assert.deepEqual(await rig.values(), range(0, 8))
    await rig.start()
    await rig.runs()
    await rig.settled()
    assert.deepEqual(await rig.values(), [...range(0, 8), ...range(100, 120)])
  })

  test('is noticed without a fetch, when topics are looked for', async () => {
    const rig = new Rig(() => passing.compile(), { metadataMaxAgeMs: 5000 })
    await rig.start()
    await rig.runs()
    for (const topic of ['in', 'beside']) await rig.put(topic, numbers(0, 8))
    await rig.settled()
    rig.isFull = true
    await rig.makeAnew()
    const failed = await rig.failure()
    assert.equal(failed?.code, 'TOPIC_MISSING')
    assert.match(failed?.message ?? '', /^the topic in was deleted while it was read/)
  })
})
