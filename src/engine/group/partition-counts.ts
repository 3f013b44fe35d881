/** Refuses to run where the number of partitions is not the one by which the state of keys was shared out. */
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'

type Topics = ReadonlyMap<string, TopicInfo>

/** Those of many that a sentence names. */
const named = 3

/** While the application runs. `shares`: by how many its changelog is shared out, and by how many it would be. */
export function countsMoved(changelog: string, shares: readonly number[], before: Topics, now: Topics): EngineError {
  const moved = [...now.values()].flatMap(({ topic, partitions }) => {
    const had = before.get(topic)?.partitions
    if (had === partitions) return []
    return had === undefined ? `${topic} is new, with ${partitions}` : `${topic} has ${partitions} and had ${had}`
  })
  return new EngineError(
    'PARTITIONS_CHANGED',
    `the number of partitions has changed while the application ran (${moved.slice(0, named).join(', ')}): the state in ` +
      `${changelog} is shared out by ${shares[0]}, and ${shares[1]} would be needed. The number of partitions of a stateful application cannot ` +
      'change; nothing of the new ones was read',
  )
}

/** At a start, of a topic of the application's own. */
export async function otherCount(
  broker: BrokerPort,
  { topic, partitions: has }: TopicInfo,
  wanted: number,
  sources: Topics,
): Promise<EngineError> {
  const asking = [...sources.values()].filter(({ partitions }) => partitions === wanted).map((source) => source.topic)
  const by = asking.length > 0 ? ` (as many as ${asking.slice(0, named).join(', ')} has)` : ''
  return new EngineError(
    'PARTITIONS_CHANGED',
    `the topic ${topic} has ${has} partitions where the source topics now ask for ${wanted}${by}` +
      ((await isUnused(broker, topic, has))
        ? '. Nothing was ever written to it: delete it, and the next start makes it with the right number'
        : ', and it holds what was shared out by that number: the number of partitions of a stateful application cannot change'),
  )
}

async function isUnused(broker: BrokerPort, topic: string, count: number): Promise<boolean> {
  const partitions = Array.from({ length: count }, (_, partition) => ({ topic, partition }))
  try {
    return (await broker.listOffsets(partitions, 'latest')).every(({ offset }) => offset === 0)
  } catch (error) {
    if (error instanceof BrokerError) return false
    throw error
  }
}
