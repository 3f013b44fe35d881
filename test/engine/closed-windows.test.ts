/** What event time brings about without a record is committed: no record may come for hours. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../support/millrace.ts'
import { type In, TestEngine } from './support/engine.ts'

const start = 1_700_000_000_000
const partitions = 4
const pages = Array.from({ length: 20 }, (_, i) => `page-${i}`)

describe('windows that close because others have told the time', () => {
  for (const split of ['in-process', 'repartition-topics'] as const) {
    test(`give their results though no record comes behind (${split})`, async (t) => {
      const engine = await TestEngine.start(t, 'closed-windows', { 'topology.sub-topology-split': split })
      for (let round = 0; round < 3; round++) {
        const at = start + round * 600_000
        const visits: In[] = pages.map((page, i) => ({ key: `user-${i}`, value: { page }, timestamp: at }))
        await engine.put('visits', visits)
        // They are committed, and quiet has come before time goes on.
        await sleep(1000)
        // One record a partition, all of one page: of the others nothing comes.
        const ends = Array.from({ length: partitions }, (_, partition): In => {
          return { key: 'end', value: { page: 'end' }, timestamp: at + 300_000, partition }
        })
        await engine.put('visits', ends)
        await eventually(`the windows of round ${round} are told`, async () => {
          const told = (await engine.read('counts')).filter(({ key }) => key?.startsWith('page-') === true)
          return told.length === pages.length * (round + 1)
        })
      }
      assert.equal(engine.dropped('late'), 0)
    })
  }
})
