/** What the engine thread needs to know: plain data, made from the configuration by the control thread. */
import type { Sizes } from '../base/sizes.ts'
import type { SplitMode } from '../topology/affinity.ts'
import type { TopologyPlan } from '../topology/plan.ts'

export interface EngineSettings {
  readonly applicationId: string
  readonly instanceId: string
  /** Static membership: the name under which a restarted process takes over at once; null: none. */
  readonly groupInstanceId: string | null
  /** Of the machine or pod, as other members of the group are to read it. */
  readonly hostName?: string
  /** Under which name it talks to the broker. */
  readonly clientId?: string
  /** Where other processes of the group send those who look for a key that this one has. */
  readonly advertisedAddress?: string
  readonly lanes: number
  readonly split: SplitMode
  readonly guarantee: 'exactly-once' | 'at-least-once'
  readonly durableStores: boolean
  /** What is done where a changelog is not the one that the last commit went to. */
  readonly lostChangelogs: LostChangelogs
  readonly idlenessMs: number
  /** How long an empty input holds back the others of its task; see `WatermarksOptions.maxTaskIdleMs`. */
  readonly maxTaskIdleMs: number
  readonly bufferedRecordsPerPartition: number
  /** Most bytes of input that all partitions together may have buffered. */
  readonly bufferedMaxBytes: number
  readonly maxPollRecords: number
  readonly fetchMaxWaitMs: number
  /** How long passes at least from one request for records to the next where little comes. Default 0. */
  readonly fetchPaceMs?: number
  readonly fetchMaxBytes: number
  readonly partitionFetchMaxBytes: number
  readonly laneQueueBytes: number
  readonly uncommittedMaxBytes: number
  readonly maxDirtyRows: number
  readonly commitIntervalMs: number
  readonly commitIdleIntervalMs: number
  readonly barrierTimeoutMs: number
  readonly maxRestarts: number
  readonly restartWindowMs: number
  readonly resolveTimeoutMs: number
  readonly transactionTimeoutMs: number
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  readonly heartbeatIntervalMs: number
  /** How often new topics and partitions are looked for. */
  readonly metadataMaxAgeMs: number
  readonly defaultPartitions: number
  readonly offsetsReset: 'earliest' | 'latest' | 'fail'
  readonly sourceReset: 'earliest' | 'latest' | 'fail'
  /** Every topic that a sink names; counted apart. */
  readonly sinkTopics: readonly string[]
  readonly deadLetterTopic: string | null
  readonly plan: TopologyPlan
  /** Left out: the usual ones. */
  readonly sizes?: Sizes
  /** With high availability: the engine begins as a standby. */
  readonly ha?: HaEngineSettings
}

export type LostChangelogs = 'refuse' | 'write-anew' | 'accept'

export interface HaEngineSettings {
  readonly podId: string
  /** Whether the active pod takes its place in the consumer group, or only gives itself the partitions. */
  readonly groupMode: 'join' | 'assign'
}
