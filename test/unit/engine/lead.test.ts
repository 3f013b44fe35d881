/** How far a process may be ahead of the others that write to the same topics. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { partitionKey } from '../../../src/base/ids.ts'
import { Lead } from '../../../src/engine/input/repartition/lead.ts'

const room = 64_000
const topic = 'app-by-product-repartition'
const theirs = partitionKey('orders', 1)

/** One sub-topology, 0, that writes to a topic; sub-topology 1 writes to none. */
function world(): { lead: Lead; told: string[]; limit: (now?: number) => number } {
  const told: string[] = []
  const lead = new Lead({ mostBytes: room, topics: new Map([[topic, 0]]), subtopologies: 2 }, (line) => told.push(line))
  return { lead, told, limit: (now = 0) => lead.limits(now)[0] as number }
}

/** Dispatched, written and committed: so many kilobytes, one for each millisecond of event time. */
function goes(lead: Lead, kilobytes: number, from = 0, written = kilobytes): void {
  for (let i = 1; i <= kilobytes; i++) lead.went(0, 0, 1000, from + i)
  const isOther = { topic: 'out', count: 1, records: new Uint8Array(1_000_000) }
  lead.wrote([{ topic, count: 0, records: new Uint8Array(1000 * written) }, isOther])
  lead.froze()
  lead.committed()
}

describe('a process that is ahead of the others', () => {
  test('goes no further than the slowest of them once they are behind by what fits', () => {
    const { lead, limit } = world()
    lead.othersAt(0, { key: theirs, reachedMs: 0 }, 0)
    goes(lead, 60)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    goes(lead, 10, 60)
    assert.equal(limit(), 0)
    lead.othersAt(0, { key: theirs, reachedMs: 5 }, 1)
    assert.equal(limit(), 5, 'they are still behind by 65 of 64')
    lead.othersAt(0, { key: theirs, reachedMs: 40 }, 2)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
  })

  test('waits for nobody who has nothing left to do', () => {
    const { lead, limit } = world()
    lead.othersAt(0, undefined, 0)
    goes(lead, 500)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    assert.equal(lead.longestHold, undefined)
  })

  test('does not go by what was before the slowest came back with something older', () => {
    const { lead, limit } = world()
    lead.othersAt(0, undefined, 0)
    goes(lead, 500)
    lead.othersAt(0, undefined, 1)
    lead.othersAt(0, { key: theirs, reachedMs: 1 }, 2)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    goes(lead, 70, 500)
    assert.equal(limit(), 1)
  })

  test('counts what goes over to the topic, and not what is left out before', () => {
    const { lead, limit } = world()
    lead.othersAt(0, { key: theirs, reachedMs: 0 }, 0)
    goes(lead, 150, 0, 15)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    goes(lead, 10, 150, 150)
    assert.equal(limit(), 0)
  })

  test('tells nobody to wait for it of sub-topologies that write to no topic', () => {
    const { lead } = world()
    lead.othersAt(1, { key: theirs, reachedMs: 0 }, 0)
    lead.went(1, 0, 1e9, 5)
    assert.equal(lead.limits(0)[1], Number.POSITIVE_INFINITY)
  })

  test('waits a minute for one that does not move, says so once, and goes on', () => {
    const { lead, told, limit } = world()
    lead.othersAt(0, { key: theirs, reachedMs: 0 }, 1000)
    goes(lead, 100)
    assert.equal(limit(2000), 0)
    assert.deepEqual(lead.longestHold, { awaited: { key: theirs, reachedMs: 0 }, since: 2000 })
    assert.equal(limit(62_000), Number.POSITIVE_INFINITY)
    assert.equal(limit(63_000), Number.POSITIVE_INFINITY)
    assert.equal(told.length, 1)
    assert.match(told[0] ?? '', /^orders:1 has not been read any further for a minute: .* see whether all processes/)
    lead.othersAt(0, { key: theirs, reachedMs: 1 }, 64_000)
    assert.equal(limit(64_000), 1)
  })
})

describe('before anything is known of the others', () => {
  test('no more goes than what fits', () => {
    const { lead, limit } = world()
    goes(lead, 60)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    goes(lead, 10)
    assert.equal(limit(), Number.NEGATIVE_INFINITY)
    lead.othersAt(0, undefined, 0)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
  })
})

describe('between two commits', () => {
  test('no more goes than what fits, and the next one is asked for in time, once', () => {
    const { lead, limit } = world()
    lead.othersAt(0, undefined, 0)
    lead.went(0, 0, 31_000, 1)
    assert.equal(lead.wantsCommit, false)
    lead.went(0, 0, 2000, 2)
    assert.equal(lead.wantsCommit, true)
    assert.equal(lead.wantsCommit, false)
    lead.froze()
    lead.went(0, 0, 30_000, 3)
    assert.equal(limit(), Number.POSITIVE_INFINITY)
    lead.went(0, 0, 2000, 4)
    assert.equal(limit(), Number.NEGATIVE_INFINITY, 'what is under way counts until it has taken effect')
    lead.committed()
    assert.equal(limit(), Number.POSITIVE_INFINITY)
  })
})
