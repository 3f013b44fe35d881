/** A record that cannot be decoded, processed or encoded: fails the run, is skipped, or becomes a dead letter. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { byKey, type In, lastByKey, type Out, TestEngine } from './support/engine.ts'

const good = (n: number): In => ({ key: `k${n % 3}`, value: { n } })
const faults: Readonly<Record<'decoding' | 'processing' | 'producing', readonly In[]>> = {
  decoding: [{ key: 'k1', value: Buffer.from('{"n":') }],
  processing: [
    { key: 'k1', value: { n: 100, fault: 'throws' } },
    { key: 'k2', value: { n: 101, fault: 'rejects' } },
  ],
  producing: [{ key: 'k1', value: { n: 102, fault: 'unencodable' } }],
}
const sentences = {
  decoding: /could not be decoded/,
  processing: /order 100 is wrong/,
  producing: /could not encode/,
} as const

function feed(kind: keyof typeof faults): In[] {
  const before = Array.from({ length: 30 }, (_, n) => good(n))
  const after = Array.from({ length: 30 }, (_, n) => good(n + 30))
  return [...before, ...faults[kind], ...after]
}

const numbers = (records: readonly Out[]): number[] =>
  records.map(({ value }) => (value as { n: number }).n).sort((a, b) => a - b)

for (const kind of ['decoding', 'processing', 'producing'] as const) {
  describe(`an error in ${kind}`, () => {
    test('fails the run, naming the record, and commits nothing behind it', async (t) => {
      const engine = await TestEngine.start(t, 'faulty', {
        [`errors.${kind}`]: 'fail',
        'broker.embedded.partitions': 1,
        'runtime.exit-on-failure': true,
      })
      await engine.put('orders', feed(kind))
      await engine.reaches('FAILED')
      const { failure } = engine.runtime.view.state()
      assert.match(failure?.message ?? '', sentences[kind])
      assert.match(failure?.message ?? '', /orders\/0 at offset 30/)
      assert.deepEqual(
        numbers(await engine.read('checked')).filter((n) => n >= 30),
        [],
        'nothing of the failed epoch is committed',
      )
      assert.equal(await engine.runtime.ended, 1)
    })

    test('is skipped and counted', async (t) => {
      const engine = await TestEngine.start(t, 'faulty', { [`errors.${kind}`]: 'skip' })
      await engine.put('orders', feed(kind))
      await engine.idle()
      const all = Array.from({ length: 60 }, (_, n) => n)
      assert.deepEqual(numbers(await engine.read('checked')), all)
      const dropped = engine.dropped('deserialize') + engine.dropped('handler')
      assert.equal(dropped, faults[kind].length)
    })

    test('becomes a dead letter in the same transaction, with the reason in its headers', async (t) => {
      const engine = await TestEngine.start(t, 'faulty', {
        [`errors.${kind}`]: 'dead-letter',
        'errors.dead-letter-topic': 'refused',
        'broker.embedded.partitions': 1,
      })
      await engine.put('orders', feed(kind))
      await engine.idle()
      assert.equal(numbers(await engine.read('checked')).length, 60)
      const letters = await engine.read('refused')
      assert.equal(letters.length, faults[kind].length)
      letters.forEach(({ key, value, headers }, i) => {
        const refused = faults[kind][i] as In
        assert.equal(key, refused.key)
        const sent = refused.value instanceof Uint8Array ? '{"n":' : refused.value
        assert.deepEqual(value, sent, 'key and value as they came')
        assert.equal(headers['__streams.errors.topic'], 'orders')
        assert.equal(headers['__streams.errors.partition'], '0')
        assert.equal(headers['__streams.errors.offset'], String(30 + i))
        assert.notEqual(headers['__streams.errors.exception'] ?? '', '')
        assert.notEqual(headers['__streams.errors.message'] ?? '', '')
      })
    })
  })
}

describe('a record that is dropped although nothing failed', () => {
  const start = 1_700_000_040_000
  const timed = (value: object): In => ({ key: 'a', value, timestamp: 1 })
  const feed: In[] = [
    timed({ amount: 1, at: start }),
    timed({ amount: 2 }),
    timed({ amount: 3, at: start + 200_000 }),
    timed({ amount: 4, at: start + 1000 }),
    { key: null, value: { amount: 5, at: start + 200_000 } },
  ]

  for (const policy of ['count', 'dead-letter'] as const) {
    test(`is counted${policy === 'count' ? '' : ', and becomes a dead letter with the reason'} (${policy})`, async (t) => {
      const engine = await TestEngine.start(t, 'own-time', {
        'errors.dropped': policy,
        'broker.embedded.partitions': 1,
      })
      await engine.put('timed', feed)
      await engine.idle()
      for (const reason of ['negative_timestamp', 'late', 'null_key'] as const) assert.equal(engine.dropped(reason), 1)
      const letters = await engine.read('own-time-dead-letters')
      if (policy === 'count') {
        assert.deepEqual(letters, [])
        return
      }
      assert.deepEqual(
        letters.map(({ value, headers }) => [
          (value as { amount: number }).amount,
          headers['__streams.errors.offset'],
          headers['__streams.errors.message'],
        ]),
        [
          [2, '1', 'KSTREAM-SOURCE-0000000000 dropped the record: its timestamp is negative'],
          [4, '3', letters[1]?.headers['__streams.errors.message']],
          [5, '4', letters[2]?.headers['__streams.errors.message']],
        ],
      )
      assert.match(letters[1]?.headers['__streams.errors.message'] ?? '', /came after the time/)
      assert.match(letters[2]?.headers['__streams.errors.message'] ?? '', /has no key/)
    })
  }
})

describe('a record that was changed before it was dropped', () => {
  test('becomes a dead letter as it came', async (t) => {
    const engine = await TestEngine.start(t, 'changed', {
      'errors.dropped': 'dead-letter',
      'broker.embedded.partitions': 1,
    })
    const start = 1_700_000_040_000
    await engine.put('readings', [
      { key: 'a', value: { celsius: 10 }, timestamp: start + 300_000 },
      { key: 'a', value: { celsius: 20 }, timestamp: start },
    ])
    await engine.idle()
    assert.equal(engine.dropped('late'), 1)
    const letters = await engine.read('changed-dead-letters')
    assert.deepEqual(
      letters.map(({ key, value, headers }) => [key, value, headers['__streams.errors.offset']]),
      [['a', { celsius: 20 }, '1']],
    )
  })
})

describe('a skipped record', () => {
  test('leaves no trace in the state behind the fault', async (t) => {
    const engine = await TestEngine.start(t, 'faulty', { 'errors.processing': 'skip' })
    await engine.put('orders', feed('processing'))
    await engine.idle()
    assert.deepEqual(lastByKey(await engine.read('counts')), { k0: 20, k1: 20, k2: 20 })
    assert.deepEqual(Object.keys(byKey(await engine.read('checked'))).sort(), ['k0', 'k1', 'k2'])
  })
})

describe('a record of a global table that cannot be decoded', () => {
  const names: In[] = [
    { key: 'x', value: 'Xavier' },
    { key: 'y', value: Buffer.from('"Yv') },
    { key: 'z', value: Buffer.from('"Zo') },
    { key: 'x', value: 'Xenia' },
  ]

  for (const policy of ['skip', 'dead-letter'] as const) {
    test(`is passed over and counted, and the rows around it are there (${policy})`, async (t) => {
      const config = { 'errors.decoding': policy, 'engine.lanes.count': 2, 'broker.embedded.partitions': 1 }
      const engine = await TestEngine.start(t, 'queried', config)
      await engine.put('names', names)
      await engine.reaches('RUNNING')
      const rows = engine.runtime.store<string, string>('names')
      await eventually('the rows are there', async () => (await rows.get('x')) === 'Xenia')
      assert.deepEqual(
        (await rows.all()).map(({ key }) => key),
        ['x'],
      )
      await eventually('they are counted', () => engine.dropped('deserialize') === 2)
      const told = engine.log.filter(({ message }) => message.includes('the global table'))
      assert.match(told[0]?.message ?? '', /names\/0 at offset 1 could not be decoded/)
      assert.equal(told.length, 1, 'the first of them, once for all lanes')
      assert.deepEqual(await engine.read('queried-dead-letters'), [])
    })
  }

  test('fails the run, naming the record', async (t) => {
    const engine = await TestEngine.start(t, 'queried', { 'broker.embedded.partitions': 1 })
    await engine.put('names', names)
    await engine.reaches('FAILED')
    assert.match(engine.runtime.view.state().failure?.message ?? '', /names\/0 at offset 1 could not be decoded/)
  })
})
