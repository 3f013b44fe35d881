/** How far changelogs go that are to be read into stores. */
import { partitionKey, type TopicPartition } from '../../base/ids.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { StoreReplay } from './store-replay.ts'

/**
 * How far each changelog is to be replayed. What lies behind the group's position in a source topic that serves as
 * changelog is input, not yet state.
 *
 * With `pause`, what was committed and is not shown yet is waited for: the broker decides a transaction first, and marks each
 * of its partitions after that; and a process that is gone may have left one open. `pause` answers undefined once nobody
 * waits any more.
 */
export async function findEnds(
  broker: BrokerPort,
  stores: readonly StoreReplay[],
  group: ReadonlyArray<TopicPartition & { readonly offset: number }>,
  pause?: () => Promise<void> | undefined,
): Promise<void> {
  const read = offsetsById(group)
  for (let left = stores; left.length > 0; ) {
    const [stable, earliest] = await Promise.all([
      broker.listOffsets(left.map(placeOf), 'stable'),
      broker.listOffsets(left.map(placeOf), 'earliest'),
    ])
    const [ends, starts] = [offsetsById(stable), offsetsById(earliest)]
    const endOf = (store: StoreReplay): number =>
      Math.min(ends.get(idOf(store)) ?? 0, read.get(idOf(store)) ?? Number.POSITIVE_INFINITY)
    const short = pause === undefined ? [] : left.filter((store) => endOf(store) < store.known)
    const hidden = await hiddenOf(broker, short)
    // What is hidden tells nothing yet: a store on disk would seem to have more than its changelog ever had.
    for (const store of left) if (!hidden.includes(store)) store.fit(starts.get(idOf(store)) ?? 0, endOf(store))
    const paused = hidden.length === 0 ? undefined : pause?.()
    if (paused === undefined) return
    await paused
    left = hidden
  }
}

/** Those that have what was committed, and do not show it. */
async function hiddenOf(broker: BrokerPort, short: readonly StoreReplay[]): Promise<readonly StoreReplay[]> {
  if (short.length === 0) return []
  const latest = offsetsById(await broker.listOffsets(short.map(placeOf), 'latest'))
  return short.filter((store) => (latest.get(idOf(store)) ?? 0) >= store.known)
}

const placeOf = ({ topic, partition }: TopicPartition): TopicPartition => ({ topic, partition })

const idOf = ({ topic, partition }: TopicPartition): string => partitionKey(topic, partition)

const offsetsById = (
  offsets: ReadonlyArray<TopicPartition & { readonly offset: number }>,
): ReadonlyMap<string, number> => new Map(offsets.map((each) => [idOf(each), each.offset]))
