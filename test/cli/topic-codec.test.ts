import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FeedRecord, parseFeedLine } from '../../src/cli/feed/feed-lines.ts'
import { FeedEncoder, PrintDecoder } from '../../src/cli/feed/topic-codec.ts'
import { jsonReplacer } from '../../src/serde/shown.ts'
import { serdes } from '../../src/serde/index.ts'
import type { Serde } from '../../src/serde/serde.ts'
import type { CompiledTopology } from '../../src/topology/compiled.ts'

type AnySerde = Serde<unknown>

/** As much of a topology as the command line looks at. */
function topologyWith(parts: {
  source?: { topics: string[]; key: unknown; value: unknown }
  sink?: { topic: string | (() => string); key: unknown; value: unknown }
}): CompiledTopology {
  const { source, sink } = parts
  return {
    sources: source
      ? [{ kind: 'topics', topics: source.topics, pattern: undefined, keySerde: source.key, valueSerde: source.value }]
      : [],
    nodes: sink ? [{ spec: { op: 'sink', topic: sink.topic, keySerde: sink.key, valueSerde: sink.value } }] : [],
  } as unknown as CompiledTopology
}

function fed(key: string | null, value: unknown): FeedRecord {
  return { key, value, timestamp: 0, headers: [], partition: undefined }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('what a feed writes', () => {
  test('is UTF-8 for keys and JSON for values where the application does not name the topic', () => {
    const encoder = new FeedEncoder(topologyWith({}), 'in')
    assert.deepEqual(new Uint8Array(encoder.key(fed('ä', 1)) ?? []), bytes('ä'))
    assert.deepEqual(new Uint8Array(encoder.value(fed('a', { b: 1 })) ?? []), bytes('{"b":1}'))
    assert.deepEqual(new Uint8Array(encoder.value(fed('a', 'text')) ?? []), bytes('"text"'))
  })

  test('keeps null a null', () => {
    const encoder = new FeedEncoder(null, 'in')
    assert.equal(encoder.key(fed(null, null)), null)
    assert.equal(encoder.value(fed(null, null)), null)
  })

  const shapes: ReadonlyArray<readonly [AnySerde, given: unknown, back: unknown]> = [
    [serdes.string as AnySerde, 'text', 'text'],
    [serdes.int32 as AnySerde, 7, 7],
    [serdes.int64 as AnySerde, 7, 7n],
    [serdes.float64 as AnySerde, 0.5, 0.5],
    [serdes.json(), { a: [1] }, { a: [1] }],
  ]
  for (const [serde, given, back] of shapes) {
    test(`is what the source's serde '${serde.name}' reads`, () => {
      const source = { topics: ['in'], key: serdes.string, value: serde }
      const encoded = new FeedEncoder(topologyWith({ source }), 'in').value(fed('a', given))
      assert.deepEqual(serde.deserialize(encoded ?? new Uint8Array()), back)
    })
  }

  test('is JSON where the serde does not take the value, so that the engine judges it', () => {
    const source = { topics: ['in'], key: serdes.string, value: serdes.int32 }
    const encoded = new FeedEncoder(topologyWith({ source }), 'in').value(fed('a', { no: 'number' }))
    assert.deepEqual(new Uint8Array(encoded ?? []), bytes('{"no":"number"}'))
  })

  const long = 9_007_199_254_740_993n
  const digits: ReadonlyArray<readonly [AnySerde, line: string, back: unknown]> = [
    [serdes.int64 as AnySerde, `${long}`, long],
    [serdes.int64 as AnySerde, `-${long}`, -long],
    [serdes.int64 as AnySerde, `"${long}"`, long],
    [serdes.float64 as AnySerde, '100000000000000000000', 1e20],
    [serdes.messagePack({ longs: 'bigint' }), `{"id":${long}}`, { id: long }],
    [serdes.string as AnySerde, `"${long}"`, `${long}`],
  ]
  for (const [serde, value, back] of digits) {
    test(`has all digits that the source's serde '${serde.name}' can hold: ${value}`, () => {
      const source = { topics: ['in'], key: serdes.string, value: serde }
      const record = parseFeedLine(`{"value":${value}}`, 'feed', 1)
      const encoded = new FeedEncoder(topologyWith({ source }), 'in').value(record)
      assert.deepEqual(serde.deserialize(encoded ?? new Uint8Array()), back)
    })
  }

  for (const value of [serdes.json(), undefined]) {
    test(`has all digits in JSON ${value ? 'of the application' : 'of nobody'}`, () => {
      const topology = value ? topologyWith({ source: { topics: ['in'], key: serdes.string, value } }) : null
      const text = `{"id":${long},"of":[-${long},0.12345678901234566,1e400]}`
      const encoded = new FeedEncoder(topology, 'in').value(parseFeedLine(`{"value":${text}}`, 'feed', 1))
      assert.equal(
        new TextDecoder().decode(encoded ?? undefined),
        `{"id":${long},"of":[-${long},0.12345678901234566,null]}`,
      )
    })
  }

  test('has all digits of a key', () => {
    const source = { topics: ['in'], key: serdes.int64, value: serdes.json() }
    const encoded = new FeedEncoder(topologyWith({ source }), 'in').key(fed(`${long}`, null))
    assert.equal(serdes.int64.deserialize(encoded ?? new Uint8Array()), long)
  })

  test('turns a key of digits into the number that the serde of keys wants', () => {
    const source = { topics: ['in'], key: serdes.int64, value: serdes.json() }
    const encoded = new FeedEncoder(topologyWith({ source }), 'in').key(fed('42', null))
    assert.equal(serdes.int64.deserialize(encoded ?? new Uint8Array()), 42n)
  })
})

describe('what printing shows', () => {
  test('are windowed keys as key, start and end', () => {
    const key = serdes.windowed(serdes.string, 3_600_000)
    const sink = { topic: 'out', key, value: serdes.count }
    const decoder = new PrintDecoder(topologyWith({ sink }), 'out')
    const encoded = key.serialize({ key: 'ORD', start: 7_200_000, end: 10_800_000 })
    assert.deepEqual(decoder.key(encoded), { key: 'ORD', start: 7_200_000, end: 10_800_000 })
    assert.equal(decoder.value(serdes.count.serialize(5)), 5)
  })

  test('are records of a topic that is chosen per record, by the serdes of that sink', () => {
    const sink = { topic: () => 'anything', key: serdes.string, value: serdes.int32 }
    const decoder = new PrintDecoder(topologyWith({ sink }), 'chosen')
    assert.equal(decoder.value(serdes.int32.serialize(5)), 5)
  })

  test('are text and JSON where nobody knows the topic, base64 where they are neither', () => {
    const decoder = new PrintDecoder(topologyWith({}), 'other')
    assert.equal(decoder.key(bytes('key')), 'key')
    assert.deepEqual(decoder.value(bytes('{"a":1}')), { a: 1 })
    assert.equal(decoder.value(bytes('plain')), 'plain')
    assert.equal(decoder.value(Uint8Array.of(255, 254)), '//4=')
    assert.equal(decoder.key(null), null)
  })

  test('falls back to text where the serde refuses the bytes', () => {
    const sink = { topic: 'out', key: serdes.string, value: serdes.int32 }
    assert.equal(new PrintDecoder(topologyWith({ sink }), 'out').value(bytes('nonsense')), 'nonsense')
  })

  test('writes as JSON what JSON has no word for', () => {
    const value = {
      big: 5n,
      huge: 2n ** 60n,
      bytes: Uint8Array.of(1),
      buffer: Buffer.from([1]),
      map: new Map([['a', 1]]),
    }
    assert.deepEqual(JSON.parse(JSON.stringify(value, jsonReplacer)), {
      big: 5,
      huge: '1152921504606846976',
      bytes: 'AQ==',
      buffer: 'AQ==',
      map: { a: 1 },
    })
  })
})
