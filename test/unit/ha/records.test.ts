import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../../support/properties.ts'
import { decode, encode, type HaRecord, keyOf, largestRecordBytes, states } from '../../../src/ha/log/records.ts'
import { signatureHolds, signatureOf } from '../../../src/ha/log/signature.ts'
import { commandRecord, statusRecord } from './support.ts'

const name = fc.stringMatching(/^[A-Za-z0-9._-]{1,40}$/)
const whole = fc.nat()
const place = fc.record(
  { topic: name, partition: whole, offset: whole, count: fc.integer({ min: 1, max: 99 }) },
  { noNullPrototype: true },
)

const anyRecord: fc.Arbitrary<HaRecord> = fc.oneof(
  fc
    .record({
      podId: name,
      incarnation: name,
      generation: fc.option(whole),
      state: fc.constantFrom(...states),
      paused: fc.boolean(),
      lagRecords: whole,
      faults: fc.array(place, { maxLength: 3 }),
    })
    .map((fields) => statusRecord(fields)),
  fc.record({
    kind: fc.constant('claim' as const),
    epoch: fc.integer({ min: 1, max: 1_000_000 }),
    podId: name,
    nonce: name,
    incarnation: name,
    cause: fc.constantFrom('FAILOVER' as const, 'BOOT' as const),
    commandOffset: fc.option(whole),
    why: fc.string({ maxLength: 50 }),
  }),
  fc.record({ kind: fc.constant('verify' as const), podId: name, nonce: name }),
  fc.record({ id: name, target: fc.option(name), force: fc.boolean(), expectEpoch: whole }).map(commandRecord),
  fc.record({
    kind: fc.constant('release' as const),
    epoch: whole,
    podId: name,
    incarnation: name,
    target: fc.option(name),
    commitId: fc.option(name),
    paused: fc.boolean(),
    commandOffset: fc.option(whole),
    exhausted: fc.boolean(),
    unused: fc.boolean(),
    faults: fc.array(place, { maxLength: 3 }),
  }),
  fc.record({
    kind: fc.constant('result' as const),
    commandOffset: whole,
    commandId: name,
    outcome: fc.constantFrom('DONE' as const, 'REJECTED' as const, 'EXPIRED' as const),
    reason: fc.string({ maxLength: 50 }),
  }),
)

describe('records of the coordinator topic', () => {
  test('every record comes back as it was written', () => {
    fc.assert(
      fc.property(anyRecord, (record) => {
        const { key, value } = encode(record)
        assert.equal(key, keyOf(record))
        // Spread: the generator makes objects without a prototype.
        assert.deepEqual(decode(key, value), { ...record })
      }),
    )
  })

  test('whatever somebody writes is decoded without a throw, and never into more than it says', () => {
    const keys = fc.oneof(
      fc.string(),
      fc.constantFrom('s/a', 't/1/a/n', 't/x/a/n', 'v/a', 'c/a', 'l/1', 'r/1', 's/', 's'),
    )
    fc.assert(
      fc.property(keys, fc.option(fc.oneof(fc.string(), fc.json())), (key, value) => {
        const record = decode(key, value)
        assert.ok(['status', 'claim', 'verify', 'command', 'release', 'result', 'deleted', 'bad'].includes(record.kind))
      }),
    )
  })

  test('fields of the wrong kind, or out of range, are no fields', () => {
    const fields = JSON.parse(encode(statusRecord({})).value ?? '') as Record<string, unknown>
    const broken = { ...fields, lagRecords: -1, generation: 1.5, paused: 'yes', failoverPriority: 2 ** 60, faults: 7 }
    const record = decode('s/a', JSON.stringify(broken))
    assert.equal(record.kind, 'status')
    if (record.kind !== 'status') return
    const { lagRecords, generation, paused, failoverPriority, faults } = record
    assert.deepEqual([lagRecords, generation, paused, failoverPriority, faults], [0, null, false, 0, []])
  })

  test('names of the language are names like any other', () => {
    const value = '{"v":1,"incarnation":"i","role":"__proto__","state":"constructor","configHashes":{"__proto__":"x"}}'
    const record = decode('s/__proto__', value)
    assert.equal(record.kind, 'status')
    if (record.kind !== 'status') return
    assert.deepEqual([record.podId, record.role, record.state], ['__proto__', 'UNKNOWN', 'UNKNOWN'])
    assert.equal(record.configHashes.get('__proto__'), 'x')
    assert.equal(({} as Record<string, unknown>).x, undefined)
    for (const key of ['constructor/a', '__proto__/a', 'toString/a']) assert.equal(decode(key, '{}').kind, 'bad')
  })

  test('what is too long is not read', () => {
    assert.equal(decode('s/a', `{"x":"${'y'.repeat(largestRecordBytes)}"}`).kind, 'bad')
    assert.equal(decode(`s/${'a'.repeat(2000)}`, '{}').kind, 'bad')
    assert.equal(decode(`s/${'a'.repeat(300)}`, '{}').kind, 'bad')
  })

  test('of a version that it does not know a build takes that the pod is alive, and no more', () => {
    const value = '{"v":7,"incarnation":"i","role":"ACTIVE","state":"READY_STANDBY","lagRecords":5}'
    const record = decode('s/a', value)
    assert.equal(record.kind, 'status')
    if (record.kind !== 'status') return
    assert.deepEqual([record.understood, record.role, record.state], [false, 'UNKNOWN', 'UNKNOWN'])
    assert.equal(decode('s/a', '{"v":7}').kind, 'status')
  })

  test('a claim of a newer version is a claim all the same', () => {
    const record = decode('t/5/b/n', '{"v":9,"cause":"MOOD"}')
    assert.equal(record.kind, 'claim')
    if (record.kind !== 'claim') return
    assert.deepEqual([record.epoch, record.podId, record.cause], [5, 'b', 'UNKNOWN'])
  })

  test('a command of a newer version is none that this build would carry out', () => {
    const record = decode('c/x', '{"v":2,"command":"SWITCH","expectEpoch":1}')
    assert.equal(record.kind === 'command' && record.command, 'UNKNOWN')
  })

  test('a signature holds for the command it was made for, and no other', () => {
    const command = commandRecord({ id: 'x', target: 'a', force: false, expectEpoch: 3 })
    const signed = { ...command, signature: signatureOf('secret', 'app', command) }
    assert.ok(signatureHolds('secret', 'app', signed))
    assert.ok(!signatureHolds('secret', 'other', signed))
    assert.ok(!signatureHolds('guess', 'app', signed))
    assert.ok(!signatureHolds('secret', 'app', { ...signed, force: true }))
    assert.ok(!signatureHolds('secret', 'app', { ...signed, id: 'y' }))
    assert.ok(!signatureHolds('secret', 'app', { ...signed, expectEpoch: 4 }))
    assert.ok(!signatureHolds('secret', 'app', command))
  })
})
