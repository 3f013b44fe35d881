/** A table whose topic serves as its changelog: its rows have to be where the next start looks for them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { keySlot } from '../../src/base/hash.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { byKey, type In } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const partitions = 2
const text = { key: serdes.string, value: serdes.json<number>() }

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) =>
      topology
        .stream('asks', text)
        .leftJoin(topology.table('rows', text), (ask, row) => [ask, row ?? null])
        .to('out', { key: serdes.string, value: serdes.json() }),
  })

const engineOf = (optimize: boolean): VirtualEngine =>
  new VirtualEngine({ compile: () => application().compile({ optimize }), settings: { durableStores: false } })

const placeOf = (key: string): number => keySlot(Buffer.from(key)) % partitions
const well = (key: string, value: number, timestamp: number): In => ({ key, value, timestamp, partition: placeOf(key) })
const elsewhere = (key: string, value: number, timestamp: number): In => ({
  ...well(key, value, timestamp),
  partition: 1 - placeOf(key),
})

async function asked(engine: VirtualEngine, ask: number, timestamp: number): Promise<unknown> {
  await engine.put('asks', [well('a', ask, timestamp)])
  await engine.settled()
  return byKey(await engine.read('out')).a?.at(-1)
}

async function failure(engine: VirtualEngine): Promise<{ readonly code: string; readonly message: string }> {
  await engine.until('it has failed', () => engine.count('failed') > 0)
  const failed = engine.facts.find((fact) => fact.type === 'failed')
  assert.ok(failed)
  return failed.error
}

describe('a topic that serves as changelog', () => {
  test('brings the rows back', async () => {
    const engine = engineOf(true)
    for (let start = 0; start < 2; start++) {
      await engine.start()
      await engine.runs()
      if (start === 0) await engine.put('rows', [well('a', 7, 1000)])
      assert.deepEqual(await asked(engine, start, 2000 + start), [start, 7])
    }
  })

  test('is refused at a key that another partitioner put there: the next start would miss its row', async () => {
    const engine = engineOf(true)
    await engine.start()
    await engine.runs()
    await engine.put('rows', [well('a', 7, 1000), well('b', 8, 1001), elsewhere('a', 9, 1002)])
    const { code, message } = await failure(engine)
    assert.equal(code, 'CONFIG_INVALID')
    assert.match(message, /takes the topic rows as the changelog of a table/)
    assert.match(
      message,
      new RegExp(`key of rows/${1 - placeOf('a')} at offset \\d belongs into partition ${placeOf('a')}`),
    )
    assert.match(message, /Set `topology\.optimization: none`/)
    await engine.passes(2000)
    assert.equal(engine.count('failed'), 1)
    assert.deepEqual(await engine.read('out'), [])
  })

  test('is refused by a start where it has such keys from before', async () => {
    const engine = engineOf(true)
    await engine.put('asks', [well('a', 1, 1000)])
    await engine.put('rows', [elsewhere('a', 9, 1000)])
    const member = { groupId: 'sim', groupInstanceId: null, memberId: '', generationId: -1 }
    const read = [0, 1].map((partition) => ({ topic: 'rows', partition, offset: partition === placeOf('a') ? 0 : 1 }))
    await engine.broker.commitOffsets(
      member,
      read.map((each) => ({ ...each, metadata: '' })),
    )
    await engine.start()
    const { code, message } = await failure(engine)
    assert.equal(code, 'CONFIG_INVALID')
    assert.match(message, /at offset 0 belongs into partition/)
    assert.equal(engine.count('running'), 0)
  })

  test('may have its keys anywhere where the table has a changelog of its own', async () => {
    const engine = engineOf(false)
    for (let start = 0; start < 2; start++) {
      await engine.start()
      await engine.runs()
      if (start === 0) await engine.put('rows', [elsewhere('a', 7, 1000)])
      // Records of partitions with different numbers wait for one another nowhere.
      await engine.settled()
      assert.deepEqual(await asked(engine, start, 2000 + start), [start, 7])
    }
  })
})
