import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, serdes, type Topology } from '../../../src/index.ts'
import { planOf } from '../../../src/topology/plan.ts'

const text = { key: serdes.string, value: serdes.string }
const noted: string[] = []
const note = (value: string): void => void noted.push(value)

/** Of each sub-topology. */
function byPartition(build: (topology: Topology) => void): Array<boolean | undefined> {
  return planOf(compile(build)).subtopologies.map((subtopology) => subtopology.byPartition)
}

describe('a sub-topology takes a partition in one task', () => {
  const cases: Record<string, (topology: Topology) => void> = {
    'where a sink writes under another key': (t) => t.stream('a', text).selectKey(String).to('out'),
    'also behind further steps': (t) =>
      t
        .stream('a', text)
        .map((value) => [value, value])
        .filter(Boolean)
        .to('out'),
    'where a function may do something outside': (t) => t.stream('a', text).selectKey(String).foreach(note),
    'where a processor forwards what it likes': (t) =>
      t
        .stream('a', text)
        .process<string, string>((context) => (value) => void context.forward(value, value))
        .to('out'),
  }
  for (const [name, build] of Object.entries(cases)) test(name, () => assert.deepEqual(byPartition(build), [true]))

  test('beside what it hands over', () => {
    const found = byPartition((t) => {
      const again = t.stream('a', text).selectKey(String)
      again.to('out')
      again.groupByKey().count()
    })
    assert.deepEqual(found, [true, false])
  })
})

describe('a sub-topology is spread by key', () => {
  test('where keys stay as they are', () => {
    const found = byPartition((t) => t.stream('a', text).peek(note).mapValues(String).to('out'))
    assert.deepEqual(found, [false])
  })

  test('where the only change of the key is for a hand-over', () => {
    const found = byPartition((t) => {
      t.stream('a', text).peek(note).selectKey(String).repartition().to('out')
    })
    assert.deepEqual(found, [false, false])
  })

  test('where it has rows to find', () => {
    const found = byPartition((t) => {
      const a = t.stream('a', text)
      a.groupByKey().count()
      a.selectKey(String).to('out')
    })
    assert.deepEqual(found, [false])
  })

  test('where a processor writes nothing', () => {
    const found = byPartition((t) => t.stream('a', text).process(() => note))
    assert.deepEqual(found, [false])
  })
})
