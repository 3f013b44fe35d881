/** What the stages of a task hold back, as each of them sees it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, serdes, tumbling } from '../../../src/index.ts'
import type { Operator } from '../../../src/operators/contract.ts'
import { HeldBack, nothing } from '../../../src/operators/quiet/held-back.ts'
import type { CompiledNode } from '../../../src/topology/compiled.ts'

const topology = defineApp({
  applicationId: 'test',
  build(builder) {
    const windows = tumbling('1s', { closeAfterIdle: '1s' })
    const first = builder.stream('in').groupByKey().windowedBy(windows, { emit: 'on-close' }).count().toStream()
    const keyed = { key: serdes.windowed(serdes.string, 1000), value: serdes.json<number>() }
    first.groupByKey(keyed).windowedBy(windows, { emit: 'on-close' }).count().toStream().to('out')
  },
}).compile()
const [first, second] = topology.nodes.filter(({ spec }) => spec.op === 'windowAggregate') as [
  CompiledNode,
  CompiledNode,
]

test('what a shallower stage lets go is held back for the deeper one until the mark has come to that too', () => {
  let from = 7
  const last = {} as Operator
  const shallower = new HeldBack(topology, [first], [{ heldFrom: () => from } as Operator], [])
  const deeper = new HeldBack(topology, [second], [last], [shallower])
  const seen = (): number => deeper.above(last, () => nothing)
  shallower.mark()
  deeper.mark()
  assert.equal(seen(), 7)
  from = nothing
  // Its row is on the way between the two.
  shallower.mark()
  assert.equal(seen(), 7)
  deeper.mark()
  assert.equal(seen(), nothing)
})
