/** What a commit has to tell of partitions of which nothing was read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PartitionKey, partitionKey } from '../../../src/base/ids.ts'
import type { EngineSettings } from '../../../src/engine/settings.ts'
import type { StartingPoint } from '../../../src/engine/group/assignment.ts'
import type { Route } from '../../../src/engine/input/dispatcher.ts'
import { Positions } from '../../../src/engine/input/positions.ts'
import { Watermarks } from '../../../src/time/watermarks.ts'

const settings = {
  offsetsReset: 'earliest',
  plan: { boundaries: [{ fromSubtopology: 0, toSubtopology: 1 }] },
} as unknown as EngineSettings

/** A group that is new to a topic which it is to read from this offset on. */
function startingAt(offset: number): Positions {
  const watermarks = new Watermarks({ byTask: true })
  const at = { topic: 'in', partition: 0 }
  const handle = watermarks.assign(at, { maxOutOfOrdernessMs: 0, idlenessMs: 0, alignment: undefined })
  const route = { ...at, handle, subtopology: 0, buffer: { nextOffset: offset }, sorted: undefined }
  const routes = new Map<PartitionKey, Route>([[partitionKey('in', 0), route as unknown as Route]])
  const positions = new Positions(settings, watermarks, routes)
  positions.announced = true
  positions.freeze()
  positions.assigned({ ...at, offset, committed: false } as unknown as StartingPoint)
  return positions
}

test('where all records are past their time already, those who are fed by the partition are told that nothing is left', () => {
  const positions = startingAt(10)
  assert.equal(positions.moved(), true)
  const frozen = positions.freeze()
  assert.deepEqual(
    frozen.map(({ offset, isTold }) => [offset, isTold]),
    [[10, true]],
  )
  positions.committed(frozen)
  assert.equal(positions.moved(), false)
})

test('of a topic in which nothing was ever written nobody has to be told', () => {
  assert.equal(startingAt(0).moved(), false)
})
