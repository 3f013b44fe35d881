import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SuiteContext } from './suite.ts'
import { newTopic, outsider, Producer, readToEnd, refused, refusedAs, unique, valuesOf } from './support.ts'

export function transactionTests(context: SuiteContext): void {
  const stableOffset = async (topic: string): Promise<number | undefined> =>
    (await context.one.listOffsets([{ topic, partition: 0 }], 'stable'))[0]?.offset

  test('what a transaction writes is seen by readers of committed records once it is committed', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one, unique('tx'))
    await producer.send(topic, ['a'])
    await producer.send(topic, ['b'])
    assert.equal(await stableOffset(topic), 0)
    assert.deepEqual(await valuesOf(context.other, topic), [])
    assert.deepEqual(await valuesOf(context.other, topic, 'read_uncommitted'), ['a', 'b'])
    await producer.end(true)
    assert.deepEqual(await valuesOf(context.other, topic), ['a', 'b'])
    // The marker has an offset of its own.
    assert.equal(await stableOffset(topic), 3)
  })

  test('who has an open transaction in a partition is told, until it is over', async () => {
    const topic = await newTopic(context.one)
    const name = unique('tx')
    const producer = await Producer.start(context.one, name)
    assert.deepEqual(await context.other.openTransactions({ topic, partition: 0 }), [])
    await producer.send(topic, ['a'])
    const [open, ...others] = await context.other.openTransactions({ topic, partition: 0 })
    assert.deepEqual(others, [])
    assert.deepEqual([open?.firstOffset, open?.transactionalId], [0, name])
    assert.equal(typeof open?.producerId, 'bigint')
    await producer.end(true)
    assert.deepEqual(await context.other.openTransactions({ topic, partition: 0 }), [])
    await assert.rejects(context.other.openTransactions({ topic: unique('none'), partition: 0 }))
  })

  test('what an aborted transaction wrote is skipped, and the position moves past it', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one, unique('tx'))
    await producer.send(topic, ['gone'])
    await producer.end(false)
    assert.deepEqual(await readToEnd(context.other, topic), { records: [], position: 2 })
    await producer.send(topic, ['kept'])
    await producer.end(true)
    assert.deepEqual(await valuesOf(context.other, topic), ['kept'])
    assert.deepEqual(await valuesOf(context.other, topic, 'read_uncommitted'), ['gone', 'kept'])
  })

  test('transactions of several producers in one partition: readers wait for the oldest open one', async () => {
    const topic = await newTopic(context.one)
    const [slow, quick] = [
      await Producer.start(context.one, unique('tx')),
      await Producer.start(context.other, unique('tx')),
    ]
    const bystander = await Producer.start(context.one)
    await bystander.send(topic, ['before'])
    await slow.send(topic, ['slow'])
    await quick.send(topic, ['quick'])
    await quick.end(true)
    await bystander.send(topic, ['after'])
    assert.equal(await stableOffset(topic), 1)
    assert.deepEqual(await valuesOf(context.one, topic), ['before'])
    await slow.end(false)
    assert.deepEqual(await valuesOf(context.one, topic), ['before', 'quick', 'after'])
  })

  test('a transaction may span topics and partitions, and ends in all of them', async () => {
    const [left, right] = [await newTopic(context.one), await newTopic(context.one, 2)]
    const producer = await Producer.start(context.one, unique('tx'))
    await producer.send(left, ['a'])
    await producer.send(right, ['b'], 1)
    await producer.end(true)
    assert.deepEqual(await valuesOf(context.other, left), ['a'])
    assert.deepEqual(
      (await readToEnd(context.other, right, { partition: 1 })).records.map((r) => r.value),
      ['b'],
    )
  })

  test('a fetch of committed records that waits is woken by the commit', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one, unique('tx'))
    await producer.send(topic, ['a'])
    const fetching = context.other.fetch({
      partitions: [{ topic, partition: 0, offset: 0, maxBytes: 10_000 }],
      maxWaitMs: 20_000,
      maxBytes: 10_000,
      isolation: 'read_committed',
    })
    await producer.end(true)
    assert.ok(((await fetching)[0]?.records.length ?? 0) > 0)
  })

  test('many transactions in a row', async () => {
    const topic = await newTopic(context.one)
    const producer = await Producer.start(context.one, unique('tx'))
    const expected: string[] = []
    for (let i = 0; i < 20; i++) {
      await producer.send(topic, [`${i}`])
      await producer.end(i % 3 !== 0)
      if (i % 3 !== 0) expected.push(`${i}`)
    }
    assert.deepEqual(await valuesOf(context.other, topic), expected)
  })

  test('taking a transactional id over aborts its open transaction and fences the holder', async () => {
    const topic = await newTopic(context.one)
    const id = unique('tx')
    const old = await Producer.start(context.one, id)
    await old.send(topic, ['old'])
    const successor = await Producer.start(context.other, id)
    await refusedAs(old.send(topic, ['zombie']), 'epoch-lost')
    await refusedAs(old.end(true), 'epoch-lost')
    await successor.send(topic, ['new'])
    await successor.end(true)
    assert.deepEqual(await valuesOf(context.one, topic), ['new'])
  })

  test('a conditional take-over succeeds while nobody else took the id, also over an open transaction', async () => {
    const topic = await newTopic(context.one)
    const id = unique('tx')
    const producer = await Producer.start(context.one, id)
    await producer.send(topic, ['lost'])
    const again = await Producer.start(context.one, id, producer.identity)
    assert.equal(again.identity.producerId, producer.identity.producerId)
    await again.send(topic, ['kept'])
    await again.end(true)
    const further = await Producer.start(context.one, id, again.identity)
    await further.send(topic, ['more'])
    await further.end(true)
    assert.deepEqual(await valuesOf(context.one, topic), ['kept', 'more'])
  })

  test('a conditional take-over fails once somebody else took the id', async () => {
    const id = unique('tx')
    const first = await Producer.start(context.one, id)
    await Producer.start(context.other, id)
    await refused(Producer.start(context.one, id, first.identity), 'PRODUCER_FENCED')
  })

  test('a stale holder can abort the open transaction with its attempt, but takes nothing over', async () => {
    const topic = await newTopic(context.one)
    const id = unique('tx')
    const stale = await Producer.start(context.one, id)
    const holder = await Producer.start(context.other, id)
    await holder.send(topic, ['aborted'])
    await refused(Producer.start(context.one, id, stale.identity), 'PRODUCER_FENCED')
    await refusedAs(holder.end(true), 'epoch-lost')
    const again = await Producer.start(context.other, id, holder.identity)
    assert.equal(again.identity.producerId, holder.identity.producerId)
    await again.send(topic, ['kept'])
    await again.end(true)
    assert.deepEqual(await valuesOf(context.one, topic), ['kept'])
    await refused(Producer.start(context.one, id, stale.identity), 'PRODUCER_FENCED')
  })

  test('offsets alone make a transaction, and a take-over drops them', async () => {
    const topic = await newTopic(context.one)
    const [id, group] = [unique('tx'), unique('group')]
    const offsets = (offset: number) => [{ topic, partition: 0, offset, metadata: '' }]
    const first = await Producer.start(context.one, id)
    await first.sendOffsets(outsider(group), offsets(3))
    const second = await Producer.start(context.other, id)
    assert.equal((await context.one.committedOffsets(group, offsets(0), true))[0]?.offset, -1)
    await second.sendOffsets(outsider(group), offsets(4))
    await second.end(true)
    assert.equal((await context.one.committedOffsets(group, offsets(0), true))[0]?.offset, 4)
  })

  test('the outcome of an end whose answer was lost can be asked for again', async () => {
    const topic = await newTopic(context.one)
    const id = unique('tx')
    const producer = await Producer.start(context.one, id)
    await producer.send(topic, ['a'])
    const { identity } = producer
    await producer.end(true)
    assert.deepEqual(await context.one.endTransaction(id, identity, true), producer.identity)
    await refusedAs(context.one.endTransaction(id, identity, false), 'epoch-lost')
    assert.deepEqual(await valuesOf(context.one, topic), ['a'])
  })

  test('an end that comes late does not touch the next transaction', async () => {
    const topic = await newTopic(context.one)
    const id = unique('tx')
    const producer = await Producer.start(context.one, id)
    await producer.send(topic, ['a'])
    const { identity } = producer
    await producer.end(true)
    await producer.send(topic, ['b'])
    await refusedAs(context.one.endTransaction(id, identity, true), 'epoch-lost')
    assert.deepEqual(await valuesOf(context.one, topic), ['a'])
    await producer.end(false)
    assert.deepEqual(await valuesOf(context.one, topic), ['a'])
  })

  test('the end of a transaction in which nothing was sent changes nothing', async () => {
    const producer = await Producer.start(context.one, unique('tx'))
    const { identity } = producer
    await producer.end(true)
    assert.deepEqual(producer.identity, identity)
    await producer.end(false)
    assert.deepEqual(producer.identity, identity)
  })

  test('an identity that does not hold the transactional id is refused', async () => {
    const topic = await newTopic(context.one)
    const stranger = await Producer.start(context.one, unique('tx'))
    const holder = await Producer.start(context.one, unique('tx'))
    const records = stranger.stamped(topic, 0, ['x'])
    await refusedAs(
      context.one.produce({ transactionalId: holder.transactionalId, batches: [{ topic, partition: 0, records }] }),
      'epoch-lost',
    )
  })

  test('a timeout that the broker does not allow is refused', async () => {
    await refused(context.one.initProducer(unique('tx'), 10 * 3_600_000), 'INVALID_TRANSACTION_TIMEOUT')
  })
}
