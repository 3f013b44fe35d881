/** Connects to whichever broker the configuration names. The Kafka client is loaded only where it is used. */
import type { MessagePort } from 'node:worker_threads'
import type { KafkaOptions } from './kafka/options.ts'
import type { BrokerPort } from './port.ts'

/** Plain data and at most a port: may be handed to another thread. */
export type BrokerAddress =
  | { readonly kind: 'embedded'; readonly port: MessagePort }
  | { readonly kind: 'kafka'; readonly options: KafkaOptions }

export async function connectBroker(address: BrokerAddress): Promise<BrokerPort> {
  if (address.kind === 'embedded') {
    const { clientOverPort } = await import('./embedded/client.ts')
    return clientOverPort(address.port)
  }
  const { connectKafka } = await import('./kafka/kafka-broker.ts')
  return connectKafka(address.options)
}
