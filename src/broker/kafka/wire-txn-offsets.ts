/** TxnOffsetCommit in versions 4 and 5, which look alike; the library has the first only. */
import { type Connection, type Reader, txnOffsetCommitV4 } from '@platformatic/kafka'
import type { TopicPartition } from '../../base/ids.ts'
import type { GroupMember, OffsetToCommit, ProducerIdentity } from '../port.ts'
import { byTopic, send } from './wire-calls.ts'

export async function sendTxnOffsetCommit(
  connection: Connection,
  version: number,
  transactionalId: string,
  identity: ProducerIdentity,
  member: GroupMember,
  offsets: readonly OffsetToCommit[],
): Promise<Array<TopicPartition & { readonly errorCode: number }>> {
  const topics = byTopic(offsets).map(([name, items]) => ({
    name,
    partitions: items.map((item) => ({
      partitionIndex: item.partition,
      committedOffset: BigInt(item.offset),
      committedLeaderEpoch: -1,
      committedMetadata: item.metadata,
    })),
  }))
  return send(
    connection,
    txnOffsetCommitV4.api.key,
    version,
    () =>
      txnOffsetCommitV4.createRequest(
        transactionalId,
        member.groupId,
        identity.producerId,
        identity.producerEpoch,
        member.generationId,
        member.memberId,
        member.groupInstanceId,
        topics,
      ),
    parse,
  )
}

function parse(reader: Reader): Array<TopicPartition & { errorCode: number }> {
  const results: Array<TopicPartition & { errorCode: number }> = []
  reader.readInt32()
  reader.readArray((r) => {
    const topic = r.readString()
    r.readArray((p) => results.push({ topic, partition: p.readInt32(), errorCode: p.readInt16() }))
  })
  return results
}
