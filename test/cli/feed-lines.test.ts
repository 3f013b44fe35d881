import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../support/properties.ts'
import { parseFeedLine } from '../../src/cli/feed/feed-lines.ts'

const parse = (text: string) => parseFeedLine(text, 'flights.ndjson', 7)

describe('a line of a feed', () => {
  test('gives key, value, timestamp, headers and partition', () => {
    const line = '{"key":"ORD","value":{"delay":5},"timestamp":9,"headers":[["a","1"],["a","2"]],"partition":3}'
    assert.deepEqual(parse(line), {
      key: 'ORD',
      value: { delay: 5 },
      timestamp: 9,
      headers: [
        ['a', '1'],
        ['a', '2'],
      ],
      partition: 3,
    })
  })

  test('needs a value alone', () => {
    assert.deepEqual(parse('{"value":null}\r'), {
      key: null,
      value: null,
      timestamp: undefined,
      headers: [],
      partition: undefined,
    })
  })

  test('takes headers as an object too', () => {
    assert.deepEqual(parse('{"value":1,"headers":{"trace":"x"}}').headers, [['trace', 'x']])
  })

  const malformed: ReadonlyArray<readonly [line: string, says: RegExp]> = [
    ['{"key":"a","value":', /is not JSON/],
    ['', /is not JSON/],
    ['[1,2]', /is not an object/],
    ['"text"', /is not an object/],
    ['null', /is not an object/],
    ['{"key":"a"}', /has no "value"/],
    ['{"key":1,"value":1}', /"key" that is neither a string nor null/],
    ['{"value":1,"timestamp":"yesterday"}', /"timestamp"/],
    ['{"value":1,"timestamp":-1}', /"timestamp"/],
    ['{"value":1,"timestamp":1.5}', /"timestamp"/],
    ['{"value":1,"partition":-1}', /"partition"/],
    ['{"value":1,"headers":"x"}', /"headers"/],
    ['{"value":1,"headers":[["a"]]}', /"headers"/],
    ['{"value":1,"headers":{"a":1}}', /"headers"/],
    ['{"value":1,"time":5}', /unknown field "time"/],
  ]
  for (const [line, says] of malformed) {
    test(`is refused with its number and its fault: ${line || 'an empty text'}`, () => {
      assert.throws(() => parse(line), { code: 'FEED_INVALID', message: says })
      assert.throws(() => parse(line), {
        message: /^Line 7 of flights\.ndjson .*nothing was sent from this line on\.$/,
      })
    })
  }

  test('comes back as it was written, whatever is in it', () => {
    const record = fc.record({
      key: fc.option(fc.string(), { nil: null }),
      value: fc.jsonValue(),
      timestamp: fc.nat(),
      partition: fc.nat(),
    })
    fc.assert(
      fc.property(record, (written) => {
        const { headers, ...read } = parse(JSON.stringify(written))
        assert.deepEqual(headers, [])
        const numbers = JSON.stringify(read, (_name, each) => (typeof each === 'bigint' ? Number(each) : each))
        assert.deepEqual(JSON.parse(numbers), JSON.parse(JSON.stringify(written)))
      }),
    )
  })

  test('is refused in a sentence or taken, never anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        try {
          parse(text)
        } catch (error) {
          assert.equal((error as { code?: string }).code, 'FEED_INVALID')
        }
      }),
    )
  })
})
