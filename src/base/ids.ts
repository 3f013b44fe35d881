declare const brand: unique symbol
type Branded<T, B extends string> = T & { readonly [brand]?: B }

/** Number of a commit within one run of the engine, from 1. */
export type CommitEpoch = Branded<number, 'CommitEpoch'>
/** Epoch of the promotion token (high availability). */
export type TokenEpoch = Branded<number, 'TokenEpoch'>
/** Epoch of a transactional producer. */
export type ProducerEpoch = Branded<number, 'ProducerEpoch'>
/** Epoch of a partition's leader. */
export type LeaderEpoch = Branded<number, 'LeaderEpoch'>
/** Generation of a consumer group. */
export type GenerationId = Branded<number, 'GenerationId'>

/** `<topic>:<partition>`, the spelling of the HTTP interface. */
export type PartitionKey = `${string}:${number}`

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

export function partitionKey(topic: string, partition: number): PartitionKey {
  return `${topic}:${partition}`
}
