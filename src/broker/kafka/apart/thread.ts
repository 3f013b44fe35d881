/** A thread that holds clients of Kafka for a thread that is not to load the library: one for each message port. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { assert } from '../../../base/assert.ts'
import { messageOf } from '../../../base/errors.ts'
import type { Arguments, Answer, Cancel, OperationName, Reply } from '../../calls/protocol.ts'
import { unpack } from '../../calls/packs.ts'
import { servePort } from '../../calls/serve-port.ts'
import type { FeedStore } from '../../feed-marks.ts'
import { type BrokerPort, BrokerError, type ProducedPartition, type ProduceRequest } from '../../port.ts'
import { connectKafka } from '../kafka-broker.ts'
import type { KafkaOptions } from '../options.ts'

type Client = BrokerPort & FeedStore

assert(parentPort !== null, 'the clients of Kafka run in a worker thread')
const options = workerData as KafkaOptions

parentPort.on('message', (port: MessagePort) => {
  const client = connectKafka(options)
  servePort(port, (name, args, reply) => perform(client, name, args, reply), { closed: () => void client.close() })
})

function perform<K extends OperationName>(
  client: Client,
  name: K,
  args: Arguments<K>,
  reply: Reply<Answer<K>>,
): Cancel {
  const stop = new AbortController()
  call(client, name, args, stop.signal).then(
    (answer) => reply.done(answer as Answer<K>),
    (error: unknown) => reply.fail(asBrokerError(error)),
  )
  return () => stop.abort()
}

async function call(client: Client, name: OperationName, args: unknown, signal: AbortSignal): Promise<unknown> {
  switch (name) {
    case 'fetch': {
      const [request] = args as Arguments<'fetch'>
      return client.fetch({ ...request, signal })
    }
    case 'produce': {
      const [transactionalId, packs] = args as Arguments<'produce'>
      const batches = unpack(packs)
      return baseOffsets(batches, await client.produce({ transactionalId, batches }))
    }
    case 'produceFed': {
      const [packs, mark] = args as Arguments<'produceFed'>
      const batches = unpack(packs)
      return baseOffsets(batches, await client.produceFed(batches, mark))
    }
    case 'joinGroup':
      return client.joinGroup((args as Arguments<'joinGroup'>)[0])
    case 'syncGroup':
      // Only these bytes, and not all of the buffer that they came in.
      return new Uint8Array(await client.syncGroup(...(args as Arguments<'syncGroup'>)))
    default: {
      const method = client[name] as (...given: unknown[]) => Promise<unknown>
      return method.apply(client, args as unknown[])
    }
  }
}

/** Kafka answers one offset a partition. */
function baseOffsets(batches: ProduceRequest['batches'], produced: readonly ProducedPartition[]): Float64Array {
  const offsets = new Map(produced.map(({ topic, partition, baseOffset }) => [`${topic} ${partition}`, baseOffset]))
  return Float64Array.from(batches, ({ topic, partition }) => offsets.get(`${topic} ${partition}`) ?? -1)
}

function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error
  return new BrokerError('UNKNOWN_SERVER_ERROR', `The client of Kafka failed: ${messageOf(error)}`, undefined, error)
}
