/** Tables that tell each changed row once per commit: what is told, when, and where that is refused. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'node:test'
import {
  compile,
  type CompileOptions,
  defineApp,
  describeTopology,
  keyValueStore,
  serdes,
  session,
  type StoreDeclaration,
  type Table,
  type Topology,
  tumbling,
} from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'
import { driverOf, feed, number, numbers, perCommit, told } from './per-commit.ts'

for (const lanes of [1, 2, 3]) {
  for (const commits of ['each', 'interval'] as const) {
    test(`one call takes in all that was fed, also where tables hold it up until a commit: ${lanes} lanes, commits ${commits}`, async (t) => {
      const records = 400
      const app = defineApp({
        applicationId: 'per-commit-lanes',
        build(topology) {
          const text = { key: serdes.string, value: serdes.string }
          const users = topology.stream('in', { ...text, watermark: { maxOutOfOrderness: '5s' } }).groupBy(String)
          users
            .count({ ...perCommit, store: 'counts' })
            .toStream()
            .to('out')
          users
            .windowedBy(tumbling('10s'), { emit: 'per-commit' })
            .count()
            .toStream({ key: (_, { key }) => key })
            .groupByKey()
            .count()
        },
      })
      const driver = new TopologyTestDriver(app, { lanes, partitions: 4, commits })
      t.after(() => driver.close())
      const fed = Array.from({ length: records }, (_, i) => ({
        key: `k${(i * 7) % 40}`,
        value: `u${i % 5}`,
        timestamp: 100_000 + i * 70 - ((i * 977) % 3000),
      }))
      await driver.input('in').pipeAll(fed)
      await driver.commit()
      const counts = driver
        .output<string, number>('out')
        .readAll()
        .reduce((last, { key, value }) => last.set(key, value), new Map<string | null, number | null>())
      assert.deepEqual([...counts.values()], Array(5).fill(records / 5))
    })
  }
}

describe('a table told once per commit', () => {
  test('tells each changed row with its newest value, in the order in which they changed first', async () => {
    const driver = await driverOf((topology) => numbers(topology).groupByKey().count(perCommit).toStream().to('out'))
    await feed(driver, ['b', 1, 10], ['a', 1, 20], ['b', 1, 30], ['b', 1, 25])
    assert.deepEqual(told(driver), [])
    await driver.commit()
    assert.deepEqual(told(driver), ['b 3 @30', 'a 1 @20'])
    await driver.commit()
    assert.deepEqual(told(driver), [])
    await feed(driver, ['a', 1, 40])
    await driver.commit()
    assert.deepEqual(told(driver), ['a 2 @40'])
  })

  test('says nothing of a row that came and went between two commits, and tells a deletion with its time', async () => {
    const driver = await driverOf((topology) =>
      topology
        .table<string, number>('in', { ...number, ...perCommit })
        .toStream()
        .to('out'),
    )
    await feed(driver, ['a', 1, 10], ['b', 2, 20], ['a', null, 30])
    await driver.commit()
    assert.deepEqual(told(driver), ['b 2 @20'])
    await feed(driver, ['b', 3, 40], ['b', null, 50])
    await driver.commit()
    assert.deepEqual(told(driver), ['b null @50'])
  })

  test('takes the old value of the last commit out of the next table', async () => {
    const driver = await driverOf((topology) => {
      const table = topology.table<string, number>('in', { ...number, ...perCommit })
      table
        .groupBy((value) => ['all', value] as const)
        .aggregate(
          () => '',
          (text, value) => `${text}+${value}`,
          (text, value) => `${text}-${value}`,
          perCommit,
        )
        .toStream()
        .to('out')
    })
    await feed(driver, ['a', 1, 10], ['a', 2, 20], ['b', 5, 30])
    await driver.commit()
    assert.deepEqual(told(driver), ['all "+2+5" @30'])
    await feed(driver, ['a', 3, 40], ['a', 4, 50])
    await driver.commit()
    assert.deepEqual(told(driver), ['all "+2+5-2+4" @50'])
  })

  test('carries the headers of the last update, and no others', async () => {
    const driver = await driverOf((topology) => numbers(topology).groupByKey().count(perCommit).toStream().to('out'))
    const headers = [['trace', Buffer.from('x')]] as const
    const records = [
      { key: 'a', value: 1, timestamp: 1 },
      { key: 'a', value: 1, timestamp: 2, headers },
      { key: 'b', value: 1, timestamp: 3, headers },
      { key: 'b', value: 1, timestamp: 4 },
    ]
    await driver.input('in').pipeAll(records)
    await driver.commit()
    const found = driver.output('out').readAll()
    assert.deepEqual(
      found.map(({ key, headers: own }) => [key, own?.map(([name]) => name)]),
      [
        ['a', ['trace']],
        ['b', []],
      ],
    )
  })

  test('closes no window above what is still to be told, in its own task and behind a change of lanes', async () => {
    for (const lanes of [1, 2]) {
      const driver = await driverOf(
        (topology) => {
          const counts = numbers(topology).groupByKey().count(perCommit).toStream()
          const closing = { emit: 'on-close' } as const
          const largest = (a: number, b: number): number => Math.max(a, b)
          counts.groupByKey().windowedBy(tumbling('10s'), closing).reduce(largest).toStream().to('here')
          counts
            .groupBy(() => 'all')
            .windowedBy(tumbling('10s'), closing)
            .reduce(largest)
            .toStream()
            .to('there')
        },
        { lanes },
      )
      await feed(driver, ['a', 1, 1000], ['a', 1, 2000], ['b', 1, 9000], ['b', 1, 60_000])
      assert.deepEqual([...told(driver, 'here'), ...told(driver, 'there')], [])
      await driver.commit()
      await feed(driver, ['a', 1, 90_000])
      await driver.commit()
      assert.deepEqual(told(driver, 'here'), [
        '{"key":"a","start":0,"end":10000} 2 @2000',
        '{"key":"b","start":60000,"end":70000} 2 @60000',
      ])
      assert.deepEqual(told(driver, 'there'), [
        '{"key":"all","start":0,"end":10000} 2 @2000',
        '{"key":"all","start":60000,"end":70000} 2 @60000',
      ])
      assert.deepEqual(
        driver.dropped().filter(({ reason }) => reason === 'late'),
        [],
      )
      driver.close()
    }
  })

  test('folds windows and sessions', async () => {
    const driver = await driverOf((topology) => {
      const grouped = numbers(topology).groupByKey()
      grouped.windowedBy(tumbling('10s'), perCommit).count().toStream().to('windows')
      grouped.windowedBy(session('5s')).count(perCommit).toStream().to('sessions')
      grouped.windowedBy(tumbling('10s'), perCommit).count().suppress({ until: 'window-closes' }).toStream().to('final')
    })
    await feed(driver, ['a', 1, 1000], ['a', 1, 3000], ['a', 1, 12_000])
    await driver.commit()
    assert.deepEqual(told(driver, 'windows'), [
      '{"key":"a","start":0,"end":10000} 2 @3000',
      '{"key":"a","start":10000,"end":20000} 1 @12000',
    ])
    assert.deepEqual(told(driver, 'sessions'), [
      '{"key":"a","start":1000,"end":3000} 2 @3000',
      '{"key":"a","start":12000,"end":12000} 1 @12000',
    ])
    assert.equal(told(driver, 'final')[0], '{"key":"a","start":0,"end":10000} 2 @3000')
    await feed(driver, ['a', 1, 14_000])
    await driver.commit()
    assert.deepEqual(told(driver, 'sessions'), [
      '{"key":"a","start":12000,"end":12000} null @12000',
      '{"key":"a","start":12000,"end":14000} 2 @14000',
    ])
  })

  test('lets asynchronous functions of different keys below it go side by side, and the commit wait for them', async () => {
    let [atWork, most] = [0, 0]
    const driver = await driverOf((topology) =>
      numbers(topology)
        .groupByKey()
        .count(perCommit)
        .toStream()
        .mapValues(async (count) => {
          most = Math.max(most, ++atWork)
          await sleep(2)
          atWork--
          return count
        })
        .to('out'),
    )
    await feed(driver, ['a', 1, 1], ['b', 1, 2], ['a', 1, 3])
    await driver.commit()
    assert.equal(most, 2)
    assert.deepEqual(told(driver).sort(), ['a 2 @3', 'b 1 @2'])
  })

  test('is what an application says of all its tables, save those that say otherwise', async () => {
    const driver = await driverOf(
      (topology) => {
        const grouped = numbers(topology).groupByKey()
        grouped.count().toStream().to('out')
        grouped.count({ emit: 'on-update' }).toStream().to('each')
      },
      { config: { 'topology.emit': 'per-commit' } },
    )
    await feed(driver, ['a', 1, 1], ['a', 1, 2])
    await driver.commit()
    assert.deepEqual([told(driver), told(driver, 'each')], [['a 2 @2'], ['a 1 @1', 'a 2 @2']])
  })

  test('asks for a commit when too many rows are still to be told', async () => {
    const driver = await driverOf((topology) => numbers(topology).groupByKey().count(perCommit).toStream().to('out'), {
      config: { 'engine.emit.max-dirty-rows': 3 },
    })
    await feed(driver, ['a', 1, 1], ['b', 1, 2], ['c', 1, 3])
    assert.deepEqual(told(driver), [])
    await feed(driver, ['d', 1, 4])
    assert.equal(told(driver).length, 4)
  })

  test('tells after a restart what was not committed', async () => {
    const driver = await driverOf((topology) => numbers(topology).groupByKey().count(perCommit).toStream().to('out'))
    await feed(driver, ['a', 1, 1])
    await driver.commit()
    await feed(driver, ['a', 1, 2], ['b', 1, 3])
    await driver.restart()
    await driver.commit()
    assert.deepEqual(told(driver), ['a 1 @1', 'a 2 @2', 'b 1 @3'])
  })
})

describe('where rows cannot be told once per commit', () => {
  const built = (build: (topology: Topology) => void, options?: CompileOptions) => compile(build, options)
  const folding = (build: (topology: Topology) => void): string[] => [...built(build, perCommit).perCommit.keys()]
  const refused = (build: (topology: Topology) => void, sentence: RegExp): void => {
    assert.throws(() => built(build), { code: 'TOPOLOGY_INVALID', message: sentence })
  }
  const table = (topology: Topology, topic: string, options: object = {}): Table<string, number> =>
    topology.table<string, number>(topic, { ...number, store: topic, ...options })

  test('an operator that was asked to is refused with a sentence, one of all tells every update', () => {
    const joined = (options: object) => (topology: Topology) => {
      table(topology, 'left', options)
        .join(table(topology, 'right'), (a, b) => a + b, { store: 'both' })
        .toStream()
        .to('out')
    }
    refused(joined(perCommit), /the table join .* reads its rows as they are told/)
    assert.deepEqual(folding(joined({})), ['both'])
    const written = (options: object) => (topology: Topology) => {
      const kept = table(topology, 'kept', options)
      const own = { stores: ['kept'] }
      kept
        .toStream()
        .process<string, number>(() => () => undefined, own)
        .to('out')
    }
    refused(written(perCommit), /may write to its store/)
    assert.deepEqual(folding(written({})), [])
  })

  test('records that were not folded must not come by the same way', () => {
    const mixed = (options: object) => (topology: Topology) => {
      const counts = numbers(topology)
        .groupByKey()
        .count({ store: 'counts', ...options })
        .toStream()
      counts
        .merge(numbers(topology))
        .groupBy(() => 'all')
        .count({ store: 'all' })
        .toStream()
        .to('out')
    }
    refused(mixed(perCommit), /which other records reach as well/)
    assert.deepEqual(folding(mixed({})), ['all'])
  })

  test('a store that forgets, and tables that lead to one', () => {
    const forgets = (options: object) => (topology: Topology) => {
      numbers(topology)
        .groupByKey()
        .count({ store: { name: 'counts', ttl: '10s' }, ...options })
        .toStream()
        .to('out')
    }
    refused(forgets(perCommit), /its store forgets rows/)
    assert.deepEqual(folding(forgets({})), [])
    const leads = (options: object) => (topology: Topology) => {
      numbers(topology)
        .groupByKey()
        .count({ store: 'counts', ...options })
        .toStream()
        .groupBy((count) => `${count}`)
        .count({ store: { name: 'by-count', ttl: '10s' } })
        .toStream()
        .to('out')
    }
    refused(leads(perCommit), /the store 'by-count', which it reaches, forgets by the time of each record/)
    assert.deepEqual(folding(leads({})), [])
  })

  test('an operator that keeps no rows, versions, and windows told when they close', () => {
    refused((topology) => {
      table(topology, 'in')
        .filter((value) => value > 1, perCommit)
        .toStream()
        .to('out')
    }, /keeps no rows/)
    const versions = { name: 'versions', type: 'versioned', historyRetention: '1h' } as const
    refused((topology) => {
      topology
        .table('in', { store: versions, ...perCommit })
        .toStream()
        .to('out')
    }, /keeps versions/)
    refused((topology) => {
      numbers(topology)
        .groupByKey()
        .windowedBy(tumbling('1s'), { emit: 'on-close' })
        .count(perCommit)
        .toStream()
        .to('out')
    }, /tells its windows when they close/)
  })

  test('descriptions say which tables do', () => {
    const described = describeTopology(
      built((topology) => {
        const store = keyValueStore<string, number>('own', { key: serdes.string, value: serdes.json<number>() })
        topology.addStore(store as StoreDeclaration<unknown>)
        numbers(topology)
          .groupByKey()
          .count({ name: 'folded', ...perCommit })
          .toStream()
          .to('out')
        numbers(topology).groupByKey().count({ name: 'each' }).toStream().to('out')
      }),
    )
    const nodes = described.subtopologies.flatMap((each) => each.nodes)
    assert.deepEqual(
      nodes.filter(({ emit }) => emit !== undefined).map(({ name }) => name),
      ['folded'],
    )
  })
})
