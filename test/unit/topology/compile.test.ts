import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  compile,
  describeText,
  describeTopology,
  EngineError,
  keyValueStore,
  serdes,
  type Topology,
  tumbling,
} from '../../../src/index.ts'
import { holdingCircles } from '../../../src/topology/levels/held-back.ts'
import { planOf } from '../../../src/topology/plan.ts'

const refused = (build: (topology: Topology) => void, sentence: RegExp): void => {
  assert.throws(
    () => compile(build),
    (error) => EngineError.is(error) && error.code === 'TOPOLOGY_INVALID' && sentence.test(error.message),
  )
}

describe('circles that hold records back', () => {
  const circles = (build: (topology: Topology) => void) =>
    holdingCircles(compile(build)).map(({ topic, window }) => [topic, /JOIN/.test(window)])
  const joined = (held: boolean) => (topology: Topology) => {
    const source = topology.stream('in')
    const results = held
      ? source
          .groupByKey()
          .windowedBy(tumbling('10s'), { emit: 'on-close' })
          .count()
          .toStream({ key: (_, { key }) => key })
      : source.map((value, key) => [key, value])
    source
      .join<unknown, unknown>(results.repartition({ name: 'again' }), (a, b) => [a, b], { within: '10s', grace: '1h' })
      .to('out')
  }

  test('are known where the input joins what its windows have told', () => {
    assert.deepEqual(circles(joined(true)), [['again-repartition', true]])
  })

  test('are none where nothing is held back, nothing comes round, or nothing is late there', () => {
    assert.deepEqual(circles(joined(false)), [])
    assert.deepEqual(
      circles((topology) =>
        topology
          .stream('in')
          .groupBy(() => 'all')
          .windowedBy(tumbling('10s'), { emit: 'on-close' })
          .count()
          .toStream({ key: (_, { key }) => key })
          .groupBy(() => 'again')
          .windowedBy(tumbling('20s'))
          .count()
          .toStream()
          .to('out'),
      ),
      [],
    )
  })
})

describe('what the compiler makes of a topology', () => {
  test('a re-keyed aggregate opens a boundary into a sub-topology one level deeper', () => {
    const compiled = compile((topology) =>
      topology
        .stream('in')
        .groupBy((value) => String(value))
        .count({ store: 'counts' })
        .toStream()
        .to('out'),
    )
    assert.deepEqual(
      compiled.subtopologies.map(({ id, level, stores, global }) => ({ id, level, stores, global })),
      [
        { id: 0, level: 0, stores: [], global: false },
        { id: 1, level: 1, stores: ['counts'], global: false },
      ],
    )
    assert.equal(compiled.levels, 2)
    const [boundary] = compiled.boundaries
    assert.equal(boundary?.name, 'counts')
    assert.equal(boundary?.topic, 'counts-repartition')
    assert.deepEqual([boundary?.fromSubtopology, boundary?.toSubtopology], [0, 1])
    assert.equal(compiled.sources[boundary?.toSource ?? -1]?.boundary, 0)
  })

  test('grouping by the key that records have opens none', () => {
    const compiled = compile((topology) => topology.stream('in').mapValues(String).groupByKey().count())
    assert.equal(compiled.boundaries.length, 0)
    assert.equal(compiled.levels, 1)
  })

  test('sub-topologies that feed one another have sources of rising level', () => {
    const compiled = compile((topology) => {
      const right = topology.table('right')
      topology.table('left').join(right, (l, r) => [l, r], { on: (value) => String(value) })
    })
    assert.deepEqual(
      compiled.sources.map(({ kind, level }) => [kind, level]),
      [
        // The right side takes its records where the subscriptions of the left side come in.
        ['topics', 1],
        ['topics', 0],
        ['boundary', 1],
        ['boundary', 2],
      ],
    )
    assert.deepEqual(
      compiled.boundaries.map(({ fromSubtopology, toSubtopology }) => [fromSubtopology, toSubtopology]),
      [
        [1, 0],
        [0, 1],
      ],
    )
  })

  test('a stream re-keyed and joined with the same table again comes back to its own sub-topology', () => {
    const compiled = compile((topology) => {
      const table = topology.table('table')
      const once = topology.stream('in').join(table, (l, r) => [l, r])
      once
        .selectKey((value) => String(value))
        .join(table, (l, r) => [l, r])
        .to('out')
    })
    assert.equal(compiled.subtopologies.length, 1)
    assert.equal(compiled.levels, 2)
  })

  test('values that nobody looks at or passes on do not come to the lanes', () => {
    const carries = (build: (topology: Topology) => void): boolean[] =>
      compile(build).sources.map(({ carriesValue }) => carriesValue)
    const byKey = (t: Topology) => t.stream('in').groupByKey()
    assert.deepEqual(
      carries((t) => byKey(t).count()),
      [false],
    )
    assert.deepEqual(
      carries((t) => byKey(t).windowedBy(tumbling('1s')).count()),
      [false],
    )
    assert.deepEqual(
      carries((t) => t.stream('in').to('out')),
      [true],
    )
    const regrouped = (t: Topology) => t.stream('in').groupBy((value) => String(value), { key: serdes.string })
    assert.deepEqual(
      carries((t) => regrouped(t).count()),
      [true, false],
    )
    assert.deepEqual(
      carries((t) => regrouped(t).reduce((a) => a)),
      [true, true],
    )
    const merged = (t: Topology) => t.stream('in').selectKey((value) => String(value))
    assert.deepEqual(
      carries((t) => {
        const stream = merged(t).repartition()
        stream.groupByKey().count()
        stream.to('out')
      }),
      [true, true],
    )
  })

  test('values that nobody looks at are not decoded', () => {
    const reads = (build: (topology: Topology) => void): boolean | undefined => compile(build).sources[0]?.readsValue
    assert.equal(
      reads((t) => t.stream('in').groupByKey().count()),
      false,
    )
    assert.equal(
      reads((t) => t.stream('in').to('out')),
      false,
    )
    assert.equal(
      reads((t) =>
        t
          .stream('in')
          .filter(() => true)
          .to('out'),
      ),
      true,
    )
    assert.equal(
      reads((t) => t.stream('in').to('out', { value: serdes.json<unknown>() })),
      true,
    )
    assert.equal(
      reads((t) =>
        t
          .stream('in')
          .groupByKey()
          .reduce((a) => a),
      ),
      true,
    )
  })

  test('the plan is plain data', () => {
    const compiled = compile((topology) => {
      topology
        .stream(/metrics-.*/)
        .groupBy((value) => String(value))
        .windowedBy(tumbling('1m'))
        .count({ store: 'counts' })
      topology.scheduled('beat', { every: '10s', emit: () => null }).to('out')
    })
    const plan = planOf(compiled)
    assert.deepEqual(structuredClone(plan), plan)
    assert.deepEqual(
      plan.stores.map(({ name, kind }) => [name, kind]),
      [['counts', 'window']],
    )
  })

  test('compiling twice gives the same indices', () => {
    const build = (topology: Topology): void => {
      const a = topology.stream('a').selectKey((value) => String(value))
      a.leftJoin(topology.table('b'), (l, r) => [l, r])
        .groupByKey()
        .count()
        .toStream()
        .to('out')
    }
    const shape = (): unknown =>
      compile(build).nodes.map(({ index, name, subtopology, children }) => ({ index, name, subtopology, children }))
    assert.deepEqual(shape(), shape())
  })
})

describe('what the compiler refuses', () => {
  test('an application that reads nothing', () => refused(() => undefined, /reads nothing/))
  test('two operators of one name', () =>
    refused(
      (t) =>
        t
          .stream('in')
          .peek(() => 0, { name: 'x' })
          .peek(() => 0, { name: 'x' }),
      /two operators are named x/,
    ))
  test('two stores of one name', () => {
    refused((t) => {
      const grouped = t.stream('in').groupByKey()
      grouped.count({ store: 's' })
      grouped.reduce((a) => a, { store: 's' })
    }, /two stores are named s/)
  })
  test('a topic read as a stream and as a table', () => {
    refused((t) => {
      t.stream('in').to('out')
      t.table('in')
    }, /the topic in is read twice/)
  })
  test('streams of overlapping topics', () => {
    refused((t) => {
      t.stream(['a', 'b']).to('x')
      t.stream(['b', 'c']).to('y')
    }, /overlap/)
  })
  test('two ways to read one topic', () => {
    const value = serdes.json<{ at: number }>()
    const timed = (field: 'at' | 'from') => ({ value, timestamp: (read: Record<string, number>) => read[field] ?? 0 })
    const others = [
      [{ value: serdes.string }, /two streams read in, each with a value serde of its own/],
      [{ value, key: serdes.count }, /each with a key serde of its own/],
      [{ value, timestamp: ({ at }: { at: number }) => at }, /each with a timestamp function of its own/],
      [{ value, watermark: { maxOutOfOrderness: '1s' } }, /each with watermark settings of its own/],
    ] as const
    for (const [other, sentence] of others)
      refused((topology) => {
        topology.stream('in', { value }).to('a')
        topology.stream('in', other as never).to('b')
      }, sentence)
    // Functions that are written alike, as where one helper makes both.
    compile((topology) => {
      topology.stream('in', timed('at')).to('a')
      topology.stream('in', timed('at')).to('b')
    })
  })
  test('a store that does not exist', () => {
    refused((t) => t.stream('in').process(() => () => undefined, { stores: ['nowhere'] }), /nowhere/)
  })
  test('what is no serde, wherever it is given', () => {
    const nameless = { serialize: serdes.string.serialize, deserialize: serdes.string.deserialize } as never
    const pair = { key: serdes.string, value: serdes.string } as never
    const sentence = (owner: string, fault: string) =>
      new RegExp(
        `${owner} was given a (key|value) serde that is none: it ${fault}; give an object with the text "name"`,
      )
    const noName = 'has no name'
    refused((t) => t.stream('in', { value: nameless }), sentence('KSTREAM-SOURCE-0000000000', noName))
    refused((t) => t.stream('in').to('out', { key: nameless }), sentence('KSTREAM-SINK-0000000001', noName))
    refused(
      (t) => t.table('in', { store: { name: 'rows', key: nameless } }),
      sentence('the store rows of KTABLE-SOURCE-0000000001', noName),
    )
    refused(
      (t) => t.stream('in').groupByKey({ key: nameless }).windowedBy(tumbling('1m')).count({ store: 'counts' }),
      sentence('the store counts of KSTREAM-AGGREGATE-\\d+', noName),
    )
    const store = keyValueStore('seen', { key: 'string' as never })
    refused(
      (t) => t.stream('in').process(() => () => undefined, { stores: [store] }),
      sentence('the store seen of KSTREAM-PROCESSOR-0000000001', 'is of type string'),
    )
    refused(
      (t) => t.stream('in').join(t.stream('other'), (left) => left, { within: '1m', left: pair } as never),
      sentence('the store KSTREAM-.* of KSTREAM-.*', 'has no name, no serialize, no deserialize, and is a pair of .*'),
    )
  })
  test('grace on a join with a table that is not versioned', () => {
    refused((t) => t.stream('in').join(t.table('t', { store: 'rows' }), (l) => l, { grace: '1s' }), /versioned/)
  })
  test('suppress until the window closes where there are no windows', () => {
    refused((t) => t.stream('in').groupByKey().count().suppress({ until: 'window-closes' }), /no windows/)
  })
  test('a malformed duration, topic, cron expression or name', () => {
    refused((t) => t.stream('in', { watermark: { maxOutOfOrderness: 'soon' } }), /"soon"/)
    refused((t) => t.stream('in/out'), /not the name of a topic/)
    refused((t) => t.scheduled('s', { cron: 'now and then', emit: () => null }), /cron expression/)
    refused((t) => t.stream('in').peek(() => 0, { name: 'two words' }), /letters, digits/)
  })
  test('a retention shorter than the windows', () => {
    refused(
      (t) =>
        t
          .stream('in')
          .groupByKey()
          .windowedBy(tumbling('1h'))
          .count({ store: { name: 's', retention: '1m' } }),
      /retention of s/,
    )
  })
})

describe('descriptions', () => {
  const build = (topology: Topology): void => {
    topology.globalTable('ref', { store: 'ref-store' })
    topology.stream(/in-.*/).to((value) => String(value))
    topology.scheduled('beat', { every: '1s', emit: () => null }).to('beats')
    const store = keyValueStore('kept')
    topology.stream('x').process(() => () => undefined, { stores: [store] })
  }

  test('the text sets the first entry off by three spaces, later ones by two', () => {
    assert.equal(
      describeText(compile(build)),
      [
        'Topologies:',
        '   Sub-topology: 0 for global store (will not generate tasks)',
        '    Source: KSTREAM-SOURCE-0000000000 (topics: [ref])',
        '      --> KTABLE-SOURCE-0000000001',
        '    Processor: KTABLE-SOURCE-0000000001 (stores: [ref-store])',
        '      --> none',
        '      <-- KSTREAM-SOURCE-0000000000',
        '  Sub-topology: 1',
        '    Source: KSTREAM-SOURCE-0000000002 (topics: in-.*)',
        '      --> KSTREAM-SINK-0000000003',
        '    Sink: KSTREAM-SINK-0000000003 (extractor class: TopicFrom)',
        '      <-- KSTREAM-SOURCE-0000000002',
        '',
        '  Sub-topology: 2',
        '    Source: beat (topics: [])',
        '      --> KSTREAM-SINK-0000000005',
        '    Sink: KSTREAM-SINK-0000000005 (topic: beats)',
        '      <-- beat',
        '',
        '  Sub-topology: 3',
        '    Source: KSTREAM-SOURCE-0000000006 (topics: [x])',
        '      --> KSTREAM-PROCESSOR-0000000007',
        '    Processor: KSTREAM-PROCESSOR-0000000007 (stores: [kept])',
        '      --> none',
        '      <-- KSTREAM-SOURCE-0000000006',
        '',
        '',
      ].join('\n'),
    )
  })

  test('the JSON leaves out the keys that a node cannot have', () => {
    const { subtopologies, globalStores } = describeTopology(compile(build))
    assert.deepEqual(subtopologies[0], {
      id: 1,
      nodes: [
        {
          name: 'KSTREAM-SOURCE-0000000002',
          type: 'source',
          topics: [],
          topicPattern: 'in-.*',
          successors: ['KSTREAM-SINK-0000000003'],
        },
        {
          name: 'KSTREAM-SINK-0000000003',
          type: 'sink',
          topicNameExtractor: 'TopicFrom',
          predecessors: ['KSTREAM-SOURCE-0000000002'],
        },
      ],
    })
    assert.equal(globalStores?.[0]?.processor.name, 'KTABLE-SOURCE-0000000001')
    assert.equal('globalStores' in describeTopology(compile((t) => t.stream('in').to('out'))), false)
  })
})
