import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BrokerError, type BrokerPort, type ProducedPartition, type ProduceRequest } from '../../../src/broker/port.ts'
import { foundLimits } from '../../../src/engine/commit/topic-limits.ts'
import { Producer, type ToProduce, unpack } from '../../../src/engine/commit/producer.ts'
import { BatchPacker } from '../../../src/broker/wire/batch-pack.ts'
import { batchHeader, RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'

interface UnderWay {
  readonly request: ProduceRequest
  readonly answer: () => void
  readonly refuse: (error: BrokerError) => void
}

/** A broker whose answers come when the test says so. */
function broker(): { port: BrokerPort; underWay: UnderWay[]; order: string[] } {
  const underWay: UnderWay[] = []
  const order: string[] = []
  const next = new Map<string, number>()
  const produce = (request: ProduceRequest): Promise<ProducedPartition[]> =>
    new Promise((resolve, reject) => {
      const answer = (): void => {
        underWay.splice(underWay.indexOf(entry), 1)
        resolve(
          request.batches.map(({ topic, partition, records }) => {
            const id = `${topic}:${partition}`
            const { baseSequence, recordCount } = batchHeader(records, 0)
            order.push(`${id}@${baseSequence}`)
            const baseOffset = next.get(id) ?? 0
            next.set(id, baseOffset + recordCount)
            return { topic, partition, baseOffset }
          }),
        )
      }
      const entry = { request, answer, refuse: reject }
      underWay.push(entry)
    })
  const port: Partial<BrokerPort> = { produce, initProducer: async () => ({ producerId: 7n, producerEpoch: 0 }) }
  return { port: port as BrokerPort, underWay, order }
}

function batch(partition: number, count = 1, bytes = 10): ToProduce {
  const builder = new RecordBatchBuilder()
  for (let i = 0; i < count; i++) builder.append(0, null, new Uint8Array(bytes), [])
  return { topic: 't', partition, records: builder.finish(), count }
}

/** One pack with a batch for each of these partitions, as a lane hands it over. */
function packOf(...partitions: readonly number[]): { readonly buffer: ArrayBuffer; readonly batches: ToProduce[] } {
  const packer = new BatchPacker()
  for (const partition of partitions) {
    const builder = new RecordBatchBuilder()
    builder.append(0, null, new Uint8Array(10), [])
    packer.add('t', partition, builder)
  }
  const packs = packer.take()
  assert.equal(packs.length, 1)
  return { buffer: (packs[0] as (typeof packs)[0]).bytes.buffer, batches: unpack(packs) }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function ready(port: BrokerPort): Promise<Producer> {
  const producer = new Producer(port, 'app', 60_000)
  await producer.init()
  return producer
}

describe('producer of a run', () => {
  test('what is queued leaves with what is sent or flushed next, in one request', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    const partitions = (): number[][] => underWay.map(({ request }) => request.batches.map((b) => b.partition))
    producer.queue([batch(0)], 0)
    producer.queue([batch(1)], 0)
    await turn()
    assert.deepEqual(partitions(), [])
    producer.send([batch(2)], 0)
    await turn()
    assert.deepEqual(partitions(), [[0, 1, 2]])
    producer.queue([batch(3)], 0)
    const flushed = producer.flush()
    await turn()
    assert.deepEqual(partitions(), [[0, 1, 2], [3]])
    for (const each of [...underWay]) each.answer()
    await flushed
  })

  test('has several requests under way, and never two with batches of one partition', async () => {
    const { port, underWay, order } = broker()
    const producer = await ready(port)
    producer.send([batch(0, 3)], 0)
    producer.send([batch(0, 2), batch(1, 1)], 0)
    producer.send([batch(1, 4), batch(2, 1)], 0)
    await turn()
    const partitions = (): number[][] => underWay.map(({ request }) => request.batches.map((b) => b.partition))
    assert.deepEqual(partitions(), [[0], [1], [2]])
    underWay[0]?.answer()
    await turn()
    assert.deepEqual(partitions(), [[1], [2], [0]])
    const flushed = producer.flush()
    while (underWay.length > 0) {
      underWay[0]?.answer()
      await turn()
    }
    await flushed
    assert.deepEqual(order, ['t:0@0', 't:1@0', 't:2@0', 't:0@3', 't:1@1'])
  })

  test('shows the transaction that is open: since when, with how much, and nothing once it has ended', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    assert.equal(producer.transaction?.openSince, null)
    const sent = [batch(0, 3), batch(1, 2)]
    producer.send(sent, 5000)
    producer.send([batch(1)], 7000)
    await turn()
    const { openSince, partitions, bytes } = producer.transaction ?? assert.fail('it shows none')
    assert.deepEqual([openSince, partitions], [5000, 2])
    assert.ok(bytes > sent.reduce((sum, { records }) => sum + records.length, 0))
    while (underWay.length > 0) {
      underWay[0]?.answer()
      await turn()
    }
    await producer.init()
    const { openSince: since, bytes: left } = producer.transaction ?? assert.fail('it shows none')
    assert.deepEqual([since, left], [null, 0])
  })

  test('writes nothing under no identity, and no batch without a record', async () => {
    const { port, underWay } = broker()
    const nobody = new Producer(port, 'app', 60_000)
    const member = { groupId: 'app', memberId: '', generationId: -1, groupInstanceId: null }
    await assert.rejects(nobody.sendOffsets(member, []), { code: 'INVALID_TXN_STATE' })
    const producer = await ready(port)
    assert.throws(() => producer.send([{ ...batch(0), count: 0 }], 0), /has no records/)
    await turn()
    assert.equal(underWay.length, 0)
  })

  test('sends nothing any more once it has a successor: neither what waits nor what comes', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    producer.send([batch(0)], 0)
    producer.send([batch(0)], 0)
    await turn()
    const next = producer.successor()
    producer.send([batch(1)], 0)
    underWay[0]?.answer()
    await turn()
    assert.equal(underWay.length, 0)
    await assert.rejects(producer.init(), { code: 'INVALID_TXN_STATE' })
    await next.init()
    next.send([batch(0)], 0)
    await turn()
    assert.deepEqual(
      underWay.map(({ request }) => request.batches.map(({ records }) => batchHeader(records, 0).baseSequence)),
      [[0]],
    )
  })

  test('has no more than five under way', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    for (let partition = 0; partition < 9; partition++) producer.send([batch(partition)], 0)
    await turn()
    assert.equal(underWay.length, 5)
    underWay[0]?.answer()
    await turn()
    assert.deepEqual(
      underWay.at(-1)?.request.batches.map((b) => b.partition),
      [5, 6, 7, 8],
    )
  })

  test('tells each batch the offset of its own first record', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    const offsets: number[] = []
    const sent = [2, 3, 1].map((count) => batch(0, count))
    producer.send(sent, 0, (batch, offset) => (offsets[sent.indexOf(batch)] = offset))
    await turn()
    while (underWay.length > 0) {
      underWay[0]?.answer()
      await turn()
    }
    assert.deepEqual(offsets, [0, 2, 5])
  })

  test('a request that is refused ends the flush once the others are settled, and nothing follows it', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    producer.send([batch(0)], 0)
    producer.send([batch(1), batch(0)], 0)
    await turn()
    let settled = false
    const flushed = assert.rejects(producer.flush(), /refused/).finally(() => {
      settled = true
    })
    underWay.shift()?.refuse(new BrokerError('INVALID_RECORD', 'refused'))
    await turn()
    assert.equal(settled, false)
    assert.equal(underWay.length, 1)
    underWay[0]?.answer()
    await flushed
    assert.equal(underWay.length, 0)
  })

  test('frees the memory of a pack once the broker has all of its batches, and no sooner', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    const { buffer, batches } = packOf(0, 1, 0)
    producer.send(batches, 0)
    await turn()
    underWay[0]?.answer()
    await turn()
    assert.equal(buffer.detached, false, 'a batch of partition 0 is still to be answered')
    underWay[0]?.answer()
    await producer.flush()
    assert.equal(buffer.detached, true)
    assert.equal(producer.queuedBytes, 0)
  })

  describe('a batch that is larger than its topic takes', () => {
    /** Takes batches up to `most` bytes, each once: the batches before a refused one of the same request are taken. */
    function narrow(most: number): { port: BrokerPort; log: Map<number, number[]>; repeats: () => number } {
      const log = new Map<number, number[]>()
      let repeats = 0
      const produce = async ({ batches }: ProduceRequest): Promise<ProducedPartition[]> =>
        batches.map(({ topic, partition, records }) => {
          const { baseSequence, recordCount } = batchHeader(records, 0)
          const written = log.get(partition) ?? []
          if (records.length > most) throw new BrokerError('MESSAGE_TOO_LARGE', 'too large')
          if (baseSequence < written.length) repeats++
          else {
            assert.equal(baseSequence, written.length, 'the sequence has no gap')
            for (let i = 0; i < recordCount; i++) written.push(records.length)
            log.set(partition, written)
          }
          return { topic, partition, baseOffset: baseSequence }
        })
      const port: Partial<BrokerPort> = { produce, initProducer: async () => ({ producerId: 7n, producerEpoch: 0 }) }
      return { port: port as BrokerPort, log, repeats: () => repeats }
    }

    test('and was sent beside one that the broker took is no reason to send halves of that', async () => {
      // As Kafka does: each partition for itself, and a batch that is there is known only as a whole.
      const written = new Map<number, Array<{ readonly from: number; readonly count: number }>>()
      const produce = async ({ batches }: ProduceRequest): Promise<ProducedPartition[]> => {
        let refusal: BrokerError | undefined
        const produced: ProducedPartition[] = []
        for (const { topic, partition, records } of batches) {
          const { baseSequence: from, recordCount: count } = batchHeader(records, 0)
          const there = written.get(partition) ?? []
          const next = there.reduce((sum, each) => sum + each.count, 0)
          const isRepeat = there.some((each) => each.from === from && each.count === count)
          produced.push({ topic, partition, baseOffset: from })
          if (isRepeat) continue
          if (records.length > 700) refusal = new BrokerError('MESSAGE_TOO_LARGE', 'too large')
          else if (from !== next)
            throw new BrokerError('OUT_OF_ORDER_SEQUENCE_NUMBER', `${from} comes where ${next} is next`)
          else written.set(partition, [...there, { from, count }])
        }
        if (refusal !== undefined) throw refusal
        return produced
      }
      const port: Partial<BrokerPort> = { produce, initProducer: async () => ({ producerId: 7n, producerEpoch: 0 }) }
      const producer = await ready(port as BrokerPort)
      producer.send([batch(1, 2, 400), batch(0, 2, 300)], 0)
      await producer.flush()
      assert.deepEqual(written.get(0), [{ from: 0, count: 2 }])
      assert.equal(written.get(1)?.length, 2)
    })

    test('is not tried whole where it is known what the topic takes', async () => {
      const { port } = narrow(1000)
      let asked = 0
      let refused = 0
      const counting = {
        ...port,
        produce: (request: ProduceRequest) => {
          asked += request.batches.reduce((sum, { records }) => sum + records.length, 0)
          return port.produce(request).catch((error: unknown) => {
            refused++
            throw error
          })
        },
      }
      const producer = await ready(counting)
      producer.send([batch(0, 64, 100)], 0)
      await producer.flush()
      const [askedFirst, refusedFirst] = [asked, refused]
      for (let i = 0; i < 10; i++) {
        producer.send([batch(0, 64, 100)], 0)
        await producer.flush()
      }
      assert.equal(refused, refusedFirst)
      assert.ok(asked - askedFirst < 10 * askedFirst)
    })

    test('is written in parts, with all sequences in order, and so are those after it', async () => {
      const { port, log, repeats } = narrow(1000)
      const producer = await ready(port)
      const offsets: number[] = []
      const note = ({ count }: ToProduce, offset: number): number => offsets.push(offset + count)
      producer.send([batch(0, 5), batch(1, 100), batch(2, 5)], 0)
      producer.send([batch(1, 100), batch(1, 1, 900), batch(1, 3)], 0, note)
      await producer.flush()
      assert.deepEqual([...log].map(([partition, written]) => [partition, written.length]).sort(), [
        [0, 5],
        [1, 204],
        [2, 5],
      ])
      assert.equal(repeats(), 1, 'what was taken before the refusal is known by its sequence')
      assert.equal(offsets.at(-1), 204, 'the end of the last part is told')
      assert.deepEqual(
        offsets,
        offsets.toSorted((a, b) => a - b),
      )
      assert.equal(producer.queuedBytes, 0)
    })

    test('is refused once all others have been tried: one replay is enough for all such records', async () => {
      const { port, log } = narrow(1000)
      const producer = await ready(port)
      // What is not written leaves no gap in the sequence of what comes behind it.
      producer.send([batch(0, 1, 3000), batch(0, 2), batch(0, 1, 2000), batch(0, 3), batch(0, 1, 900)], 0)
      await assert.rejects(producer.flush(), { errorClass: 'abortable', message: /A record of 30\d\d bytes/ })
      assert.equal(log.get(0)?.length, 6)
      const found = foundLimits(port, 't').maxBatchBytes
      assert.ok(found > 2000 && found < 2100, String(found))
    })

    test('is refused where a single record is, first for the replay to find it, then for good', async () => {
      const { port } = narrow(1000)
      for (const errorClass of ['abortable', 'record']) {
        const producer = await ready(port)
        producer.send([batch(0, 3), batch(0, 1, 2000)], 0)
        await assert.rejects(producer.flush(), { errorClass, message: /A record of 20\d\d bytes for t:0 is too large/ })
      }
    })
  })

  test('keeps what the broker refused', async () => {
    const { port, underWay } = broker()
    const producer = await ready(port)
    const { buffer, batches } = packOf(0, 1)
    producer.send(batches, 0)
    await turn()
    underWay[0]?.refuse(new BrokerError('NOT_LEADER_OR_FOLLOWER', 'elsewhere'))
    await assert.rejects(producer.flush())
    assert.equal(buffer.detached, false)
  })
})
