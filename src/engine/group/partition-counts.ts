/** Refuses to run where the number of partitions is not the one by which the state of keys was shared out. */
import { BrokerError, type BrokerPort, type TopicInfo } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'

type Counts = ReadonlyMap<string, Pick<TopicInfo, 'topic' | 'partitions'>>

/** Those of many that a sentence names. */
const named = 3

/** While the application runs. `had`: the partitions of the changelog by which the state is shared out. */
export function countsMoved(changelog: string, had: number, before: Counts, now: Counts): EngineError {
  const moved = [...now.values()].flatMap(({ topic, partitions }) => {
    const was = before.get(topic)?.partitions
    if (was === partitions) return []
    return was === undefined ? `${topic} is new, with ${partitions}` : `${topic} has ${partitions} and had ${was}`
  })
  return new EngineError(
    'PARTITIONS_CHANGED',
    `the number of partitions has changed while the application ran (${moved.slice(0, named).join(', ')}): the state in ` +
      `${changelog} is shared out by ${had}. The number of partitions of a stateful application cannot change; nothing of ` +
      'the new ones was read',
  )
}

/** At a start: what the last commit notes of the store, and its changelog as it is now. */
export function countSince(store: string, had: number, { topic, partitions }: TopicInfo): EngineError {
  return new EngineError(
    'PARTITIONS_CHANGED',
    `the number of partitions has changed since the last commit (${topic} has ${partitions} and had ${had}): the rows of the ` +
      `store ${store} are shared out by ${had}, and many keys would not be found. The number of partitions of a stateful application cannot ` +
      'change. Nothing was read or changed; begin anew under another applicationId',
    { topic },
  )
}

/** At a start, of a topic of the application's own; `asking`: topics that may ask for another number. */
export async function otherCount(
  broker: BrokerPort,
  { topic, partitions: has }: TopicInfo,
  wanted: number,
  { sources, own }: { readonly sources: Counts; readonly own: Counts },
): Promise<EngineError> {
  const asking = (topics: Counts): string =>
    [...topics.values()]
      .filter(({ partitions }) => partitions === wanted)
      .slice(0, named)
      .map((each) => each.topic)
      .join(', ')
  const [bySources, byOwn] = [asking(sources), asking(own)]
  const what =
    bySources === '' && byOwn !== ''
      ? `${byOwn}, beside which it is used, has ${wanted}`
      : `the source topics now ask for ${wanted}${bySources === '' ? '' : ` (as many as ${bySources} has)`}`
  return new EngineError(
    'PARTITIONS_CHANGED',
    `the topic ${topic} has ${has} partitions where ${what}` +
      ((await isUnused(broker, topic, has))
        ? '. Nothing was ever written to it: delete it, and the next start makes it with the right number'
        : ', and it is not empty: the number of partitions of a stateful application cannot change'),
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
