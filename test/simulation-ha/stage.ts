/** What the pods of a world run: an engine, its input, and what must come out. */
import type { Random } from '../../src/base/random.ts'
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import type { HaCommandToEngine, HaFact } from '../../src/engine/ha-contract.ts'
import type { EngineFact } from '../../src/engine/protocol.ts'
import type { Derived } from './derived.ts'
import type { EngineFlaws } from './model-engine.ts'
import type { Scheduler } from '../simulation/scheduler.ts'

export interface SimEngine {
  readonly paused: boolean
  start(): void
  command(command: HaCommandToEngine): void
  /** The operator's will. */
  setPaused(paused: boolean): void
  /** An active engine restarts in place, for about this long. */
  disturb(ms: number): void
  /** An active engine has used up its restarts, at this offset of the input. */
  exhaust?(offset: number): void
}

export interface EngineOrder {
  readonly pod: number
  readonly podId: string
  readonly scheduler: Scheduler
  readonly owner: number
  readonly clockRate: number
  readonly messageMs: number
  readonly broker: BrokerPort
  readonly fact: (fact: EngineFact | HaFact) => void
  readonly flaws: EngineFlaws
  /** Lets the engine's next commit fail, and cuts it off for this long. */
  readonly trouble: (ms: number) => void
}

export interface InputRecord {
  readonly partition: number
  readonly records: Uint8Array
}

export interface Stage {
  readonly applicationId: string
  readonly inputTopic: string
  /** Stores cannot always be written, which is no trouble that a profile names. */
  readonly disksFail: boolean
  prepare(cluster: EmbeddedCluster): Promise<void>
  /** The next input record. */
  feed(random: Random, derived: Derived): InputRecord
  engine(order: EngineOrder): SimEngine
  /** The pod's disk is gone, or belongs to another process. */
  loseStore(pod: number): void
  /** Whether everything that was fed is committed. */
  settled(cluster: EmbeddedCluster): boolean
  check(cluster: EmbeddedCluster, violate: (what: string) => void): Promise<void>
}

/** Whether the group's offsets are at the ends of the input. */
export function inputIsCommitted(cluster: EmbeddedCluster, groupId: string, topic: string): boolean {
  const partitions = cluster.topics([topic])[0]?.partitions ?? 0
  const committed = new Map<number, number>()
  cluster.committedOffsets(groupId, null, false, {
    done: (offsets) => {
      for (const at of offsets) if (at.topic === topic) committed.set(at.partition, at.offset)
    },
    fail: () => undefined,
  })
  const all = Array.from({ length: partitions }, (_, partition) => ({ topic, partition }))
  return cluster
    .listOffsets(all, 'latest')
    .every(({ partition, offset }) => offset === 0 || committed.get(partition) === offset)
}
