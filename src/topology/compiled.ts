/**
 * The compiled topology: what the engine runs. Built from the application's `build` function once on the control
 * thread and once in every lane; the same code gives the same indices everywhere, so threads name nodes, sources,
 * stores and boundaries by index. Only `plan.ts` (plain data) crosses threads.
 */
import type { Serde } from '../serde/serde.ts'
import type { StoreSpec } from '../state/contract.ts'
import type { Headers } from '../wire/headers.ts'
import type { OperatorSpec } from './operator-spec.ts'

export interface WatermarkOptions {
  readonly maxOutOfOrdernessMs: number
  /** Undefined: the application's default (`watermark.idleness-timeout`); 0: off. */
  readonly idlenessMs: number | undefined
  readonly alignment: { readonly group: string; readonly maxDriftMs: number } | undefined
}

/** Sees the decoded record; a negative or non-integer result follows the rule of its source (`features.md` §3.3). */
export type TimestampExtractor = (
  value: unknown,
  key: unknown,
  record: { timestamp: number; headers: Headers; topic: string; partition: number; offset: number },
) => number

/** An emitted record of a scheduled source. */
export interface ScheduledRecord {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp?: number
}

export interface CompiledSource {
  /** Position in `CompiledTopology.sources`: the name of this source on the wire. */
  readonly index: number
  readonly node: number
  readonly subtopology: number
  readonly name: string
  /** `topics`: read from the broker. `boundary`: fed by `boundaries[boundary]`. `scheduled`: fired by the engine. `global`: read by every lane, whole. */
  readonly kind: 'topics' | 'boundary' | 'scheduled' | 'global'
  readonly topics: readonly string[]
  readonly pattern: RegExp | undefined
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
  readonly watermark: WatermarkOptions
  readonly timestampExtractor: TimestampExtractor | undefined
  /** False when nothing below looks at the value: then it is never decoded. */
  readonly readsValue: boolean
  readonly boundary: number | undefined
  /**
   * Hand-offs between here and the topics: 0 for topics and schedules, for a boundary one more than the deepest source
   * whose records reach it. Never circular, unlike sub-topologies, which may feed one another (a foreign-key join) or
   * themselves (a stream re-keyed and joined with the same table again).
   */
  readonly level: number
  readonly schedule:
    | {
        readonly everyMs: number | undefined
        readonly cron: string | undefined
        readonly emit: (tick: ScheduledTick) => unknown
      }
    | undefined
}

export interface ScheduledTick {
  /** The instant this firing was due, epoch milliseconds. */
  readonly scheduledAt: number
  /** 0, 1, 2, … over the life of the application, kept in its state. */
  readonly count: number
}

/** An edge between sub-topologies at which a record changes its lane. */
export interface Boundary {
  readonly index: number
  /** Base name as the field gives it: the topic would be `<applicationId>-<name>-repartition`. */
  readonly name: string
  /** The topic's name without the application's prefix: `<name>-repartition`, for foreign-key joins `…-topic`. */
  readonly topic: string
  readonly fromSubtopology: number
  readonly toSubtopology: number
  /** Source node that receives. */
  readonly toSource: number
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
  /** Foreign-key joins send to a partition of their own choosing rather than to the key's. */
  readonly partitionFromHeader: boolean
}

export interface CompiledNode {
  readonly index: number
  readonly name: string
  readonly type: 'source' | 'processor' | 'sink'
  readonly subtopology: number
  /** Children in the order they were added. */
  readonly children: readonly number[]
  readonly parents: readonly number[]
  readonly stores: readonly string[]
  /** Stores an operator keeps for itself beside those that the field shows: part of the task, not of descriptions. */
  readonly hiddenStores: readonly string[]
  readonly spec: OperatorSpec
}

export interface CompiledSubtopology {
  readonly id: number
  /** The deepest level of its sources: 0 for those fed by topics alone. Directly read topics are relayed. */
  readonly level: number
  readonly nodes: readonly number[]
  readonly sources: readonly number[]
  /** Stores with a changelog: non-empty makes the sub-topology stateful, its tasks go by changelog partition. */
  readonly stores: readonly string[]
  /** Global stores are loaded by every lane and belong to no task. */
  readonly global: boolean
}

export interface CompiledTopology {
  readonly nodes: readonly CompiledNode[]
  readonly subtopologies: readonly CompiledSubtopology[]
  readonly sources: readonly CompiledSource[]
  readonly boundaries: readonly Boundary[]
  readonly stores: ReadonlyMap<string, StoreSpec>
  /** Store name → source index that fills it. */
  readonly globalStores: ReadonlyMap<string, number>
  readonly levels: number
}
