/** An application that was changed between two starts: what it makes of its stores is right, refused, or said. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { EngineSettings } from '../../src/engine/settings.ts'
import { defineApp, hopping, serdes, sliding, type Topology, tumbling } from '../../src/index.ts'
import { lastByKey } from './support/engine.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const row = { key: serdes.string, value: serdes.json<number>() }
const counted = (topology: Topology, store: string): void =>
  topology.stream('in', row).groupByKey().count({ store }).toStream().to('out')

/** Versions of one application, by name. */
const versions = {
  'stream of the table’s topic': (topology) => topology.stream('rows', row).to('seen'),
  table: (topology) => topology.table('rows', row).toStream().to('seen'),
  'table that is joined': (topology) => {
    const rows = topology.table('rows', row)
    rows.toStream().to('seen')
    topology
      .stream('in', row)
      .leftJoin(rows, (value, found) => `${value} ${found}`)
      .to('out')
  },
  'no store': (topology) => topology.stream('in', row).to('seen'),
  count: (topology) => counted(topology, 'kept'),
  'count, other name': (topology) => counted(topology, 'other'),
  sum: (topology) => {
    const adder = (sum: { sum: number }, value: number) => ({ sum: sum.sum + value })
    topology
      .stream('in', row)
      .groupByKey()
      .aggregate(() => ({ sum: 0 }), adder, { store: 'kept' })
      .toStream()
      .to('out')
  },
  'two counts': (topology) => {
    topology.stream('in', row).groupByKey().count().toStream().to('first')
    topology.stream('more', row).groupByKey().count().toStream().to('second')
  },
  'two counts, the other way round': (topology) => {
    topology.stream('more', row).groupByKey().count().toStream().to('second')
    topology.stream('in', row).groupByKey().count().toStream().to('first')
  },
  'two counts, one to another topic': (topology) => {
    topology.stream('in', row).groupByKey().count().toStream().to('first')
    topology.stream('more', row).groupByKey().count().toStream().to('third')
  },
  tumbling: (topology) => {
    topology.stream('in', row).groupByKey().windowedBy(tumbling('1m')).count({ store: 'kept' }).toStream().to('out')
  },
  hopping: (topology) => {
    const window = hopping('1m', '30s')
    topology.stream('in', row).groupByKey().windowedBy(window).count({ store: 'kept' }).toStream().to('out')
  },
  'count behind a topic': (topology) => {
    const together = topology.stream('in', row).selectKey(() => 'all', { key: serdes.string })
    together.repartition({ name: 'together' }).groupByKey().count({ store: 'kept' }).toStream().to('out')
  },
  sliding: (topology) => {
    topology.stream('in', row).groupByKey().windowedBy(sliding('1m')).count({ store: 'kept' }).toStream().to('out')
  },
} as const satisfies Record<string, (topology: Topology) => void>

type Version = keyof typeof versions

class Rig extends VirtualEngine {
  readonly #state: { version: Version }
  /** Of the starts to come. */
  readonly settings: { -readonly [K in keyof EngineSettings]?: EngineSettings[K] }

  constructor(own: Partial<EngineSettings> = {}) {
    const state: { version: Version } = { version: 'no store' }
    const settings = { durableStores: false, ...own }
    super({
      compile: () =>
        defineApp({ applicationId: 'sim', build: (topology) => versions[state.version](topology) }).compile(),
      settings,
    })
    this.#state = state
    this.settings = settings
  }

  /** A run of this version, which gets records, commits them and ends. Answers what it said. */
  async ran(version: Version, records: Readonly<Record<string, number>> = { in: 10 }): Promise<string[]> {
    this.#state.version = version
    await this.start()
    await this.runs()
    for (const [topic, n] of Object.entries(records)) await this.feed(topic, n)
    this.kill()
    return this.facts.flatMap((fact) => (fact.type === 'log' && fact.level === 'warn' ? [fact.message] : []))
  }

  async refused(version: Version): Promise<string> {
    this.#state.version = version
    await this.start()
    await this.until('it has failed', () => this.facts.some(({ type }) => type === 'failed'))
    const failed = this.facts.find((fact) => fact.type === 'failed')
    assert.equal(failed?.error.code, 'STATE_CHANGED')
    assert.equal(
      this.facts.some(({ type }) => type === 'running'),
      false,
    )
    return failed?.error.message ?? ''
  }

  async feed(topic: string, n: number): Promise<void> {
    await this.put(
      topic,
      Array.from({ length: n }, (_, i) => ({ key: `key-${i % 5}`, value: i, timestamp: 1_000_000 + i })),
    )
    await this.settled()
  }
}

describe('a table that keeps its rows only now', () => {
  for (const before of ['table', 'stream of the table’s topic'] as const) {
    test(`is refused where the topic was read before (as a ${before}), and the application as it was goes on`, async () => {
      const rig = new Rig()
      await rig.ran(before, { rows: 10 })
      const message = await rig.refused('table that is joined')
      assert.match(message, /the table of rows keeps its rows only now, in the store rows-STATE-STORE-0000000000/)
      assert.match(message, /Ways out: `topology\.optimization: all`.*begin anew.*lost-changelogs: accept/)
      await rig.ran(before, { rows: 5 })
      assert.equal((await rig.read('seen')).length, 15)
    })
  }

  test('begins empty where that is asked for, and says so once', async () => {
    const rig = new Rig({ lostChangelogs: 'accept' })
    await rig.ran('table', { rows: 10 })
    const said = await rig.ran('table that is joined', { in: 5 })
    assert.match(said.join('\n'), /the table of rows keeps its rows only now.*it would begin empty/)
    assert.deepEqual(await rig.ran('table that is joined', { rows: 5, in: 5 }), [])
    assert.equal(lastByKey(await rig.read('out'))['key-3'], '3 3')
  })

  test('is filled where nobody has read its topic', async () => {
    const rig = new Rig()
    await rig.ran('no store')
    await rig.put('rows', [{ key: 'key-3', value: 7, timestamp: 1_000_000 }])
    assert.deepEqual(await rig.ran('table that is joined', { in: 5 }), [])
    assert.equal(lastByKey(await rig.read('out'))['key-3'], '3 7')
  })
})

describe('a store whose windows begin at other times under the same name', () => {
  for (const [before, after, what] of [
    ['tumbling', 'hopping', /began every 60000 ms and would begin every 30000 ms: give it a new name/],
    ['hopping', 'tumbling', /began every 30000 ms and would begin every 60000 ms/],
    ['sliding', 'tumbling', /began at their records and would begin every 60000 ms/],
  ] as const) {
    test(`is refused (${before}, then ${after})`, async () => {
      const rig = new Rig()
      await rig.ran(before)
      assert.match(await rig.refused(after), what)
      assert.deepEqual(await rig.ran(before), [])
    })
  }
})

describe('a store that the application leaves out, or has anew', () => {
  test('is told at the first start with it, and not again', async () => {
    const rig = new Rig()
    assert.deepEqual(await rig.ran('count'), [])
    const said = await rig.ran('count, other name')
    assert.equal(said.length, 2)
    assert.match(said[0] ?? '', /the store other is new and begins empty: what was read of in before this start/)
    assert.match(said[1] ?? '', /the store kept is left out: its rows stay in sim-kept-changelog/)
    assert.deepEqual(await rig.ran('count, other name'), [])
  })

  test('is told when it comes back with the rows that it had, also behind a version without a store', async () => {
    const rig = new Rig()
    await rig.ran('count')
    await rig.ran('no store')
    const said = await rig.ran('count')
    assert.deepEqual(said.length, 1)
    assert.match(said[0] ?? '', /the store kept was left out for a while and is there again.*read meanwhile/)
    assert.deepEqual(await rig.ran('count'), [])
  })

  test('is refused where generated names change places, and told where one may be another operator’s', async () => {
    const rig = new Rig()
    await rig.ran('two counts', { in: 10, more: 10 })
    assert.deepEqual(await rig.ran('two counts'), [])
    const message = await rig.refused('two counts, the other way round')
    assert.match(message, /STATE-STORE-\d{10} is generated, and is now that of what was .*STATE-STORE-\d{10}/)
    const said = await rig.ran('two counts, one to another topic')
    assert.equal(said.length, 1)
    assert.match(said[0] ?? '', /STATE-STORE-\d{10} is generated.*\(now more → third\).*Name your stores/)
    assert.deepEqual(await rig.ran('two counts, one to another topic'), [])
  })

  test('is refused in another form, also behind a version without a store', async () => {
    const rig = new Rig()
    await rig.ran('count')
    await rig.ran('no store')
    assert.match(await rig.refused('sum'), /the values of the store kept change from number to object/)
  })
})

test('a topic that the application writes to itself is read from its first record on, whatever `offsets.reset` says', async () => {
  for (const offsetsReset of ['fail', 'latest'] as const) {
    const rig = new Rig({ split: 'repartition-topics' })
    await rig.ran('no store')
    rig.settings.offsetsReset = offsetsReset
    await rig.ran('count behind a topic', { in: 7 })
    assert.deepEqual(lastByKey(await rig.read('out')), { all: 7 })
  }
})
