import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, hopping, serdes, type Topology, tumbling, type Windows } from '../../../src/index.ts'
import { type Difference, diffTopologies, topologyState } from '../../../src/topology/changes/diff.ts'

function differences(before: (topology: Topology) => void, after: (topology: Topology) => void): Difference[] {
  const state = (build: (topology: Topology) => void) =>
    topologyState(defineApp({ applicationId: 'a', build }).compile())
  return diffTopologies(state(before), state(after))
}

const counts = (topology: Topology, store?: string): void => {
  topology
    .stream<string, number>('in')
    .groupByKey()
    .count(store === undefined ? {} : { store })
}

describe('the difference of two topologies', () => {
  test('is empty where nothing of the state changes', () => {
    const after = (topology: Topology): void => {
      topology
        .stream<string, number>('in')
        .filter(() => true)
        .groupByKey()
        .count({ store: 'n' })
        .toStream()
        .to('out')
    }
    assert.deepEqual(
      differences((topology) => counts(topology, 'n'), after),
      [],
    )
  })

  test('breaks nothing where a suppression keeps how far quiet has let out, and did not before', () => {
    const build = (topology: Topology): void => {
      topology
        .stream<string, number>('in')
        .groupByKey()
        .windowedBy(tumbling('1m', { closeAfterIdle: '1m' }))
        .count()
        .suppress({ until: 'window-closes' })
    }
    const after = topologyState(defineApp({ applicationId: 'a', build }).compile())
    const before = { ...after, stores: after.stores.filter(({ name }) => !name.endsWith('-closed')) }
    assert.equal(after.stores.length - before.stores.length, 1)
    assert.deepEqual(
      diffTopologies(before, after).map(({ level }) => level),
      ['check'],
    )
  })

  test('breaks where a generated store name moves with an operator before it', () => {
    const after = (topology: Topology): void => {
      topology
        .stream<string, number>('in')
        .filter(() => true)
        .groupByKey()
        .count()
    }
    const found = differences((topology) => counts(topology), after)
    assert.deepEqual(
      found.map(({ level }) => level),
      ['breaks'],
    )
    assert.match(
      found[0]?.what ?? '',
      /AGGREGATE-STATE-STORE-0000000001 seems to have become .*0000000002: .* explicitly/,
    )
  })

  test('breaks where a table keeps its rows only now, and its topic was read before', () => {
    const table = (topology: Topology) => topology.table<string, number>('rows').toStream().to('seen')
    const stream = (topology: Topology) => topology.stream<string, number>('rows').to('seen')
    const other = (topology: Topology) => topology.stream<string, number>('in').to('seen')
    const joined = (topology: Topology) => {
      const rows = topology.table<string, number>('rows')
      topology.stream<string, number>('in').join(rows, (value, row) => value + row)
    }
    for (const before of [table, stream]) {
      const [first] = differences(before, joined)
      assert.equal(first?.level, 'breaks')
      assert.match(first?.what ?? '', /the table of rows keeps its rows only now, in the store rows-STATE-STORE/)
    }
    assert.equal(differences(other, joined)[0]?.level, 'check')
  })

  test('breaks where generated names change places, and asks to look where one stands among other topics', () => {
    const two =
      (...topics: ReadonlyArray<readonly [string, string]>) =>
      (topology: Topology) => {
        for (const [from, to] of topics) topology.stream<string, number>(from).groupByKey().count().toStream().to(to)
      }
    const before = two(['in', 'a'], ['more', 'b'])
    const around = (after: (topology: Topology) => void) =>
      differences(before, after).filter(({ what }) => what.includes('generated'))
    assert.deepEqual(around(before), [])
    const places = around(two(['more', 'b'], ['in', 'a']))
    assert.deepEqual(
      places.map(({ level }) => level),
      ['breaks', 'breaks'],
    )
    assert.match(places[0]?.what ?? '', /0000000001 is generated, and is now that of what was .*0000000006/)
    const [elsewhere, ...none] = around(two(['in', 'a'], ['more', 'c']))
    assert.deepEqual([elsewhere?.level, none], ['check', []])
    assert.match(elsewhere?.what ?? '', /is generated.* from more → b to more → c: .*name your stores/)
  })

  test('breaks where windows of one size begin at other times', () => {
    const windowed = (window: Windows<'time'>) => (topology: Topology) => {
      topology.stream<string, number>('in').groupByKey().windowedBy(window).count({ store: 'n' })
    }
    const [first] = differences(windowed(tumbling('1m')), windowed(hopping('1m', '20s')))
    assert.equal(first?.level, 'breaks')
    assert.match(first?.what ?? '', /the windows of the store n began every 60000 ms and would begin every 20000 ms/)
    assert.deepEqual(differences(windowed(tumbling('1m')), windowed(hopping('1m', '1m'))), [])
  })

  test('breaks where a store keeps its name and not its form', () => {
    const windowed = (size: string) => (topology: Topology) => {
      topology.stream<string, number>('in').groupByKey().windowedBy(tumbling(size)).count({ store: 'n' })
    }
    const levels = (found: readonly Difference[]) => found.filter(({ level }) => level === 'breaks')
    assert.match(levels(differences(windowed('1m'), windowed('2m')))[0]?.what ?? '', /window size .* 60000 to 120000/)
    assert.match(
      levels(differences((topology) => counts(topology, 'n'), windowed('1m')))[0]?.what ?? '',
      /the kind of the store n changes from key-value to window/,
    )
    const keyed = (key: 'string' | 'number') => (topology: Topology) => {
      if (key === 'string') topology.table('in', { key: serdes.string, store: 'rows' })
      else topology.table('in', { key: serdes.number, store: 'rows' })
    }
    const found = differences(keyed('string'), keyed('number'))
    assert.match(levels(found)[0]?.what ?? '', /the key serde of the store rows changes/)
    assert.ok(found.some(({ level, what }) => level === 'check' && /key serde of the source in/.test(what)))
  })

  test('breaks where a table whose topic was its changelog gets one of its own', () => {
    const state = (table: object) =>
      topologyState(
        defineApp({
          applicationId: 'a',
          build: (topology) => void topology.table<string, number>('rows', { ...table }),
        }).compile({ optimize: true }),
      )
    const plain = state({ store: 'kept' })
    const timed = state({ store: 'kept', timestamp: (row: number) => row })
    const breaks = (before: typeof plain, after: typeof plain): string =>
      diffTopologies(before, after)
        .filter(({ level }) => level === 'breaks')
        .map(({ what }) => what)
        .join('\n')
    assert.match(breaks(plain, timed), /^the store kept had the topic rows for its changelog .* begin anew/)
    assert.match(breaks(timed, plain), /^the changelog topic of the store kept changes from none to rows/)
  })

  test('tells of stores and sources that come and go, and of topics that decide on partitions', () => {
    const joined = (topology: Topology): void => {
      const other = topology.table<string, number>('rows', { store: 'rows' })
      topology
        .stream<string, number>('in')
        .join(other, (left, right) => left + right)
        .groupByKey()
        .count({ store: 'n' })
    }
    const found = differences((topology) => counts(topology, 'n'), joined)
    assert.deepEqual(
      found.filter(({ level }) => level === 'breaks'),
      [],
    )
    const text = found.map(({ level, what }) => `${level} ${what}`).join('\n')
    assert.match(text, /check the store rows is new and begins empty/)
    assert.match(text, /check the store n now goes with the topics in, rows instead of in/)
    assert.match(text, /note the source rows is new/)
    const back = differences(joined, (topology) => counts(topology, 'n'))
    assert.ok(back.some(({ level, what }) => level === 'note' && /the store rows is gone/.test(what)))
    assert.ok(back.some(({ level, what }) => level === 'note' && /the source rows is gone/.test(what)))
  })

  test('says that a repartition topic must be drained before it goes', () => {
    const rekeyed = (topology: Topology): void => {
      topology
        .stream<string, number>('in')
        .groupBy((value) => `${value}`, { name: 'by-value' })
        .count({ store: 'n' })
    }
    const found = differences(rekeyed, (topology) => counts(topology, 'n'))
    assert.ok(found.some(({ level, what }) => level === 'check' && /by-value-repartition is gone/.test(what)))
  })
})
