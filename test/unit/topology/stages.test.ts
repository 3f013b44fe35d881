import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, keyValueStore, serdes, type Topology } from '../../../src/index.ts'
import { stagesOf } from '../../../src/topology/levels/stages.ts'

const text = { key: serdes.string, value: serdes.string }

function stagesIn(build: (topology: Topology) => void) {
  const compiled = compile(build)
  const { bySubtopology, deferrals } = stagesOf(compiled)
  const name = (node: number): string => compiled.nodes[node]?.name.replace(/-0+(?=\d)/, '-') ?? ''
  return {
    stages: bySubtopology.filter((stages) => stages.length > 1),
    levels: bySubtopology.map((stages) => stages.map(({ level }) => level)),
    ways: deferrals.map(
      ({ from, to, store }) => `${name(from)} -> ${name(to)}${store === undefined ? '' : `: ${store}`}`,
    ),
  }
}

describe('stages of a task', () => {
  test('are one where sources can lie at one level', () => {
    const { levels, ways } = stagesIn((topology) => {
      const prices = topology.table('prices', text)
      topology
        .stream('orders', text)
        .selectKey((order) => order)
        .join(prices, (order, price) => order + price)
        .to('out')
    })
    assert.deepEqual(levels.flat().sort(), [0, 1])
    assert.deepEqual(ways, [])
  })

  test('part a stream from the join with its own re-keyed table', () => {
    const { levels, ways } = stagesIn((topology) => {
      const orders = topology.stream('orders', text)
      const newest = orders.selectKey((order) => order).toTable()
      orders.leftJoin(newest, (order, other) => `${order}${other}`).to('out')
    })
    assert.deepEqual(levels, [[0, 1]])
    assert.equal(ways.length, 1)
    assert.match(ways[0] as string, /SOURCE-\d+ -> KSTREAM-LEFTJOIN/)
  })

  test('show an answer of a foreign-key join the left row as it was', () => {
    const { ways } = stagesIn((topology) => {
      const left = topology.table('left', { ...text, store: 'lefts' })
      const right = topology.table('right', text)
      left
        .join(right, (value, other) => value + other, { on: (value) => value })
        .toStream()
        .to('out')
    })
    assert.ok(
      ways.some((way) => /RESOLVER.*: lefts$/.test(way)),
      ways.join(),
    )
  })

  test('are one where operators at several levels write one store', () => {
    const seen = keyValueStore('seen', { key: serdes.string, value: serdes.string })
    const note = { process: (): void => undefined }
    const { stages } = stagesIn((topology) => {
      const first = topology.stream('in', text).process(() => note, { stores: [seen] })
      first
        .repartition({ key: serdes.string, value: serdes.string })
        .process(() => note, { stores: [seen] })
        .to('out')
    })
    assert.deepEqual(stages, [])
  })
})
