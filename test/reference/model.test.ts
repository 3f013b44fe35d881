/** The reference model against what was recorded of Kafka Streams, and against the test driver. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { canonical, type Json } from '../../conformance/expr.ts'
import { runScenario } from '../../conformance/run.ts'
import type { Scenario, ScenarioOutput } from '../../conformance/scenario.ts'
import { Model } from './model/model.ts'
import { Unsupported } from './model/parts.ts'

interface Recorded extends Scenario {
  readonly tags?: readonly string[]
  readonly expect: { readonly error?: string; readonly output?: readonly ScenarioOutput[] }
}

const folders = ['../conformance-streams/scenarios/', '../conformance-streams/recorded/']
const scenarios = folders.flatMap((folder) => {
  const url = new URL(folder, import.meta.url)
  return readdirSync(url)
    .sort()
    .flatMap((file) => JSON.parse(readFileSync(new URL(file, url), 'utf8')) as readonly Recorded[])
})

/** Late records that the model treats by the documented rule alone. */
const differs = new Set([
  // A window that a late record opens: the model folds all that lies in it, Kafka Streams only what was in its neighbour.
  'sliding/random-5',
])

type Shown = Readonly<Record<string, readonly string[]>>

/** By topic and key: between keys the model promises no order. */
function shown(outputs: ReadonlyArray<{ topic: string; key: Json; value: Json; timestamp: number }>): Shown {
  const result: Record<string, string[]> = {}
  for (const { topic, key, value, timestamp } of outputs) {
    const id = `${topic} ${canonical(key)}`
    result[id] ??= []
    result[id].push(canonical({ value: value ?? null, timestamp }))
  }
  return result
}

/** As the test driver feeds it: the watermark is the largest timestamp so far. */
function byModel(scenario: Recorded): Shown | undefined {
  try {
    const model = new Model(scenario.topology.nodes)
    let watermark = Number.NEGATIVE_INFINITY
    for (const input of scenario.input ?? []) {
      if (!('topic' in input)) return undefined
      watermark = Math.max(watermark, model.timeOf(input))
      model.take(input, watermark)
      model.advance(watermark)
    }
    return shown(model.outputs)
  } catch (error) {
    if (error instanceof Unsupported) return undefined
    throw error
  }
}

describe('the reference model', () => {
  test('gives what Kafka Streams gave, or what the engine documents instead', async (t) => {
    const wrong: string[] = []
    let own = 0
    let same = 0
    for (const scenario of scenarios) {
      if (scenario.describeOnly || scenario.expect.error !== undefined || differs.has(scenario.name)) continue
      const model = byModel(scenario)
      if (model === undefined) continue
      if (JSON.stringify(sorted(model)) === JSON.stringify(sorted(shown(scenario.expect.output ?? [])))) {
        same++
        continue
      }
      const driver = shown((await runScenario(scenario, 'watermark')).output ?? [])
      try {
        assert.deepEqual(model, driver)
        own++
      } catch (error) {
        wrong.push(`${scenario.name}: ${(error as Error).message}`)
      }
    }
    t.diagnostic(`${same} as Kafka Streams, ${own} as the engine`)
    assert.deepEqual(wrong, [])
  })
})

function sorted(value: Shown): Shown {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
