/**
 * What topics were found to refuse, where their settings could not be read or have changed since. Kept as long as the
 * connection: lanes hear of it when a run begins.
 */
import type { BrokerPort } from '../../broker/port.ts'

const byBroker = new WeakMap<BrokerPort, Map<string, number>>()

/** The largest batch that the topic may take, as far as it was found out. */
export function foundLimit(broker: BrokerPort, topic: string): number {
  return byBroker.get(broker)?.get(topic) ?? Number.POSITIVE_INFINITY
}

/** The topic refused a single record of this size. True where that was not to be expected yet. */
export function noteRefused(broker: BrokerPort, topic: string, bytes: number): boolean {
  let limits = byBroker.get(broker)
  if (limits === undefined) {
    limits = new Map()
    byBroker.set(broker, limits)
  }
  if (bytes > (limits.get(topic) ?? Number.POSITIVE_INFINITY)) return false
  limits.set(topic, bytes - 1)
  return true
}
