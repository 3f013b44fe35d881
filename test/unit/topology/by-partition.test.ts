import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compile, serdes, type Topology } from '../../../src/index.ts'
import { planOf } from '../../../src/topology/plan.ts'

const text = { key: serdes.string, value: serdes.string }
const noted: string[] = []
const note = (value: string): void => void noted.push(value)

/** Of each sub-topology. */
function shared(build: (topology: Topology) => void): Array<string | undefined> {
  return planOf(compile(build)).subtopologies.map(({ sharedBy }) => sharedBy)
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
  for (const [name, build] of Object.entries(cases)) test(name, () => assert.deepEqual(shared(build), ['partition']))

  test('beside what it hands over', () => {
    const found = shared((t) => {
      const again = t.stream('a', text).selectKey(String)
      again.to('out')
      again.groupByKey().count()
    })
    assert.deepEqual(found, ['partition', 'key'])
  })
})

describe('a sub-topology is shared out by key', () => {
  test('where keys stay as they are', () => {
    assert.deepEqual(
      shared((t) => t.stream('a', text).peek(note).mapValues(String).to('out')),
      ['key'],
    )
  })

  test('where the only change of the key is for a hand-over', () => {
    const found = shared((t) => {
      t.stream('a', text).peek(note).selectKey(String).repartition().to('out')
    })
    assert.deepEqual(found, ['key', 'key'])
  })

  test('where a processor writes nothing', () => {
    assert.deepEqual(
      shared((t) => t.stream('a', text).process(() => note)),
      ['key'],
    )
  })

  test('where no partition brings its records', () => {
    const found = shared((t) => {
      t.scheduled('ticks', { every: '1s', ...text, emit: () => ({ key: 'a', value: 'b' }) })
        .selectKey(String)
        .to('out')
    })
    assert.deepEqual(found, ['key'])
  })

  test('in the order of their partition, where those of one key come from several places', () => {
    const found = shared((t) => {
      t.stream('a', text).merge(t.stream('b', text)).selectKey(String).to('out')
      t.stream(['c', 'd'], text).selectKey(String).to('out')
      t.stream(/^e/, text).selectKey(String).to('out')
      t.stream('f', text).repartition().merge(t.stream('g', text)).selectKey(String).to('out')
    })
    assert.deepEqual(found, ['partition-of-key', 'partition-of-key', 'partition-of-key', 'key', 'partition-of-key'])
  })
})
