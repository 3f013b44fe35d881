/** What the exactly-once verifier looks at: every kind of result whose history betrays a loss, a double or a swap. */
import { defineApp, serdes, tumbling } from 'millrace'

const text = { key: serdes.string, value: serdes.string }

const prefix = process.env.VERIFIER_PREFIX ?? 'verifier'
const topic = (name: string): string => `${prefix}-${name}`

/** Input values are `sequence|amount|group`, the sequence counting up per key. */
const sequenceOf = (value: string): string => value.slice(0, value.indexOf('|'))
const amountOf = (value: string): number => Number(value.split('|')[1])
const groupOf = (value: string): string => value.slice(value.lastIndexOf('|') + 1)

export default defineApp({
  applicationId: prefix,
  build(topology) {
    const input = topology.stream(topic('in'), text)
    input.to(topic('echo'), text)

    const byKey = input.groupByKey()
    byKey
      .aggregate(
        () => '0',
        (sum, value) => String(Number(sum) + amountOf(value)),
        { store: 'sums' },
      )
      .toStream()
      .to(topic('sum'), text)
    byKey
      .aggregate(
        () => '',
        (list, value) => (list === '' ? sequenceOf(value) : `${list},${sequenceOf(value)}`),
        { store: { name: 'lists', value: serdes.string } },
      )
      .toStream()
      .to(topic('list'), text)
    byKey
      .windowedBy(tumbling('10s', { grace: '1h' }))
      .count({ store: 'windows' })
      .toStream()
      .map((count, windowed) => [`${windowed.key}@${windowed.start}`, String(count)])
      .to(topic('window'), text)
    input
      .groupBy(groupOf, text)
      .count({ store: 'groups' })
      .toStream()
      .mapValues((count) => String(count))
      .to(topic('count'), text)
  },
})
