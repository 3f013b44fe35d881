/** Topics whose number of partitions is another one than that by which the state of keys was shared out. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FetchRequest, OffsetToCommit, TopicInfo } from '../../src/broker/port.ts'
import { decodeMarks, encodeMarks } from '../../src/engine/commit/state-marks.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes, type Topology } from '../../src/index.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const read = { key: serdes.string, value: serdes.json<number>() }

function counted(topology: Topology): void {
  topology.stream('in', read).groupByKey().count({ store: 'c' }).toStream().to('out')
}

function twice(topology: Topology): void {
  counted(topology)
  topology.stream('other', read).groupByKey().count({ store: 'd' }).toStream().to('out')
}

function rows(topology: Topology): void {
  topology
    .table('tab', { ...read, store: 'rows' })
    .toStream()
    .to('out')
}

function joined(topology: Topology): void {
  const table = topology.table('tab', { ...read, store: 'rows' })
  topology
    .stream('in', read)
    .join(table, (value) => value)
    .to('out')
}

class Rig extends VirtualEngine {
  /** Topics that somebody has altered, with the partitions that they have since; nothing lies in the new ones. */
  readonly altered = new Map<string, number>()
  /** As versions before this one commit. */
  isOld = false

  constructor(
    build: (topology: Topology) => void,
    settings: Partial<EngineSettings> = {},
    compile: { readonly optimize?: boolean } = {},
  ) {
    const app = defineApp({ applicationId: 'sim', build })
    super({
      compile: () => app.compile(compile),
      settings,
      tamper: async (name, args, call) => {
        const isThere = ({ topic, partition }: { readonly topic: string; readonly partition: number }): boolean =>
          partition < 2 || !this.altered.has(topic)
        if (name === 'topics')
          return ((await call(args)) as TopicInfo[]).map((info) => ({
            ...info,
            partitions: this.altered.get(info.topic) ?? info.partitions,
          }))
        if (name === 'fetch') {
          const [asked, ...rest] = args as [FetchRequest]
          return call([{ ...asked, partitions: asked.partitions.filter(isThere) }, ...rest])
        }
        if (name === 'listOffsets') {
          const [asked, ...rest] = args as [{ topic: string; partition: number }[]]
          const fresh = asked.filter((each) => !isThere(each)).map((each) => ({ ...each, offset: 0 }))
          return [...((await call([asked.filter(isThere), ...rest])) as unknown[]), ...fresh]
        }
        if (this.isOld && (name === 'commitOffsetsInTransaction' || name === 'commitOffsets'))
          withoutShares(args.at(-1) as OffsetToCommit[])
        return call(args)
      },
    })
  }

  async ran(...topics: string[]): Promise<void> {
    await this.start()
    await this.runs()
    for (const topic of topics)
      await this.put(
        topic,
        [...'abcdefgh'].map((key, i) => ({ key, value: i, timestamp: 1_000_000 })),
      )
    await this.settled()
  }

  async failure(): Promise<string> {
    await this.until('it has failed', () => this.count('failed') > 0)
    const failed = this.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'PARTITIONS_CHANGED', failed?.error.message)
    return failed?.error.message ?? ''
  }

  async refused(): Promise<string> {
    this.kill()
    await this.start()
    const message = await this.failure()
    assert.equal(this.count('running') + this.count('standby'), 0)
    return message
  }
}

function withoutShares(offsets: OffsetToCommit[]): void {
  for (const [i, { metadata, ...each }] of offsets.entries())
    offsets[i] = { ...each, metadata: metadata.replace(/([=;]\d[a-zA-Z]*(?:@\d+)?(?:#\d+)?)\/\d+,/g, '$1,') }
}

describe('a start over state that is shared out by another number of partitions', () => {
  for (const durableStores of [false, true])
    test(`is refused where a changelog was altered, with stores ${durableStores ? 'on disk' : 'in memory'}`, async () => {
      const rig = new Rig(counted, { durableStores })
      await rig.ran('in')
      rig.altered.set('sim-c-changelog', 3)
      assert.match(
        await rig.refused(),
        /^the number of partitions has changed since the last commit \(sim-c-changelog has 3 and had 2\): the rows of the store c/,
      )
    })

  test('is refused where it is the changelog of a table', async () => {
    const rig = new Rig(rows)
    await rig.ran('tab')
    rig.altered.set('sim-rows-changelog', 3)
    assert.match(await rig.refused(), /\(sim-rows-changelog has 3 and had 2\): the rows of the store rows/)
  })

  for (const split of ['in-process', 'repartition-topics'] as const)
    test(`is refused where the source topic that serves as changelog has grown: ${split}`, async () => {
      const rig = new Rig(joined, { split }, { optimize: true })
      await rig.ran('tab', 'in')
      rig.altered.set('tab', 4)
      rig.altered.set('in', 4)
      assert.match(await rig.refused(), /\(tab has 4 and had 2\): the rows of the store rows are shared out by 2/)
    })

  test('is refused where source and changelog were both altered: repartition-topics', async () => {
    const rig = new Rig(counted, { split: 'repartition-topics' })
    await rig.ran('in')
    for (const topic of ['in', 'sim-c-changelog']) rig.altered.set(topic, 4)
    assert.match(await rig.refused(), /\(sim-c-changelog has 4 and had 2\)/)
  })

  test('is refused to a standby, before it is ready', async () => {
    const settings: { -readonly [K in keyof EngineSettings]?: EngineSettings[K] } = {}
    const rig = new Rig(counted, settings)
    await rig.ran('in')
    settings.ha = { podId: 'one', groupMode: 'join' }
    rig.altered.set('sim-c-changelog', 3)
    assert.match(await rig.refused(), /\(sim-c-changelog has 3 and had 2\)/)
  })

  test('goes on where the input alone has grown: in process the hash of a key finds its state', async () => {
    const rig = new Rig(counted)
    await rig.ran('in')
    rig.kill()
    rig.altered.set('in', 4)
    await rig.start()
    await rig.runs()
  })

  for (const durableStores of [false, true])
    test(`goes on where the source topic that serves as changelog was made anew, with stores ${durableStores ? 'on disk' : 'in memory'}`, async () => {
      const rig = new Rig(joined, { durableStores }, { optimize: true })
      await rig.ran('tab', 'in')
      rig.kill()
      await rig.broker.deleteTopics(['tab'])
      await rig.broker.createTopics([{ topic: 'tab', partitions: 3 }])
      await rig.start()
      await rig.runs()
      const rows = [...'abcdef'].map((key, value) => ({ key, value, timestamp: 1_000_000 }))
      await rig.put('tab', rows)
      await rig.settled()
      const before = (await rig.read('out')).length
      await rig.put('in', rows)
      await rig.settled()
      assert.equal((await rig.read('out')).length, before + rows.length)
    })

  test('goes on where the commits are of a version that did not note it', async () => {
    const rig = new Rig(counted)
    rig.isOld = true
    await rig.ran('in')
    rig.kill()
    rig.isOld = false
    rig.altered.set('sim-c-changelog', 3)
    await rig.start()
    await rig.runs()
  })
})

describe('a changelog that is altered while the application runs', () => {
  const ha = { podId: 'one', groupMode: 'join' } as const

  async function runs(rig: Rig): Promise<void> {
    await rig.start()
    await rig.until('it stands by', () => rig.count('standby') > 0)
    rig.command({ type: 'ha-promote', tokenEpoch: 3, paused: false })
    await rig.until('it has the identity', () => rig.count('identity-taken') > 0)
    rig.command({ type: 'ha-proceed', tokenEpoch: 3 })
    await rig.runs()
  }

  test('is named, whatever other stores there are', async () => {
    const rig = new Rig(twice, { ha, metadataMaxAgeMs: 5000 })
    await runs(rig)
    rig.altered.set('sim-d-changelog', 3)
    assert.match(
      await rig.failure(),
      /while the application ran \(sim-d-changelog has 3 and had 2\): the state in sim-d-changelog is shared out by 2\./,
    )
  })

  test('is named where its partitions are the tasks', async () => {
    const rig = new Rig(twice, { ha, metadataMaxAgeMs: 5000, split: 'repartition-topics' })
    await runs(rig)
    rig.altered.set('sim-d-changelog', 3)
    assert.match(await rig.failure(), /while the application ran \(sim-d-changelog has 3 and had 2\)/)
  })
})

test('marks of stores tell by how many these are shared out, and go without', () => {
  const mark = { name: 'c', kind: 'window', keySerde: 'string', valueSerde: 'json', timestamped: true } as const
  const marks = [
    { ...mark, windowSizeMs: 5, windowAdvanceMs: 12, around: '77', shares: 128, changelog: 'x' },
    { ...mark, name: 'd', changelog: 'y' },
  ]
  assert.deepEqual(decodeMarks(encodeMarks(marks)), marks)
  assert.match(encodeMarks(marks), /^1t@12#77\/128,c,/)
})
