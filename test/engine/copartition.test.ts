/** Topics with different numbers of partitions on the two sides of a join. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes, type Topology } from '../../src/index.ts'
import { ScenarioWorld } from './support/scenario-world.ts'

type Problems = readonly string[]

const text = { key: serdes.string, value: serdes.string }

const joins: Readonly<Record<string, (topology: Topology, repartitioned: boolean) => void>> = {
  'of streams': (topology, repartitioned) => {
    const right = topology.stream('right', text)
    topology
      .stream('left', text)
      .join(repartitioned ? right.repartition() : right, (a, b) => a + b, { within: '1m' })
      .to('out')
  },
  'of a stream with a table': (topology, repartitioned) => {
    const right = repartitioned ? topology.stream('right', text).repartition().toTable() : topology.table('right', text)
    topology
      .stream('left', text)
      .join(right, (a, b) => a + b)
      .to('out')
  },
  'of tables': (topology, repartitioned) => {
    const right = repartitioned ? topology.stream('right', text).repartition().toTable() : topology.table('right', text)
    topology
      .table('left', text)
      .join(right, (a, b) => a + b)
      .toStream()
      .to('out')
  },
  'by cogroup': (topology, repartitioned) => {
    const right = topology.stream('right', text)
    const fold = (sum: string, value: string): string => sum + value
    topology
      .stream('left', text)
      .groupByKey()
      .cogroup<string>(fold)
      .cogroup((repartitioned ? right.repartition() : right).groupByKey(), fold)
      .aggregate(() => '')
      .toStream()
      .to('out')
  },
}

const accepted: Readonly<Record<string, (topology: Topology) => void>> = {
  'a join with a global table': (topology) => {
    const right = topology.globalTable('right', text)
    topology
      .stream('left', text)
      .join(right, (a, b) => a + b, { on: (value) => value })
      .to('out')
  },
  'a join by foreign key': (topology) => {
    topology
      .table('left', text)
      .join(topology.table('right', text), (a, b) => a + b, { on: (value) => value })
      .toStream()
      .to('out')
  },
  'a merge': (topology) => {
    topology.stream('left', text).merge(topology.stream('right', text)).to('out')
  },
}

async function problems(
  build: (topology: Topology) => void,
  split: 'in-process' | 'repartition-topics',
  right = 3,
): Promise<Problems> {
  const world = new ScenarioWorld(defineApp({ applicationId: 'sides', build }), 2, false, 1, { split })
  await world.drive(
    world.broker.createTopics([
      { topic: 'left', partitions: 2 },
      { topic: 'right', partitions: right },
    ]),
  )
  world.start()
  await world.idle()
  return world.problems
}

describe('topics with different numbers of partitions', () => {
  for (const [what, build] of Object.entries(joins)) {
    test(`are refused at the start: joined ${what}`, async () => {
      const [problem, ...others] = await problems((topology) => build(topology, false), 'repartition-topics')
      assert.match(problem ?? '', /TOPOLOGY_INVALID/)
      assert.match(problem ?? '', /different numbers of partitions \(left has 2, right has 3\)/)
      assert.deepEqual(others, [])
    })

    test(`are no matter in process, nor behind a repartition, nor are equal ones: joined ${what}`, async () => {
      assert.deepEqual(await problems((topology) => build(topology, false), 'in-process'), [])
      assert.deepEqual(await problems((topology) => build(topology, true), 'repartition-topics'), [])
      assert.deepEqual(await problems((topology) => build(topology, false), 'repartition-topics', 2), [])
    })
  }

  for (const [what, build] of Object.entries(accepted)) {
    test(`are accepted by ${what}`, async () => {
      assert.deepEqual(await problems(build, 'repartition-topics'), [])
    })
  }
})
