/**
 * The recorded scenarios on threads, many in one application: those without event time side by side, those with it one
 * after the other, each in a time of its own, since an application has one watermark. The wall clock of a running
 * process cannot be told to move: scenarios that do so run in virtual time alone.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defineApp } from '../../src/index.ts'
import { type Runtime, startRuntime } from '../../src/runtime/index.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'
import { eventually } from '../support/millrace.ts'
import {
  buildBundle,
  moved,
  moveOf,
  type NamedStore,
  prefixOf,
  type Recorded,
  timedScenarios,
  timelessScenarios,
} from './support/scenario-bundle.ts'
import { applicationId, difference, produce } from './support/scenario-results.ts'
import { roundsOf } from './support/scenario-rounds.ts'

interface Bundle {
  readonly scenarios: readonly Recorded[]
  readonly timed: boolean
  readonly optimize: boolean
  readonly from: number
  readonly to: number
}

/** Feeds a running bundle and answers what went wrong. */
type Feeding = (runtime: Runtime, bundle: Bundle, check: (index: number, by: number) => Promise<void>) => Promise<void>

const sideBySide: (lanes: number) => Feeding =
  (lanes) =>
  async (runtime, { scenarios }, check) => {
    const all = scenarios.map((scenario) => roundsOf(scenario, lanes))
    const count = Math.max(...all.map((list) => list.length))
    for (let round = 0; round < count; round++) {
      const records = all.flatMap((list, i) =>
        (list[round]?.records ?? []).map((record) => [prefixOf(i), record] as const),
      )
      await produce(runtime.broker, records)
      await runtime.untilIdle()
    }
    for (const i of scenarios.keys()) await check(i, 0)
  }

const inTurn: (lanes: number) => Feeding =
  (lanes) =>
  async (runtime, { scenarios, from }, check) => {
    for (const [i, scenario] of scenarios.entries()) {
      await untilNothingHoldsTime(runtime)
      const by = moveOf(scenario, from + i)
      for (const { records } of roundsOf(moved(scenario, by), lanes)) {
        await produce(
          runtime.broker,
          records.map((record) => [prefixOf(i), record]),
        )
        await untilNothingHoldsTime(runtime)
      }
      await check(i, by)
    }
  }

/** A topic that had something a moment ago holds the watermark back until it counts as idle. */
async function untilNothingHoldsTime(runtime: Runtime): Promise<void> {
  await eventually('every topic is idle', async () => {
    await runtime.untilIdle()
    return Object.values(runtime.view.watermarks()?.partitions ?? {}).every(({ idle }) => idle)
  })
}

async function onThreads(bundle: Bundle, lanes: number): Promise<void> {
  const { scenarios, timed, optimize, from, to } = bundle
  let kinds: Array<Map<string, NamedStore>> = []
  defineApp({
    applicationId,
    build: (topology) => {
      kinds = buildBundle(topology, scenarios)
    },
  }).compile({ optimize })
  const application = new URL('./apps/scenarios.ts', import.meta.url)
  application.search = new URLSearchParams({
    from: `${from}`,
    to: `${to}`,
    timed: timed ? 'yes' : 'no',
    optimize: optimize ? 'all' : 'none',
  }).toString()
  const problems: string[] = []
  const runtime = await startRuntime({
    application,
    config: {
      'runtime.http.enabled': false,
      'engine.lanes.count': lanes,
      'engine.state.store': 'memory',
      'broker.embedded.partitions': 1,
      'watermark.idleness-timeout': 20,
      'commit-barrier.interval-ms': 20,
      'topology.optimization': optimize ? 'all' : 'none',
    },
    log: (line) => {
      if (line.level === 'warn' || line.level === 'error') problems.push(line.message)
    },
  })
  try {
    await runtime.untilIdle()
    const engine = { broker: runtime.broker, topology: runtime.view.topology() as CompiledTopology }
    const wrong: string[] = []
    const check = async (index: number, by: number): Promise<void> => {
      const scenario = scenarios[index] as Recorded
      const found = await difference(engine, { scenario, index, kinds: kinds[index] ?? new Map(), lanes, by })
      if (found !== undefined) wrong.push(found)
    }
    await (timed ? inTurn(lanes) : sideBySide(lanes))(runtime, bundle, check)
    assert.deepEqual(wrong, [], problems.join('\n'))
  } finally {
    await runtime.stop()
  }
}

const perApplication = 45

function bundles(): Bundle[] {
  const result: Bundle[] = []
  for (const timed of [false, true]) {
    for (const optimize of [false, true]) {
      const all = (timed ? timedScenarios : timelessScenarios)(optimize)
      for (let from = 0; from < all.length; from += perApplication) {
        const to = Math.min(all.length, from + perApplication)
        result.push({ scenarios: all.slice(from, to), timed, optimize, from, to })
      }
    }
  }
  return result
}

describe('the recorded scenarios on threads', () => {
  for (const lanes of [1, 4]) {
    for (const bundle of bundles()) {
      const { scenarios, timed, optimize } = bundle
      const kind = `${timed ? 'with' : 'without'} event time${optimize ? ', optimized' : ''}`
      const names = `${scenarios[0]?.name} to ${scenarios.at(-1)?.name}`
      test(`${lanes} lanes, ${kind}: ${names}`, () => onThreads(bundle, lanes))
    }
  }
})
