/** A broker that says nothing of a topic for a while, as a client of Kafka does while a leader is away: no record, no error. */
import type { BrokerPort } from '../../src/broker/port.ts'

/** Another one's, but for its fetches. */
export function fetchingBy(broker: BrokerPort, fetch: BrokerPort['fetch']): BrokerPort {
  return new Proxy(broker, {
    get(target, name) {
      if (name === 'fetch') return fetch
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

export function silentAbout(broker: BrokerPort, topic: string, times: number): BrokerPort {
  let left = times
  return fetchingBy(broker, async (request) =>
    request.partitions[0]?.topic === topic && left-- > 0 ? [] : broker.fetch(request),
  )
}
