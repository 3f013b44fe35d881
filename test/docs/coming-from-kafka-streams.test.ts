/** The guide for people from Kafka Streams names every operator and every difference that the tests know. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import * as millrace from '../../src/index.ts'
import { repositoryRoot } from '../groups.ts'

const guide = readFileSync(join(repositoryRoot, 'docs/guide/coming-from-kafka-streams.md'), 'utf8')
const scenarios = join(repositoryRoot, 'test/conformance-streams')

function scenarioNames(): Set<string> {
  const files = readdirSync(join(scenarios, 'scenarios'))
  const all = files.flatMap(
    (file) => JSON.parse(readFileSync(join(scenarios, 'scenarios', file), 'utf8')) as Array<{ readonly name: string }>,
  )
  return new Set(all.map((scenario) => scenario.name))
}

describe('the guide for people from Kafka Streams', () => {
  test('names every operator', () => {
    const { Topology, Stream, GroupedStream, Table, GroupedTable, CogroupedStream } = millrace
    const missing = [Topology, Stream, GroupedStream, Table, GroupedTable, CogroupedStream]
      .flatMap((handle) => Object.getOwnPropertyNames(handle.prototype))
      .filter((name) => name !== 'constructor' && name !== 'compile' && !guide.includes(`\`${name}\``))
    assert.deepEqual(
      missing.filter((name) => name !== 'windowedBy'),
      [],
    )
  })

  test('names every scenario with a result of its own', () => {
    const own = JSON.parse(readFileSync(join(scenarios, 'baselines', 'own-results.json'), 'utf8')) as object
    assert.deepEqual(
      Object.keys(own).filter((name) => !guide.includes(`\`${name}\``)),
      [],
    )
  })

  test('names no scenario that does not exist', () => {
    const known = scenarioNames()
    const named = [...guide.matchAll(/\[(`[^\]]+`)\]/g)].flatMap((list) => [...(list[1] ?? '').matchAll(/`([^`]+)`/g)])
    assert.ok(named.length > 20)
    assert.deepEqual(
      named.map((match) => match[1] ?? '').filter((name) => !known.has(name)),
      [],
    )
  })
})
