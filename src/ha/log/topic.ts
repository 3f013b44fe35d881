/** The coordinator topic: made where it is missing, and looked at for what could lose a claim. */
import type { BrokerPort, TopicInfo } from '../../broker/port.ts'
import { decodeTag } from '../../engine/commit/tag.ts'
import { EngineError } from '../../base/errors.ts'
import { coordinatorTopic } from '../contract.ts'

const wantedConfig: Readonly<Record<string, string>> = {
  'cleanup.policy': 'compact',
  // The broker's time: by its own clock it would refuse all that a pod writes whose clock is hours off.
  'message.timestamp.type': 'LogAppendTime',
  'unclean.leader.election.enable': 'false',
  // Small segments: what is compacted away is not read at every start.
  'segment.bytes': String(4 * 2 ** 20),
  'segment.ms': '3600000',
  'min.cleanable.dirty.ratio': '0.2',
}

export async function ensureTopic(broker: BrokerPort, applicationId: string): Promise<TopicInfo> {
  const topic = coordinatorTopic(applicationId)
  const [found] = await broker.topics([topic])
  if (found) return found
  await broker.createTopics([{ topic, partitions: 1, config: wantedConfig }])
  const [made] = await broker.topics([topic])
  if (made) return made
  throw new EngineError('TOPIC_MISSING', `the coordinator topic ${topic} was made, and does not exist: try again`)
}

/** What about the topic could lose or reorder a claim, in sentences; none for a topic that is safe. */
export async function dangersOf(broker: BrokerPort, info: TopicInfo): Promise<string[]> {
  const config = await broker.topicConfig(info.topic)
  const dangers: string[] = []
  if (info.partitions !== 1) dangers.push(`it has ${info.partitions} partitions instead of 1`)
  const policy = config['cleanup.policy'] ?? 'compact'
  if (policy !== 'compact') dangers.push(`its cleanup.policy is ${policy} instead of compact`)
  if (broker.kind === 'kafka') {
    if (config['unclean.leader.election.enable'] === 'true') dangers.push('unclean leader elections are allowed')
    const replicas = Number(config['min.insync.replicas'] ?? '1')
    if (replicas < 2)
      dangers.push(`its min.insync.replicas is ${replicas}: one lost broker can lose acknowledged claims`)
  }
  return dangers
}

/** Highest token epoch in the commit tags of the group's offsets; 0 where nothing was committed. */
export async function committedTokenEpoch(broker: BrokerPort, groupId: string): Promise<number> {
  let epoch = 0
  for (const { offset, metadata } of await broker.committedOffsets(groupId, null, false)) {
    if (offset >= 0) epoch = Math.max(epoch, decodeTag(metadata)?.tokenEpoch ?? 0)
  }
  return epoch
}
