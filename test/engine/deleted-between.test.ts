/** Topics between sub-topologies that somebody deletes: what lay in one and was not read is lost. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CommittedOffset } from '../../src/broker/port.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes, type Topology } from '../../src/index.ts'
import { byKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const read = { key: serdes.string, value: serdes.json<number>() }
const between = 'sim-mid-repartition'

function counted(topology: Topology): void {
  topology
    .stream('in', read)
    .selectKey((_, key) => key.toUpperCase())
    .repartition({ name: 'mid', ...read })
    .groupByKey()
    .count({ store: 'counts' })
    .toStream()
    .to('out')
}

function passedOn(topology: Topology): void {
  topology
    .stream('in', read)
    .selectKey((_, key) => key.toUpperCase())
    .repartition({ name: 'mid', ...read })
    .to('out')
}

function copied(topology: Topology): void {
  topology
    .stream('in', read)
    .mapValues((value) => value)
    .to('out')
}

type Settings = { -readonly [K in keyof EngineSettings]?: EngineSettings[K] }

class Rig extends VirtualEngine {
  readonly settings: Settings
  /** As Kafka, which drops the offsets of a topic together with it. */
  dropsOffsets = false
  /** The newest commit told of nothing but the topic. */
  forgetsNewest = false
  asks = 0

  build: (topology: Topology) => void

  constructor(build: (topology: Topology) => void, settings: Settings = {}) {
    const app = defineApp({ applicationId: 'sim', build: (topology) => this.build(topology) })
    const all: Settings = { split: 'repartition-topics', durableStores: false, ...settings }
    super({
      compile: () => app.compile(),
      settings: all,
      keepsStores: true,
      tamper: async (name, args, call) => {
        const answer = await call(args)
        if (name !== 'committedOffsets') return answer
        this.asks++
        return (answer as readonly CommittedOffset[]).map((each) => {
          if (this.dropsOffsets && each.topic === between) return { ...each, offset: -1, metadata: '' }
          return this.forgetsNewest
            ? { ...each, metadata: each.metadata.replace(/^v1\|(\d+)\|\d+\|/, 'v1|$1|0|') }
            : each
        })
      },
    })
    this.settings = all
    this.build = build
  }

  async ran(keys = 'a'): Promise<void> {
    await this.start()
    await this.runs()
    await this.put(
      'in',
      [...keys].map((key) => ({ key, value: 1, timestamp: 1_000_000 })),
    )
    await this.settled()
  }

  async deleted(): Promise<void> {
    this.kill()
    await this.broker.deleteTopics([between])
  }

  async failure(code: string): Promise<string> {
    await this.until('it has failed', () => this.count('failed') > 0)
    const failed = this.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, code, failed?.error.message)
    return failed?.error.message ?? ''
  }

  async refused(): Promise<string> {
    await this.start()
    const message = await this.failure('OFFSETS_MISSING')
    assert.equal(this.count('running'), 0)
    assert.match(
      message,
      /^the topic sim-mid-repartition is one of sim's own, .* deleted: what lay in it and was not read is lost/,
    )
    return message
  }
}

const started = { counted, passedOn }
const cases = (['counted', 'passedOn'] as const).flatMap((build) =>
  [false, true].flatMap((durableStores) =>
    [false, true].map((dropsOffsets) => ({ build, durableStores, dropsOffsets }) as const),
  ),
)

describe('a start after a topic between sub-topologies was deleted', () => {
  for (const { build, durableStores, dropsOffsets } of cases)
    test(`is refused: ${build}, stores on disk: ${durableStores}, offsets went with it: ${dropsOffsets}`, async () => {
      const rig = new Rig(started[build], { durableStores })
      await rig.ran()
      await rig.deleted()
      rig.dropsOffsets = dropsOffsets
      const message = await rig.refused()
      assert.match(message, /`engine\.state\.lost-changelogs: accept` goes on with the new one$/)
      // Over the new one that the first start has made, too.
      await rig.refused()
    })

  test('is refused before stores know better: the newest commit may have told of that topic alone', async () => {
    const rig = new Rig(counted, { durableStores: true })
    await rig.ran()
    await rig.deleted()
    rig.dropsOffsets = true
    rig.forgetsNewest = true
    await rig.refused()
    rig.settings.lostChangelogs = 'accept'
    await rig.start()
    await rig.runs()
  })

  test('is refused to a pod of high availability, before it stands by', async () => {
    const rig = new Rig(counted)
    await rig.ran()
    await rig.deleted()
    rig.settings.ha = { podId: 'one', groupMode: 'join' }
    await rig.refused()
    assert.equal(rig.count('standby'), 0)
  })

  for (const dropsOffsets of [false, true])
    test(`goes on with a warning where that is accepted, once: offsets went with it: ${dropsOffsets}`, async () => {
      const rig = new Rig(counted)
      await rig.ran()
      await rig.deleted()
      rig.dropsOffsets = dropsOffsets
      rig.settings.lostChangelogs = 'accept'
      await rig.start()
      await rig.runs()
      assert.match(
        rig.warnings.join(),
        /was deleted and made again, .*; what lay in the old one and was not read is lost/,
      )
      rig.dropsOffsets = false
      await rig.put('in', [{ key: 'a', value: 2, timestamp: 1_000_001 }])
      await rig.settled()
      assert.deepEqual(byKey(await rig.read('out')).A, [1, 2])
      rig.kill()
      rig.settings.lostChangelogs = 'refuse'
      await rig.start()
      await rig.runs()
      assert.deepEqual(rig.warnings, [])
    })

  const goneOn: Readonly<Record<string, (rig: Rig) => void>> = {
    'in one process'(rig) {
      rig.settings.split = rig.settings.split === 'in-process' ? 'repartition-topics' : 'in-process'
    },
    'with another version'(rig) {
      rig.build = rig.build === copied ? passedOn : copied
    },
  }
  for (const [how, change] of Object.entries(goneOn))
    test(`goes on where the application has gone on without the topic since, ${how}`, async () => {
      const rig = new Rig(passedOn)
      await rig.ran('abcdefgh')
      rig.kill()
      change(rig)
      // One partition alone has something to commit: beside the other one stands what was noted before.
      await rig.ran('a')
      await rig.deleted()
      rig.dropsOffsets = true
      change(rig)
      await rig.start()
      await rig.runs()
    })

  test('asks for what is noted of the group once where nothing is missing', async () => {
    const rig = new Rig(counted)
    await rig.ran()
    rig.kill()
    rig.asks = 0
    await rig.start()
    await rig.runs()
    const asks = rig.asks
    const other = new Rig(counted, { split: 'in-process' })
    await other.ran()
    other.kill()
    other.asks = 0
    await other.start()
    await other.runs()
    assert.equal(asks, other.asks)
  })
})

test('a topic between sub-topologies that is deleted while it is read is told as what it is', async () => {
  const rig = new Rig(counted)
  await rig.ran()
  await rig.broker.deleteTopics([between])
  const message = await rig.failure('TOPIC_MISSING')
  assert.match(message, /^the topic sim-mid-repartition is one of the application's own, .* somebody has deleted it/)
  assert.match(message, /A new start is refused with OFFSETS_MISSING/)
  await rig.refused()
})
