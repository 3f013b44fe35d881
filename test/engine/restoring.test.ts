/** What a start tells while it brings stores to the last commit, and while it waits for what the broker does not show yet. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp, serdes } from '../../src/index.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { RestoreProgress } from '../../src/view/view.ts'
import type { Tamper } from '../simulation/faulty-broker.ts'
import { VirtualEngine } from './support/virtual-engine.ts'

const keys = 5
const changelog = 'sim-kept-changelog'

const application = () =>
  defineApp({
    applicationId: 'sim',
    build: (topology) =>
      topology
        .stream('in', { key: serdes.string, value: serdes.json<number>() })
        .groupByKey()
        .count({ store: 'kept' })
        .toStream()
        .to('out'),
  })

async function begun(settings: Partial<EngineSettings>, tamper?: Tamper): Promise<VirtualEngine> {
  const engine = new VirtualEngine({ compile: () => application().compile(), settings, ...(tamper && { tamper }) })
  await engine.start()
  await engine.runs()
  return engine
}

async function feed(engine: VirtualEngine, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const records = Array.from({ length: keys }, (_, i) => ({
      key: `key-${i}`,
      value: i,
      timestamp: 1_000_000 + round,
    }))
    await engine.put('in', records)
    await engine.settled()
  }
}

describe('a start that restores', () => {
  const sum = (progress: readonly RestoreProgress[], what: 'restoredRecords' | 'remainingRecords'): number =>
    progress.reduce((all, each) => all + each[what], 0)

  test('says so, and tells what is restored and what is left until nothing is', async () => {
    const engine = await begun({})
    assert.equal(engine.count('restoring'), 0, 'nothing was there to be restored')
    await feed(engine, 3)
    await engine.start()
    await engine.runs()
    assert.equal(engine.count('restoring'), 1)
    const told = engine.facts.flatMap((fact) => (fact.type === 'restore-progress' ? [fact.progress] : []))
    const [first, last] = [told.at(0), told.at(-1)]
    assert.ok(first && last)
    assert.equal(sum(first, 'restoredRecords'), 0)
    assert.ok(sum(first, 'remainingRecords') >= 3 * keys, 'it begins with all that was written')
    assert.equal(sum(last, 'restoredRecords'), 3 * keys)
    assert.equal(sum(last, 'remainingRecords'), 0)
    const left = told.map((progress) => sum(progress, 'remainingRecords'))
    assert.deepEqual(
      left,
      left.toSorted((a, b) => b - a),
    )
  })

  test('tells of a large changelog what stores have and what they lack, and both add up to all of it', async () => {
    const engine = await begun({ bufferedMaxBytes: 64 * 1024 * 1024 })
    const [rounds, keysOfRound] = [6, 2000]
    const many = rounds * keysOfRound
    const padding = 'x'.repeat(600)
    for (let round = 0; round < rounds; round++) {
      const names = Array.from({ length: keysOfRound }, (_, i) => `${round}-${i}-${padding}`)
      await engine.put(
        'in',
        names.map((key) => ({ key, value: 1, timestamp: 1_000_000 })),
      )
      await engine.settled()
    }
    await engine.start()
    await engine.runs()
    const told = engine.facts.flatMap((fact) => (fact.type === 'restore-progress' ? [fact.progress] : []))
    const points = told.map((each) => [sum(each, 'restoredRecords'), sum(each, 'remainingRecords')] as const)
    const between = points.filter(([done, left]) => done > 0 && left > 0)
    assert.ok(between.length > 0, `it is told between beginning and end: ${points.join('; ')}`)
    const [, whole] = points[0] ?? assert.fail('it begins with all that was written')
    // A transaction has a mark at its end, which is no record.
    for (const [done, left] of points) assert.ok(whole - done - left < 100, `${done} and ${left} of ${whole}`)
    assert.deepEqual(points.at(-1), [many, 0])
  })
})

describe('a start whose changelogs have more than they show', () => {
  /** The broker has ended the transaction, and marks this changelog so many questions later. */
  async function started(hiddenFor: number): Promise<readonly string[]> {
    let left = 0
    const tamper: Tamper = async (name, args, call) => {
      const answer = await call(args)
      if (name !== 'listOffsets' || args[1] !== 'stable' || left === 0) return answer
      const offsets = answer as ReadonlyArray<{ readonly topic: string }>
      if (!offsets.some(({ topic }) => topic === changelog)) return answer
      left--
      return offsets.map((each) => (each.topic === changelog ? { ...each, offset: 0 } : each))
    }
    const engine = await begun({}, tamper)
    await feed(engine, 1)
    left = hiddenFor
    await engine.start()
    await engine.runs()
    assert.equal(left, 0, 'it has asked until all was shown')
    return engine.facts.flatMap((fact) => (fact.type === 'log' ? [fact.message] : [])).filter((it) => /waits/.test(it))
  }

  test('waits without a word where it is soon over', async () => {
    assert.deepEqual(await started(3), [])
  })

  test('says what it waits for where that takes long, and says it once', async () => {
    const told = await started(100)
    assert.equal(told.length, 1)
    assert.match(told[0] ?? '', /waits until the broker has ended the transactions that are open/)
  })
})
