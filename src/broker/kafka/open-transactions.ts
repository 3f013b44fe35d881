/** Who holds a partition's last stable offset back, as KIP-664's `find-hanging` finds it. */
import { describeProducersV0, listTransactionsV0 } from '@platformatic/kafka'
import type { TopicPartition } from '../../base/ids.ts'
import type { OpenTransaction } from '../port.ts'
import type { Cluster } from './cluster.ts'
import { answered, refused } from './errors.ts'

export async function openTransactionsOf(cluster: Cluster, at: TopicPartition): Promise<OpenTransaction[]> {
  const { topic, partition } = at
  const what = `describing the producers of ${topic}:${partition}`
  const found = await cluster.retrying(what, async () => {
    const leader = await cluster.leader(at)
    const answer = await cluster.on(leader, 'coordinate', what, ({ connection }) =>
      answered(describeProducersV0.api.async(connection, [{ name: topic, partitionIndexes: [partition] }])),
    )
    const told = answer.topics[0]?.partitions[0]
    if (told === undefined) throw refused(-1, what)
    if (told.errorCode !== 0) throw refused(told.errorCode, what, told.errorMessage)
    return told.activeProducers.filter(({ currentTxnStartOffset }) => currentTxnStartOffset >= 0n)
  })
  if (found.length === 0) return []
  const names = await transactionalIds(
    cluster,
    found.map(({ producerId }) => producerId),
  )
  return found
    .map(
      ({ producerId, producerEpoch, currentTxnStartOffset }): OpenTransaction => ({
        producerId,
        producerEpoch,
        firstOffset: Number(currentTxnStartOffset),
        transactionalId: names.get(producerId) ?? null,
      }),
    )
    .sort((a, b) => a.firstOffset - b.firstOffset)
}

/** Each coordinator knows its own. One that does not answer, or does not allow it, leaves them unnamed. */
async function transactionalIds(cluster: Cluster, producerIds: bigint[]): Promise<ReadonlyMap<bigint, string>> {
  const what = 'listing transactions'
  const answers = await Promise.allSettled(
    cluster.addresses.map((address) =>
      cluster.on(address, 'coordinate', what, ({ connection }) =>
        answered(listTransactionsV0.api.async(connection, [], producerIds, -1n, null)),
      ),
    ),
  )
  const states = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value.transactionStates : []))
  return new Map(states.map(({ producerId, transactionalId }) => [producerId, transactionalId]))
}
