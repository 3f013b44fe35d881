/** Which records of the topics of a task are found to lie elsewhere than those that they are to meet. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ByteRange } from '../../../src/base/byte-range.ts'
import { keySlot } from '../../../src/base/hash.ts'
import { compile, serdes, type Topology } from '../../../src/index.ts'
import { LaidElsewhere } from '../../../src/lanes/levels/laid-elsewhere.ts'
import { Affinity, type SplitMode } from '../../../src/topology/affinity.ts'
import { splitTopology } from '../../../src/topology/split.ts'

const text = { key: serdes.string, value: serdes.string }
const partitions = 4

/** Where the producer of a topic puts a key, given where Kafka's default partitioner puts it. */
type Lays = (partition: number, n: number) => number
const byKey: Lays = (partition) => partition
const elsewhere: Lays = (_, n) => n % partitions

/** What is said of so many records of each topic, in turn. */
function said(
  build: (topology: Topology) => void,
  producers: Readonly<Record<string, Lays>>,
  { split = 'repartition-topics' as SplitMode, records = 200, keys = 1000 } = {},
): string[] {
  const topology = splitTopology(compile(build), split)
  const tasks = topology.subtopologies.map(() => partitions)
  const affinity = Affinity.from({ lanes: 1, split, tasks, stateful: tasks.map(() => true) })
  const laid = new LaidElsewhere(topology)
  const messages: string[] = []
  for (let n = 0; n < records; n++) {
    for (const [topic, lays] of Object.entries(producers)) {
      const source = topology.sources.findIndex(({ topics }) => topics[0] === topic)
      if (!laid.looksAt(source)) continue
      const key = Buffer.from(`key-${n % keys}`)
      const task = lays(keySlot(key) % partitions, n)
      const message = laid.look(source, { topic, offset: n, task, key: ByteRange.of(key) }, affinity)
      if (message !== undefined) messages.push(message)
    }
  }
  return messages
}

const joined = (t: Topology): void => void t.stream('a', text).join(t.table('b', text), String).to('out')
const rekeyed = (t: Topology): void =>
  void t.stream('a', text).selectKey(String).join(t.table('b', text), String).to('out')

describe('records that lie elsewhere than those that they are to meet', () => {
  test('are told of once, by topic', () => {
    const [message, ...more] = said(joined, { a: elsewhere, b: byKey })
    assert.match(
      message ?? '',
      /^the record a\/\d at offset \d+ has a key .* and the records of b lie where that puts them/,
    )
    assert.deepEqual(more, [])
    assert.match(said(joined, { a: byKey, b: elsewhere })[0] ?? '', /^the record b\//)
  })

  test('also where few come', () => {
    assert.equal(said(rekeyed, { b: elsewhere }, { records: 10 }).length, 1)
  })

  test('but not where all lie so, as one producer puts them', () => {
    assert.deepEqual(said(joined, { a: elsewhere, b: elsewhere }), [])
  })

  test('where all lie by their keys', () => {
    assert.deepEqual(said(joined, { a: byKey, b: byKey }), [])
    assert.deepEqual(said(rekeyed, { a: elsewhere, b: byKey }), [])
  })

  test('where one topic has few keys, which lie where these say by chance', () => {
    assert.deepEqual(said(joined, { a: elsewhere, b: byKey }, { keys: 5 }), [])
  })

  test('where they are merged with others and meet nobody', () => {
    const merged = (t: Topology): void => {
      const counted = t.stream('b', text).groupByKey().count().toStream().mapValues(String)
      t.stream('a', text).merge(counted).to('out')
    }
    assert.deepEqual(said(merged, { a: elsewhere, b: byKey }), [])
  })

  test('where they meet nobody', () => {
    assert.deepEqual(
      said((t) => t.stream('a', text).groupByKey().count(), { a: elsewhere }),
      [],
    )
    assert.deepEqual(
      said(
        (t) =>
          t
            .stream('a', text)
            .join(t.globalTable('b', text), String, { on: (value) => value })
            .to('out'),
        {
          a: elsewhere,
        },
      ),
      [],
    )
  })

  test('nor in the process, where keys have a task of their own', () => {
    assert.deepEqual(said(joined, { a: elsewhere, b: byKey }, { split: 'in-process' }), [])
  })
})
