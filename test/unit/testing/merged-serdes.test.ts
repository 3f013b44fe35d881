/** Streams that are merged carry bytes of several serdes: what is made of them has all values, whichever serde writes it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineApp, type Serde, serdes, type Stream } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

type Values = Stream<string, string>
type Value = { readonly value?: Serde<string> }

const key = serdes.string
const named: Readonly<Record<string, Value>> = {
  'no serde': {},
  'one serde': { value: serdes.json<string>() },
  'another serde': { value: serdes.json<string>() },
}
const ways: Readonly<Record<string, (stream: Values) => Values>> = {
  'as it is': (stream) => stream,
  mapped: (stream) => stream.mapValues((value) => value),
  'by topic': (stream) => stream.repartition({ key }),
}
const ends: Readonly<Record<string, (stream: Values, value: Value) => void>> = {
  written: (stream, value) => stream.to('out', { key, ...value }),
  'by topic, then written': (stream, value) => stream.repartition({ key, ...value }).to('out', { key, ...value }),
  reduced: (stream, value) =>
    stream
      .groupByKey({ key, ...value })
      .reduce((_, next) => next)
      .toStream()
      .to('out'),
  'reduced elsewhere': (stream, value) =>
    stream
      .groupBy((_, name) => name, { key, ...value })
      .reduce((_, next) => next)
      .toStream()
      .to('out'),
}

/** Each choice of one of each. */
const choices = (...of: ReadonlyArray<readonly string[]>): string[][] =>
  of.reduce<string[][]>((all, each) => all.flatMap((chosen) => each.map((one) => [...chosen, one])), [[]])

for (const end of Object.keys(ends)) {
  test(`two streams that are merged and ${end} keep their values`, async () => {
    const [serdesOf, waysOf] = [Object.keys(named), Object.keys(ways)]
    for (const choice of choices(serdesOf, waysOf, serdesOf, waysOf, serdesOf)) {
      const [left, leftWay, right, rightWay, sink] = choice as [string, string, string, string, string]
      const app = defineApp({
        applicationId: 'merged',
        build(topology) {
          const [a, b] = [['a', left, leftWay] as const, ['b', right, rightWay] as const].map(
            ([topic, serde, way]) => ways[way]?.(topology.stream(topic, { key, ...named[serde] })) as Values,
          )
          ends[end]?.((a as Values).merge(b as Values), named[sink] as Value)
        },
      })
      const driver = new TopologyTestDriver(app)
      await driver.input('a').pipe('k', 'of a')
      await driver.input('b').pipe('k', 'of b')
      const told = driver.output('out').readAll()
      driver.close()
      assert.deepEqual(
        told.map(({ value }) => value),
        ['of a', 'of b'],
        choice.join(', '),
      )
    }
  })
}
