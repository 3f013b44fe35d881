/** The recorded scenarios on the engine and the lanes in virtual time: Kafka Streams' results, with one lane and several. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp } from '../../src/index.ts'
import {
  buildBundle,
  eligibleScenarios,
  type NamedStore,
  prefixOf,
  type Recorded,
  timedScenarios,
  timelessScenarios,
  turnsWallClock,
} from './support/scenario-bundle.ts'
import { applicationId, difference, produce } from './support/scenario-results.ts'
import { namesWithReason, roundsOf, whyOneByOne } from './support/scenario-rounds.ts'
import { ScenarioWorld } from './support/scenario-world.ts'

async function inVirtualTime(scenario: Recorded, lanes: number): Promise<string | undefined> {
  let kinds: ReadonlyMap<string, NamedStore> = new Map()
  const application = defineApp({
    applicationId,
    build: (topology) => {
      kinds = buildBundle(topology, [scenario])[0] ?? kinds
    },
  })
  const world = new ScenarioWorld(application, lanes, scenario.optimize === true, 1)
  world.start()
  await world.idle()
  for (const { records, advanceMs } of roundsOf(scenario, lanes)) {
    await world.drive(
      produce(
        world.broker,
        records.map((record) => [prefixOf(0), record]),
      ),
    )
    await world.idle()
    if (advanceMs > 0) await world.advanceWallClock(advanceMs)
  }
  assert.deepEqual(world.problems, [], scenario.name)
  return world.drive(difference(world, { scenario, index: 0, kinds, lanes, by: 0 }))
}

describe('the recorded scenarios on engine and lanes', () => {
  const all = [...eligibleScenarios(false), ...eligibleScenarios(true)]

  for (const lanes of [1, 4]) {
    test(`give what they gave one step after the other: ${lanes} lanes`, async () => {
      const wrong: Array<string | undefined> = []
      for (const scenario of all) wrong.push(await inVirtualTime(scenario, lanes))
      assert.deepEqual(
        wrong.filter((difference) => difference !== undefined),
        [],
      )
    })
  }

  test('are all there, and few are not fed in one go', () => {
    assert.equal(all.length, 222)
    const onThreads = [false, true].flatMap((optimize) => [...timelessScenarios(optimize), ...timedScenarios(optimize)])
    const there = new Set([...onThreads, ...all.filter(turnsWallClock)].map(({ name }) => name))
    assert.deepEqual(
      all.filter(({ name }) => !there.has(name)),
      [],
      'neither on threads nor kept from them by the wall clock',
    )
    assert.equal(all.filter(turnsWallClock).length, 5)
    const names = new Set(all.map(({ name }) => name))
    assert.deepEqual(
      namesWithReason.filter((name) => !names.has(name)),
      [],
      'reasons for what is not there',
    )
    assert.equal(all.filter((scenario) => whyOneByOne(scenario, 1) !== undefined).length, 5)
    assert.equal(all.filter((scenario) => whyOneByOne(scenario, 4) !== undefined).length, 20)
  })
})
