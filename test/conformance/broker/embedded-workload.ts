/**
 * What a killed process was doing: transactions over two topics with offsets, every fifth one aborted, and a feed, for
 * ever. Says on standard output what was acknowledged.
 */
import { writeSync } from 'node:fs'
import { startEmbeddedBroker } from '../../../src/broker/embedded/start.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import { batchOf, outsider, Producer, text } from './support.ts'

const say = (line: string): void => {
  writeSync(1, `${line}\n`)
}

const broker = await startEmbeddedBroker({ folder: process.argv[2] as string, partitions: 3 })
const client = broker.client()
await client.createTopics(['left', 'right'].map((topic) => ({ topic, partitions: 1 })))
await client.createTopics([{ topic: 'fed', partitions: 3 }])
const producer = await Producer.start(client, 'workload')
const [stored] = await client.committedOffsets('workload', [{ topic: 'left', partition: 0 }], true)
let next = Math.max(stored?.offset ?? 0, 0)
let lines = await client.feedMark('fed', 'lines')
say(`committed ${next}`)
say(`fed ${lines}`)
say('begun')
for (;;) {
  if (next % 5 === 4) {
    await producer.send('left', ['never'])
    await producer.end(false)
  }
  await producer.send('left', [`${next}`])
  await producer.send('right', [`${next}`])
  const offsets = [{ topic: 'left', partition: 0, offset: next + 1, metadata: '' }]
  await producer.sendOffsets(outsider('workload'), offsets)
  await producer.end(true)
  next++
  say(`committed ${next}`)
  const builders = [0, 1, 2].map(() => new RecordBatchBuilder())
  for (let i = 0; i < 500; i++, lines++) builders[lines % 3]?.append(lines, null, text(`${lines}`), [])
  const batches = builders.map((builder, partition) => ({ topic: 'fed', partition, records: builder.finish() }))
  batches.push({ topic: 'fed', partition: 0, records: batchOf([`${lines++}`]) as Uint8Array<ArrayBuffer> })
  await client.produceFed(batches, { topic: 'fed', file: 'lines', lines })
  say(`fed ${lines}`)
}
