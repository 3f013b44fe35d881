import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { canonical, type Json } from '../../conformance/expr.ts'
import { runScenario } from '../../conformance/run.ts'
import type { Scenario, ScenarioOutput, ScenarioResult } from '../../conformance/scenario.ts'

interface Recorded extends Scenario {
  readonly tags?: readonly string[]
  readonly expect: {
    readonly error?: string
    readonly output?: readonly ScenarioOutput[]
    readonly stores?: Readonly<Record<string, readonly Json[]>>
    readonly describe?: string
  }
}

/** Accidents of Kafka Streams' implementation: there the engine does what the documentation promises. */
const accidents = new Set([
  'delayed-outer',
  'eager-outer',
  'spurious-outer',
  'late-join',
  'double-final',
  'double-emit',
  'initial-as-old',
  'early-sliding',
  'call-order',
  'operator-time',
])

/** `recorded` holds random programs, recorded the same way: those that once differed, and some of each kind. */
const folders = ['./scenarios/', './recorded/'].map((name) => new URL(name, import.meta.url))

/** Kafka Streams leaves the order of names in lists, and of nodes of equal size, to its hash tables. */
function withoutOrder(text: string): string[] {
  const sorted = (list: string): string => list.split(', ').sort().join(', ')
  const blocks: string[] = []
  for (const line of text.split('\n')) {
    const plain = line
      .trimEnd()
      .replace(/extractor class: .*\)/, 'extractor class)')
      .replace(/\[(.*)\]/, (_, list: string) => `[${sorted(list)}]`)
      .replace(/(-->|<--) (.*)/, (_, arrow: string, list: string) => `${arrow} ${sorted(list)}`)
    if (/^ {6}/.test(plain)) blocks[blocks.length - 1] += `\n${plain}`
    else if (plain !== '') blocks.push(plain)
  }
  return blocks.sort()
}

function byTopic(output: readonly ScenarioOutput[]): Record<string, string[]> {
  const topics: Record<string, string[]> = {}
  for (const { step, topic, key, value, timestamp, headers } of output) {
    topics[topic] ??= []
    const shown = { step, key, value: value ?? null, timestamp, ...(headers?.length ? { headers } : {}) }
    topics[topic].push(canonical(shown as unknown as Json))
  }
  return topics
}

function check(scenario: Recorded, result: ScenarioResult): void {
  const { expect } = scenario
  if (expect.error !== undefined) {
    assert.notEqual(result.error, undefined, `must be refused as ${expect.error}`)
    return
  }
  assert.equal(result.error, undefined)
  assert.deepEqual(withoutOrder(result.describe ?? ''), withoutOrder(expect.describe ?? ''))
  if (scenario.describeOnly) return
  assert.deepEqual(byTopic(result.output ?? []), byTopic(expect.output ?? []))
  const content = (stores: Readonly<Record<string, readonly Json[]>> = {}): Record<string, string[]> =>
    Object.fromEntries(Object.entries(stores).map(([name, rows]) => [name, rows.map(canonical).sort()]))
  assert.deepEqual(content(result.stores), content(expect.stores))
}

/** What the engine gives instead, where a scenario is touched by such an accident. */
const ownResults = JSON.parse(
  readFileSync(new URL('./baselines/own-results.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Pick<ScenarioResult, 'output' | 'stores'>>>

for (const file of folders.flatMap((folder) =>
  readdirSync(folder)
    .sort()
    .map((name) => new URL(name, folder)),
)) {
  const scenarios = JSON.parse(readFileSync(file, 'utf8')) as readonly Recorded[]
  describe(file.pathname.replace(/^.*\/(.*)\.json$/, '$1'), () => {
    for (const scenario of scenarios) {
      const own = ownResults[scenario.name]
      if (own === undefined) {
        test(scenario.name, async () => check(scenario, await runScenario(scenario)))
        continue
      }
      test(`${scenario.name}, the engine's own result`, async () => {
        assert.ok(
          scenario.tags?.some((tag) => accidents.has(tag)),
          'only an accident excuses another result',
        )
        check({ ...scenario, expect: { ...scenario.expect, ...own } }, await runScenario(scenario))
      })
    }
  })
}
