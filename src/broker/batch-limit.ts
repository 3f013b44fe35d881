/** How large a batch a topic takes. */
import { BrokerError, type BrokerPort } from './port.ts'

/** `max.message.bytes` of the topic; undefined for who may write to it and not read its settings. */
export async function batchLimitOf(broker: BrokerPort, topic: string): Promise<number | undefined> {
  try {
    const limit = Number((await broker.topicConfig(topic))['max.message.bytes'])
    return limit > 0 ? limit : undefined
  } catch (error) {
    if (error instanceof BrokerError && error.errorClass === 'config') return undefined
    throw error
  }
}
