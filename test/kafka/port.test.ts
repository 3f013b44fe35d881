/** The conformance suite of the broker port, on a real Kafka. */
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort, JoinRequest, ProduceRequest, ProducerIdentity } from '../../src/broker/port.ts'
import { type BrokerUnderTest, runBrokerSuite } from '../conformance/broker/suite.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'

const kafka = await kafkaForTests({ transactionVersion: 2 })
const skip = 'skip' in kafka ? kafka.skip : false

async function makeBroker(): Promise<BrokerUnderTest> {
  if ('skip' in kafka) throw new TypeError(kafka.skip)
  return {
    connect: async () => asTheSuiteExpects(connectKafka({ bootstrapServers: [kafka.bootstrap], clientId: 'suite' })),
    close: () => kafka.stop(),
  }
}

/** What stands before a member's own words: version 0, no topics, then the length of the user data. */
const subscriptionHead = Buffer.from([0, 0, 0, 0, 0, 0])
const headLength = subscriptionHead.length + 4

/**
 * Two things in which Kafka is not as simple as the suite. It answers the end of a transaction before its markers are
 * written, so here an end waits until they are; and its coordinator parses what a consumer says of itself, so the
 * suite's free words travel as user data.
 */
function asTheSuiteExpects(port: BrokerPort): BrokerPort {
  const written = new Map<string, Set<string>>()
  const latestOf = async (places: ReadonlySet<string>): Promise<Map<string, number>> => {
    const partitions = [...places].map((place) => {
      const at = place.lastIndexOf(':')
      return { topic: place.slice(0, at), partition: Number(place.slice(at + 1)) }
    })
    const ends = await port.listOffsets(partitions, 'latest')
    return new Map(ends.map(({ topic, partition, offset }) => [`${topic}:${partition}`, offset]))
  }
  const changes: Partial<BrokerPort> = {
    produce(request: ProduceRequest) {
      const id = request.transactionalId
      if (id !== null) {
        const places = written.get(id) ?? new Set()
        for (const { topic, partition } of request.batches) places.add(`${topic}:${partition}`)
        written.set(id, places)
      }
      return port.produce(request)
    },
    async endTransaction(id: string, identity: ProducerIdentity, commit: boolean) {
      const places = written.get(id) ?? new Set<string>()
      const before = await latestOf(places)
      const next = await port.endTransaction(id, identity, commit)
      written.delete(id)
      await eventually('the markers of the transaction are written', async () => {
        const after = await latestOf(places)
        return [...before].every(([place, offset]) => (after.get(place) ?? 0) > offset)
      })
      return next
    },
    async joinGroup(request: JoinRequest) {
      const protocols = request.protocols.map(({ name, metadata }) => {
        const length = Buffer.alloc(4)
        length.writeInt32BE(metadata.length)
        return { name, metadata: Buffer.concat([subscriptionHead, length, metadata]) }
      })
      const joined = await port.joinGroup({ ...request, protocols })
      return {
        ...joined,
        members: joined.members.map((member) => ({ ...member, metadata: member.metadata.subarray(headLength) })),
      }
    },
    async describeGroup(groupId: string) {
      const described = await port.describeGroup(groupId)
      const members = described.members.map(({ metadata, ...member }) => ({
        ...member,
        ...(metadata && { metadata: metadata.subarray(headLength) }),
      }))
      return { ...described, members }
    },
  }
  return new Proxy(port, {
    get: (target, name) => {
      const value: unknown = Reflect.get(changes, name) ?? Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

runBrokerSuite('kafka', makeBroker, { skip })
