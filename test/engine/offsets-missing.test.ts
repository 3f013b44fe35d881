/** A group whose offsets are gone while its changelogs still hold what it committed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { CommittedOffset } from '../../src/broker/port.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { byKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const app = defineApp({
  applicationId: 'sim',
  build(topology) {
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .groupByKey()
      .count({ store: 'counts' })
      .toStream()
      .to('out')
  },
})

class Rig extends VirtualEngine {
  deleted = false
  aborts = false

  constructor(settings: Partial<EngineSettings> = {}) {
    super({
      compile: () => app.compile(),
      settings: { durableStores: false, ...settings },
      tamper: async (name, args, call) => {
        if (this.aborts && name === 'endTransaction') return call([args[0], args[1], false])
        const answer = await call(args)
        if (name !== 'committedOffsets' || !this.deleted) return answer
        return (answer as readonly CommittedOffset[]).map((each) => ({ ...each, offset: -1, metadata: '' }))
      },
    })
  }

  async ran(): Promise<void> {
    await this.start()
    await this.runs()
    await this.put('in', [{ key: 'a', value: 1, timestamp: 1_000_000 }])
    await this.settled()
    this.kill()
  }
}

describe('a start over stores in memory', () => {
  test('is refused where the group has lost its offsets: everything would count twice', async () => {
    const rig = new Rig()
    await rig.ran()
    rig.deleted = true
    await rig.start()
    await rig.until('it has failed', () => rig.count('failed') > 0)
    const failed = rig.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'OFFSETS_MISSING')
    assert.match(
      failed?.error.message ?? '',
      /^the changelogs of sim hold committed state, but its group has no offsets/,
    )
    assert.equal(rig.count('running'), 0)
    rig.deleted = false
    await rig.start()
    await rig.runs()
    await rig.put('in', [{ key: 'a', value: 2, timestamp: 1_000_001 }])
    await rig.settled()
    assert.deepEqual(byKey(await rig.read('out')).a?.at(-1), 2)
  })

  test('goes on where outputs are written before their offsets: those may be missing for a crash alone', async () => {
    const rig = new Rig({ guarantee: 'at-least-once' })
    await rig.ran()
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
