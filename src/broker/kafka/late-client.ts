/** A client whose library is loaded with its first call: most processes never make one from this thread. */
import type { FeedStore } from '../feed-marks.ts'
import type { BrokerPort } from '../port.ts'
import type { KafkaOptions } from './options.ts'

type Client = BrokerPort & FeedStore
type Call = (...args: unknown[]) => Promise<unknown>

/**
 * For the control thread, which talks to the broker only where it feeds or prints. Loading the library takes a quarter of
 * the CPU of a start.
 */
export function kafkaOnDemand(options: KafkaOptions): Client {
  let client: Client | undefined
  let loading: Promise<Client> | undefined
  const load = async (): Promise<Client> => {
    const { connectKafka } = await import('./kafka-broker.ts')
    client = connectKafka(options)
    return client
  }
  const call =
    (method: string): Call =>
    async (...args) => {
      loading ??= load()
      const loaded = (await loading) as unknown as Record<string, Call>
      return (loaded[method] as Call).apply(loaded, args)
    }
  return {
    kind: 'kafka',
    get connected() {
      return client?.connected ?? false
    },
    get fault() {
      return client?.fault
    },
    get nodes() {
      return client?.nodes ?? []
    },
    close: async () => (await loading)?.close(),
    ...(Object.fromEntries(Object.keys(methods).map((method) => [method, call(method)])) as Pick<Client, Method>),
  }
}

/** Everything of a client but what has to be known without it. */
type Method = Exclude<keyof Client, 'kind' | 'connected' | 'fault' | 'nodes' | 'close'>

/** A table, so that none can be forgotten. */
const methods: Readonly<Record<Method, true>> = {
  topics: true,
  createTopics: true,
  deleteTopics: true,
  topicConfig: true,
  listOffsets: true,
  fetch: true,
  initProducer: true,
  produce: true,
  commitOffsetsInTransaction: true,
  endTransaction: true,
  commitOffsets: true,
  committedOffsets: true,
  joinGroup: true,
  syncGroup: true,
  heartbeat: true,
  leaveGroup: true,
  describeGroup: true,
  openTransactions: true,
  produceFed: true,
  feedMark: true,
}
