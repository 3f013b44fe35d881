/** What the stages are said to be at. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Flow } from '../../../src/view/diagnosis/flow.ts'
import { healthy, partition } from './facts.ts'

test('an engine that has failed is at nothing, whatever it was at then', () => {
  const at = (state: 'RUNNING' | 'FAILED'): string[] => {
    const flow = new Flow(4)
    flow.sample({ ...healthy, state, partitions: [{ ...partition, lag: 5, buffered: 0 }] }, null, 0)
    return flow
      .stages([])
      .filter(({ busy }) => busy > 0)
      .map(({ stage }) => stage)
  }
  assert.ok(at('RUNNING').includes('fetch'))
  assert.deepEqual(at('FAILED'), [])
})
