/** CloudEvents as headers of records, through the whole engine. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { type CloudEvent, cloudEvents, defineApp, type Headers, serdes } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

/** The example of the Kafka protocol binding, 3.2.3. */
const ofSpecification: Headers = [
  ['ce_specversion', Buffer.from('1.0')],
  ['ce_type', Buffer.from('com.example.someevent')],
  ['ce_source', Buffer.from('/mycontext/subcontext')],
  ['ce_id', Buffer.from('1234-1234-1234')],
  ['ce_time', Buffer.from('2018-04-05T03:56:24Z')],
  ['content-type', Buffer.from('application/avro')],
]

const event: CloudEvent = {
  specversion: '1.0',
  type: 'com.example.someevent',
  source: '/mycontext/subcontext',
  id: '1234-1234-1234',
  time: '2018-04-05T03:56:24Z',
  datacontenttype: 'application/avro',
}

describe('CloudEvents', () => {
  test('reads the example of the specification, and writes it', () => {
    assert.deepEqual(cloudEvents.read(ofSpecification), event)
    const written = cloudEvents.write(event)
    assert.deepEqual(
      new Map(written),
      new Map(ofSpecification.map(([name, value]) => [name, Buffer.from(value as Uint8Array).toString()])),
    )
  })

  test('anything that is written is read again, beside other headers', () => {
    const text = fc.string({ unit: 'grapheme', minLength: 1 })
    const extension = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/).filter((name) => name !== 'data')
    const events = fc
      .tuple(
        fc.dictionary(extension, text, { noNullPrototype: true }),
        fc.record({ id: text, source: text, type: text }),
      )
      .map(([more, must]): CloudEvent => ({ specversion: '1.0', ...more, ...must }))
    fc.assert(
      fc.property(events, (each) => {
        const headers = cloudEvents.write(each, [...cloudEvents.write(event), ['trace', 'x']])
        assert.deepEqual(cloudEvents.read(headers), each)
        assert.deepEqual(headers[0], ['trace', 'x'])
      }),
    )
  })

  test('a record without all that an event needs is none', () => {
    for (const missing of ['ce_id', 'ce_source', 'ce_type', 'ce_specversion'])
      assert.equal(cloudEvents.read(ofSpecification.filter(([name]) => name !== missing)), undefined)
    assert.equal(cloudEvents.read([]), undefined)
    assert.throws(() => cloudEvents.write({ ...event, source: '' }), /has no source/)
    for (const name of ['dataRef', 'data', 'a-b', '__proto__x'])
      assert.throws(() => cloudEvents.write({ ...event, [name]: 'x' }), /is no name/)
  })

  test('goes through an application: chosen by its type, answered with another', async () => {
    const app = defineApp({
      applicationId: 'events',
      build: (topology) =>
        topology
          .stream('in', { value: serdes.messagePack<{ n: number }>() })
          .filter((_value, _key, { headers }) => cloudEvents.read(headers)?.type === 'asked')
          .process<string, { n: number }>((context) => (value, key, { headers }) => {
            const asked = cloudEvents.read(headers)
            const answer = { id: `${asked?.id}-1`, source: '/answers', type: 'answered' }
            return context.forward(key, { n: value.n + 1 }, { headers: cloudEvents.write(answer, headers) })
          })
          .to('out'),
    })
    const driver = new TopologyTestDriver(app)
    const input = driver.input<string, { n: number }>('in')
    await input.pipe('a', { n: 1 }, { headers: cloudEvents.write({ id: '1', source: '/x', type: 'asked', old: 'x' }) })
    await input.pipe('a', { n: 5 }, { headers: cloudEvents.write({ id: '2', source: '/x', type: 'other' }) })
    const out = driver.output<string, { n: number }>('out').readAll()
    assert.deepEqual(
      out.map(({ value, headers }) => [value, cloudEvents.read(headers)]),
      [[{ n: 2 }, { specversion: '1.0', id: '1-1', source: '/answers', type: 'answered' }]],
    )
    driver.close()
  })
})
