/** A group whose offsets are gone while its changelogs still hold what it committed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CommittedOffset } from '../../src/broker/port.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes, type Topology } from '../../src/index.ts'
import { byKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

function counted(topology: Topology): void {
  topology
    .stream('in', { key: serdes.string, value: serdes.json<number>() })
    .groupByKey()
    .count({ store: 'counts' })
    .toStream()
    .to('out')
}

class Rig extends VirtualEngine {
  deleted = false
  aborts = false
  /** A topic whose offsets are gone. */
  without: string | undefined
  /** What a tool has set for one of the partitions. */
  moved: number | undefined

  constructor(settings: Partial<EngineSettings> = {}, build = counted) {
    const app = defineApp({ applicationId: 'sim', build })
    super({
      compile: () => app.compile(),
      settings: { durableStores: false, ...settings },
      tamper: async (name, args, call) => {
        if (this.aborts && name === 'endTransaction') return call([args[0], args[1], false])
        const answer = await call(args)
        if (name !== 'committedOffsets') return answer
        const { deleted, moved, without } = this
        return (answer as readonly CommittedOffset[]).map((each) => {
          if (deleted || each.topic === without) return { ...each, offset: -1, metadata: '' }
          return moved === undefined || each.partition === 0 ? each : { ...each, offset: moved, metadata: '' }
        })
      },
    })
  }

  async ran(...topics: string[]): Promise<void> {
    await this.start()
    await this.runs()
    for (const topic of topics) await this.put(topic, [{ key: 'a', value: 1, timestamp: 1_000_000 }])
    await this.settled()
    this.kill()
  }
}

/** A start that fails for its offsets; what it says. */
async function refused(rig: Rig): Promise<string> {
  await rig.start()
  await rig.until('it has failed', () => rig.count('failed') > 0)
  const failed = rig.facts.find((fact) => fact.type === 'failed')
  assert.equal(failed?.error.code, 'OFFSETS_MISSING')
  assert.equal(rig.count('running'), 0)
  return failed?.error.message ?? ''
}

describe('a start over stores in memory', () => {
  test('is refused where the group has lost its offsets: everything would count twice', async () => {
    const rig = new Rig()
    await rig.ran('in')
    rig.deleted = true
    assert.match(await refused(rig), /^the changelogs of sim hold committed state, but its group has no offsets/)
    rig.deleted = false
    await rig.start()
    await rig.runs()
    await rig.put('in', [{ key: 'a', value: 2, timestamp: 1_000_001 }])
    await rig.settled()
    assert.deepEqual(byKey(await rig.read('out')).a?.at(-1), 2)
  })

  test('goes on where outputs are written before their offsets: those may be missing for a crash alone', async () => {
    const rig = new Rig({ guarantee: 'at-least-once' })
    await rig.ran('in')
    rig.deleted = true
    await rig.start()
    await rig.runs()
  })

  test('goes on where no commit ever took effect, whatever was written', async () => {
    const rig = new Rig()
    rig.aborts = true
    await rig.start()
    await rig.runs()
    await rig.put('in', [{ key: 'a', value: 1, timestamp: 1_000_000 }])
    await rig.passes(500)
    rig.aborts = false
    await rig.start()
    await rig.runs()
    await rig.settled()
    assert.deepEqual(byKey(await rig.read('out')).a, [1])
  })
})

describe('an offset that a tool has set for a part of the group', () => {
  for (const offset of [0, 7]) {
    test(`is refused where a store holds what was read up to another one: ${offset}`, async () => {
      const rig = new Rig()
      await rig.ran('in')
      rig.moved = offset
      assert.match(
        await refused(rig),
        new RegExp(
          `^the offset ${offset} that the group sim has of in:1 .* a tool has set it\\. The store counts holds`,
        ),
      )
    })
  }

  for (const split of ['in-process', 'repartition-topics'] as const) {
    test(`is believed, and noted, where another program had the group before: ${split}`, async () => {
      const rig = new Rig({ split })
      await rig.broker.createTopics([{ topic: 'in', partitions: 2 }])
      const member = { groupId: 'sim', groupInstanceId: null, memberId: '', generationId: -1 }
      const left = [0, 1].map((partition) => ({ topic: 'in', partition, offset: 0, metadata: '' }))
      await rig.broker.commitOffsets(member, left)
      // Nothing comes to the other partition.
      await rig.ran('in')
      await rig.start()
      await rig.runs()
    })
  }

  test('is believed where no store holds what was read before', async () => {
    const rig = new Rig({}, (topology) => topology.stream('in').to('out'))
    await rig.ran('in')
    rig.moved = 7
    await rig.start()
    await rig.runs()
  })
})

describe('a topic of which the group has nothing any more, beside one of which it has', () => {
  const both = (topology: Topology): void => {
    const [one, other] = ['in', 'other'].map((topic) =>
      topology.stream(topic, { key: serdes.string, value: serdes.json<number>() }),
    )
    one
      ?.merge(other as NonNullable<typeof other>)
      .groupByKey()
      .count({ store: 'counts' })
      .toStream()
      .to('out')
  }

  for (const split of ['in-process', 'repartition-topics'] as const) {
    test(`is not begun with again over a store that holds what was read of it: ${split}`, async () => {
      const rig = new Rig({ split }, both)
      await rig.ran('in', 'other')
      rig.without = 'other'
      assert.match(await refused(rig), /^the group sim has no offset of the topic other any more, which it has read/)
    })

    test(`is known to be another one where it was made anew: ${split}`, async () => {
      const rig = new Rig({ split }, both)
      await rig.ran('in', 'other')
      await rig.broker.deleteTopics(['other'])
      await rig.broker.createTopics([{ topic: 'other', partitions: 2 }])
      rig.without = 'other'
      const message = await refused(rig)
      assert.match(
        message,
        /^the store counts holds what was read of a topic other that was deleted, and the group sim has no offset/,
      )
      assert.doesNotMatch(message, /-1/)
    })

    test(`is begun with where it was never read: ${split}`, async () => {
      const rig = new Rig({ split }, both)
      await rig.ran('in')
      await rig.start()
      await rig.runs()
      await rig.put('other', [{ key: 'a', value: 2, timestamp: 1_000_001 }])
      await rig.settled()
      assert.deepEqual(byKey(await rig.read('out')).a?.at(-1), 2)
    })
  }
})
