/**
 * Recorded scenarios behind and ahead of thousands of records of other keys, all there before the engine starts: each key
 * gets what the reference model says, and the scenario's own keys mostly what Kafka Streams gave them (265 of 362; the
 * rest are taken in another order, by event time, or meet the others under keys like numbers, constants and nothing). A
 * few by default. SCENARIO_NOISE: how many records of other keys, on either side; SCENARIO_ALL=1: all scenarios, with 1
 * and 4 lanes, or those that SCENARIO_LANES names; SCENARIO_PART=1/3: the first third of them; SCENARIO_NAME: those whose
 * names hold this; SCENARIO_THREADS=1: on threads, and with stores on disks by turns, else in virtual time.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, test } from 'node:test'
import type { BrokerPort } from '../../src/broker/port.ts'
import { defineApp } from '../../src/index.ts'
import { startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { beginningLater, buildBundle, moved, moveOf, prefixOf, type Recorded } from './support/scenario-bundle.ts'
import { difference, isAsRecorded, type Surrounded, surrounded, whyLeftOut, wordOn } from './support/scenario-noise.ts'
import { applicationId, produce, type Running } from './support/scenario-results.ts'
import { ScenarioWorld } from './support/scenario-world.ts'

const all = process.env.SCENARIO_ALL === '1'
const noise = Number(process.env.SCENARIO_NOISE ?? (all ? 5000 : 1000))
const onThreads = process.env.SCENARIO_THREADS === '1'
const named = process.env.SCENARIO_NAME ?? ''
const [part = 1, parts = 1] = (process.env.SCENARIO_PART ?? '1/1').split('/').map(Number)

const folders = ['../conformance-streams/scenarios/', '../conformance-streams/recorded/']
const files = folders.flatMap((folder) => {
  const url = new URL(folder, import.meta.url)
  return readdirSync(url)
    .sort()
    .map((file) => JSON.parse(readFileSync(new URL(file, url), 'utf8')) as readonly Recorded[])
})
const scenarios = files.flat()

/** As producers send them: some hundreds at a time. */
async function fill(broker: BrokerPort, { input }: Surrounded): Promise<void> {
  for (let from = 0; from < input.length; from += 500)
    await produce(
      broker,
      input.slice(from, from + 500).map((record) => [prefixOf(0), record] as const),
    )
}

type Check = (engine: Running) => Promise<string | undefined>

async function inVirtualTime(surrounding: Surrounded, lanes: number, check: Check): Promise<string | undefined> {
  const { scenario } = surrounding
  const application = defineApp({ applicationId, build: (topology) => void buildBundle(topology, [scenario]) })
  const world = new ScenarioWorld(application, lanes, scenario.optimize === true, 1)
  world.patience = 5_000_000
  await world.drive(fill(world.broker, surrounding))
  world.start()
  await world.idle()
  assert.deepEqual(world.problems, [], scenario.name)
  return world.drive(check(world))
}

async function withThreads(surrounding: Surrounded, lanes: number, check: Check): Promise<string | undefined> {
  const { scenario, input } = surrounding
  const folder = mkdtempSync(join(tmpdir(), 'millrace-scenario-'))
  const file = join(folder, 'scenario.json')
  writeFileSync(file, JSON.stringify(scenario))
  const application = pathToFileURL(join(import.meta.dirname, 'apps', 'scenario.ts'))
  application.search = new URLSearchParams({ scenario: file }).toString()
  const problems: string[] = []
  const broker = await startEmbeddedBroker({ partitions: 1 })
  try {
    await broker.client().createTopics(
      [...new Set(input.map(({ topic }) => topic))].map((topic) => ({
        topic: prefixOf(0) + topic,
        partitions: 1,
      })),
    )
    await fill(broker.client(), surrounding)
    const runtime = await startRuntime({
      application,
      broker,
      config: {
        'runtime.http.enabled': false,
        'engine.lanes.count': lanes,
        'broker.embedded.partitions': 1,
        'engine.state.store': input.length % 2 === 0 ? 'memory' : 'lmdb',
        'engine.state.dir': join(folder, 'state'),
        'commit-barrier.interval-ms': 20,
        'topology.optimization': scenario.optimize ? 'all' : 'none',
      },
      log: ({ level, message }) => {
        if (level === 'error') problems.push(message)
      },
    })
    try {
      await runtime.untilIdle()
      const found = await check({ broker: runtime.broker, topology: runtime.view.topology() as CompiledTopology })
      assert.deepEqual(problems, [])
      return found
    } finally {
      await runtime.stop()
    }
  } finally {
    await broker.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Those where the word on the scenario's own keys is not the recording. */
const otherwise = new Set<string>()

async function faultOf(recorded: Recorded, lanes: number): Promise<string | undefined> {
  const by = moveOf(recorded, 0)
  const surrounding = surrounded(moved(beginningLater(recorded, by), by), noise, noise)
  const word = await wordOn(surrounding, by)
  if (!isAsRecorded(recorded, word)) otherwise.add(recorded.name)
  const check: Check = (engine) => difference(engine, surrounding, word, lanes, by)
  return onThreads ? withThreads(surrounding, lanes, check) : inVirtualTime(surrounding, lanes, check)
}

describe('a recorded scenario among records of other keys', () => {
  for (const [n, scenario] of scenarios.entries()) {
    if (whyLeftOut(scenario) !== undefined || !scenario.name.includes(named)) continue
    if ((!all && named === '' && n % 21 !== 0) || n % parts !== part - 1) continue
    const { SCENARIO_LANES: fixed = all ? '1,4' : `${[1, 4][n % 2]}` } = process.env
    for (const lanes of fixed.split(',').map(Number)) {
      if (whyLeftOut(scenario, lanes) !== undefined) continue
      test(`${scenario.name}, ${lanes} lanes`, async () => assert.equal(await faultOf(scenario, lanes), undefined))
    }
  }

  test('mostly gives what Kafka Streams gave', (t) => {
    if (!all && named === '')
      assert.deepEqual([...otherwise].sort(), [
        'pipelines/random-enrich-2',
        'recorded/versioned-105',
        'stream-stream-inner/before-only',
        'stream-stream-outer/random-2',
        'suppress-window/hopping',
      ])
    t.diagnostic(`otherwise: ${[...otherwise].sort().join(', ') || 'none'}`)
  })

  test('is one of nearly all', () => {
    const left = scenarios.map((scenario) => whyLeftOut(scenario)).filter((why) => why !== undefined)
    assert.equal(scenarios.length - left.length, 362)
    const counts = [...Map.groupBy(left, (why) => why)].map(([why, { length }]) => [why, length])
    assert.deepEqual(Object.fromEntries(counts), {
      'nothing is run': 26,
      'it needs a clock that moves only when told to': 6,
      'its records tell their times in their values': 6,
      'it reads what it writes': 1,
    })
  })
})
