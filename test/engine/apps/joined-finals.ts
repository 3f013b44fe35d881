/** Final results are re-keyed, and are older when they come to the join than its window reaches. */
import { defineApp, serdes, type Stream, type Topology, tumbling } from 'millrace'

const text = { key: serdes.string, value: serdes.json<string>() }

function finalsOf(topology: Topology, topic: string): Stream<string, string> {
  return topology
    .stream(topic, { key: serdes.string, value: serdes.json<number>() })
    .groupByKey()
    .windowedBy(tumbling(1000), { emit: 'on-close' })
    .count()
    .toStream()
    .map((count, window): readonly [string, string] => [window.key, `${window.key}${count}`])
}

export default defineApp({
  applicationId: 'joined-finals',
  build(topology) {
    const joined = (left: string, right: string | null): string => `${left} ${right}`
    const [left, right] = [finalsOf(topology, 'left'), finalsOf(topology, 'right')]
    const all = left.selectKey(() => 'all').repartition(text)
    all.leftJoin(topology.stream('nothing', text), joined, { within: 5 }).to('alone', text)
    const backwards = (key: string): string => [...key].reverse().join('')
    left
      .selectKey((_value, key) => backwards(key))
      .leftJoin(
        right.selectKey((_value, key) => backwards(key)),
        joined,
        { within: 5, key: text.key, left: text.value, right: text.value },
      )
      .to('pairs', text)
  },
})
