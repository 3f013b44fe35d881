/** Where records come from: topics, patterns, global tables, times of their own. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { BrokerError, type FetchRequest } from '../../src/broker/port.ts'
import { defineApp, serdes } from '../../src/index.ts'
import { eventually } from '../support/millrace.ts'
import { byKey, lastByKey, TestEngine } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const minute = 60_000
const start = 1_700_000_040_000

describe('sources on the running engine', () => {
  test('several topics feed one stream, with one state for a key', async (t) => {
    const engine = await TestEngine.start(t, 'many-shapes')
    await engine.put('sales-a', [
      { key: 'x', value: { amount: 1 } },
      { key: 'y', value: { amount: 10 } },
    ])
    await engine.put('sales-b', [
      { key: 'x', value: { amount: 2 } },
      { key: 'y', value: { amount: 20 } },
    ])
    await engine.idle()
    assert.deepEqual(lastByKey(await engine.read('both')), { x: 3, y: 30 })
  })

  test('a pattern takes in every topic that it fits, whole names only', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-pattern-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = { 'broker.bootstrap-servers': `embedded:${folder}`, 'consumer.metadata.max.age.ms': 100 }
    const first = await TestEngine.start(t, 'many-shapes', config)
    for (const topic of ['region-north', 'region-south', 'no-region-1']) {
      await first.put(topic, [{ key: topic, value: { amount: 1 } }])
    }
    await first.stop()
    const second = await TestEngine.start(t, 'many-shapes', config)
    await second.idle()
    const regions = byKey<{ from: string }>(await second.read('regions'))
    assert.deepEqual(Object.keys(regions).sort(), ['region-north', 'region-south'])
    assert.deepEqual(regions['region-north'], [{ amount: 1, from: 'region-north' }])
    // One that comes while the application runs is found as well.
    await second.put('region-east', [{ key: 'late', value: { amount: 2 } }])
    const late = async () => byKey<{ from: string }>(await second.read('regions')).late
    await eventually('the new topic is read', async () => (await late()) !== undefined)
    assert.deepEqual(await late(), [{ amount: 2, from: 'region-east' }])
  })

  test('a global table is there before the first record, and its later rows are seen', async (t) => {
    const engine = await TestEngine.start(t, 'many-shapes')
    await engine.put('countries', [{ key: 'ch', value: 'Switzerland' }])
    await engine.put('orders', [{ key: 'o1', value: { amount: 5, country: 'ch' } }])
    await eventually('the row is joined', async () => {
      if ((await engine.read('named')).length > 0) return true
      await engine.put('orders', [{ key: 'o1', value: { amount: 5, country: 'ch' } }])
      return false
    })
    await engine.put('countries', [{ key: 'no', value: 'Norway' }])
    await eventually('the new row is joined', async () => {
      await engine.put('orders', [{ key: 'o2', value: { amount: 7, country: 'no' } }])
      return (await engine.read('named')).some(({ value }) => value === 'Norway: 7')
    })
  })

  test('a timestamp function decides windows, watermarks and what is dropped', async (t) => {
    const engine = await TestEngine.start(t, 'own-time', { 'broker.embedded.partitions': 1 })
    const at = (ms: number): object => ({ amount: 1, at: start + ms })
    await engine.put('timed', [
      { key: 'a', value: at(1000), timestamp: 5 },
      { key: 'a', value: at(30_000), timestamp: 4 },
      { key: 'a', value: { amount: 1 }, timestamp: 3 },
      { key: 'a', value: at(minute + 20_000), timestamp: 2 },
      // Late by 20 s: its window was closed by the record before.
      { key: 'a', value: at(2000), timestamp: 1 },
      { key: 'a', value: at(3 * minute), timestamp: 0 },
    ])
    await engine.idle()
    assert.deepEqual(byKey(await engine.read('minutes')).a, [
      [start, 2],
      [start + minute, 1],
    ])
    assert.equal(engine.dropped('negative_timestamp'), 1)
    assert.equal(engine.dropped('late'), 1)
  })

  for (const [policy, outcome] of [
    ['fail', 'fails the run with its sentence'],
    ['dead-letter', 'makes a dead letter of the record'],
  ] as const) {
    test(`a timestamp function that throws ${outcome} (${policy})`, async (t) => {
      const engine = await TestEngine.start(t, 'own-time', {
        'broker.embedded.partitions': 1,
        'errors.processing': policy,
      })
      await engine.put('timed', [
        { key: 'a', value: { amount: 1, at: start } },
        { key: 'a', value: { amount: -3 } },
        { key: 'a', value: { amount: 1, at: start + 1 } },
      ])
      if (policy === 'fail') {
        await engine.reaches('FAILED')
        assert.match(engine.runtime.view.state().failure?.message ?? '', /timed\/0 at offset 1: no time for -3/)
      } else {
        await engine.idle()
        const [letter] = await engine.read('own-time-dead-letters')
        assert.deepEqual(letter?.value, { amount: -3 })
        assert.equal(letter?.headers['__streams.errors.offset'], '1')
      }
    })
  }
})

const named = defineApp({
  applicationId: 'sim',
  build(topology) {
    const names = topology.globalTable('names', { key: serdes.string, value: serdes.json<string>() })
    topology
      .stream('in', { key: serdes.string, value: serdes.json<number>() })
      .leftJoin(names, (n, name) => `${name ?? 'nobody'} ${n}`, { on: (_, key) => key })
      .to('out', { value: serdes.json<string>() })
  },
})

/** An engine whose global table can be cut off from its topic, which is small and keeps little. */
class NamedRig extends VirtualEngine {
  isCutOff = false
  /** Where it is cut off: the broker answers for other topics alone, instead of not at all. */
  isLeftOut = false

  constructor() {
    super({
      compile: () => named.compile(),
      tamper: async (name, args, call) => {
        const isOfNames = name === 'fetch' && (args[0] as FetchRequest).partitions[0]?.topic === 'names'
        const answer = await call(args)
        if (!isOfNames || !this.isCutOff) return answer
        if (this.isLeftOut) return []
        throw new BrokerError('UNREACHABLE', 'cut off')
      },
    })
  }

  async makeTopic(): Promise<void> {
    const config = { 'segment.bytes': '200', 'retention.bytes': '400' }
    await this.broker.createTopics([{ topic: 'names', partitions: 1, config }])
  }

  async begins(): Promise<void> {
    await this.makeTopic()
    await this.name('old')
    await this.start()
    await this.runs()
    await this.told(1, 'old 1')
  }

  async name(value: string | null, key = 'a'): Promise<void> {
    await this.put('names', [{ key, value }])
  }

  async told(n: number, expected: string): Promise<void> {
    await this.put('in', [{ key: 'a', value: n }])
    await this.settled()
    assert.equal(byKey<string>(await this.read('out')).a?.at(-1), expected)
  }

  async restarts(): Promise<string> {
    await this.until('it is restarted', () => this.count('restarting') > 0)
    const runs = this.count('running')
    await this.until('it runs again', () => this.count('running') > runs)
    return this.facts.flatMap((fact) => (fact.type === 'restarting' ? [fact.cause] : [])).join()
  }
}

describe('a global table whose topic does not go on where it was read', () => {
  test('fails the run where the topic is gone', async () => {
    const rig = new NamedRig()
    await rig.begins()
    await rig.broker.deleteTopics(['names'])
    await rig.until('it has failed', () => rig.count('failed') > 0)
    const failed = rig.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'TOPIC_MISSING')
    assert.equal(failed?.error.message, 'names:0 cannot be fetched, the broker says UNKNOWN_TOPIC_OR_PARTITION')
  })

  for (const [left, how] of [
    [false, 'while the broker was out of reach'],
    [true, 'while the broker did not answer for it'],
  ] as const) {
    test(`is loaded anew where the topic was made anew ${how}, and has as much as before`, async () => {
      const rig = new NamedRig()
      await rig.begins()
      rig.isLeftOut = left
      rig.isCutOff = true
      await rig.passes(2000)
      await rig.broker.deleteTopics(['names'])
      await rig.makeTopic()
      await rig.name('new')
      await rig.name('another', 'b')
      await rig.passes(2000)
      rig.isCutOff = false
      assert.equal(
        await rig.restarts(),
        'the global table of names is loaded anew: the topic was deleted and made anew',
      )
      await rig.told(2, 'new 2')
    })
  }

  test('is loaded anew where what it had still to read was deleted', async () => {
    const rig = new NamedRig()
    await rig.begins()
    rig.isCutOff = true
    await rig.passes(2000)
    await rig.name(null)
    for (let i = 0; i < 20; i++) await rig.name('x'.repeat(150), `k${i}`)
    rig.isCutOff = false
    assert.equal(
      await rig.restarts(),
      'the global table of names is loaded anew: offset 1 of names:0 no longer exists at the broker',
    )
    await rig.told(2, 'nobody 2')
    assert.equal(rig.count('restarting'), 1)
  })
})
