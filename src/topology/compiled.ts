/**
 * The compiled topology: what the engine runs. The application's `build` function makes it once on the control thread
 * and once in every lane. The same code gives the same indices everywhere, so threads name nodes, sources, stores and
 * boundaries by index. Only `plan.ts` (plain data) crosses threads.
 */
import type { Serde } from '../serde/serde.ts'
import type { StoreSpec } from '../state/contract.ts'
import type { Headers } from '../broker/wire/headers.ts'
import type { OperatorSpec } from './operator-spec.ts'

export interface WatermarkOptions {
  readonly maxOutOfOrdernessMs: number
  /** Undefined: the application's default (`watermark.idleness-timeout`). 0: off. */
  readonly idlenessMs: number | undefined
  readonly alignment: { readonly group: string; readonly maxDriftMs: number } | undefined
}

/** A function of the decoded record. A negative or non-integer result follows the rule of its source. */
export type TimestampExtractor = (
  value: unknown,
  key: unknown,
  record: { timestamp: number; headers: Headers; topic: string; partition: number; offset: number },
) => number

/** A record that a scheduled source emits. */
export interface ScheduledRecord {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp?: number
}

export interface CompiledSource {
  /** The position in `CompiledTopology.sources`, by which threads name this source. */
  readonly index: number
  readonly node: number
  readonly subtopology: number
  readonly name: string
  /**
   * `topics`: read from the broker. `boundary`: fed by `boundaries[boundary]`. `scheduled`: fired by the engine.
   * `global`: read by every lane, whole.
   */
  readonly kind: 'topics' | 'boundary' | 'scheduled' | 'global'
  readonly topics: readonly string[]
  readonly pattern: RegExp | undefined
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
  readonly watermark: WatermarkOptions
  /** Of a table it is not asked for the time of a record without a value, as its type says. */
  readonly timestampExtractor: TimestampExtractor | undefined
  /** A record without a value deletes a row. */
  readonly isTable: boolean
  /** Whether a node below looks at the value. If none does, the value is never decoded. */
  readonly readsValue: boolean
  /**
   * Whether its records are to have their values when they come to a lane: a node below looks at them or passes their
   * bytes on. A count does neither, and is told no more than whether there is one.
   */
  readonly carriesValue: boolean
  /** Whether a record without a value is told: a function is given its null, and nothing says that it is ready for that. */
  readonly tellsNull: boolean
  readonly boundary: number | undefined
  /**
   * The level at which its records are taken: 0 for topics and schedules; for a boundary, one more than the deepest source
   * whose records reach it. All sources of a sub-topology lie at one level, so that their records can be put in one order.
   * Only where a sub-topology feeds itself by way of another one (a foreign-key join), its sources lie at several levels,
   * and it is done in stages (`levels/stages.ts`).
   * Levels are never circular.
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

/** How the rows of a store are told once per commit. */
export interface PerCommit {
  /** Operators below it in its own task go by event time: timers wait for what is still to be told. */
  readonly holdsTask: boolean
  /** What it tells goes on to deeper tasks: their event time waits for it. */
  readonly holdsDeeper: boolean
}

/** A firing of a scheduled source. */
export interface ScheduledTick {
  /** The instant this firing was due, epoch milliseconds. */
  readonly scheduledAt: number
  /** 0, 1, 2, … over the life of the application; kept in its state. */
  readonly count: number
}

/** An edge between sub-topologies at which a record changes its lane. */
export interface Boundary {
  readonly index: number
  /** The base name, as Kafka Streams gives it: the topic would be `<applicationId>-<name>-repartition`. */
  readonly name: string
  /** The topic's name without the application's prefix: `<name>-repartition`, for foreign-key joins `…-topic`. */
  readonly topic: string
  readonly fromSubtopology: number
  readonly toSubtopology: number
  /** The source node that receives the records. */
  readonly toSource: number
  readonly keySerde: Serde<unknown>
  readonly valueSerde: Serde<unknown>
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
  /**
   * Stores that an operator keeps for itself beside those that Kafka Streams would show. They belong to the task and
   * are left out of descriptions.
   */
  readonly hiddenStores: readonly string[]
  readonly spec: OperatorSpec
}

export interface CompiledSubtopology {
  readonly id: number
  /** The deepest level of its sources: 0 for those fed by topics alone. */
  readonly level: number
  readonly nodes: readonly number[]
  readonly sources: readonly number[]
  /**
   * The stores with a changelog. A sub-topology that has any is stateful: it has a task for each changelog partition.
   */
  readonly stores: readonly string[]
  /** Whether it only fills global stores. Every lane loads these, and they belong to no task. */
  readonly global: boolean
  /** Records that other tasks hand over are taken in the order of event time, or as they arrive. */
  readonly order: 'event-time' | 'arrival'
}

/**
 * A topology as the engine runs it. It is meant for tools: `describeText` and `describeTopology` say what is in it. Its
 * parts name each other by their index.
 */
export interface CompiledTopology {
  /** Sources, processors and sinks. */
  readonly nodes: readonly CompiledNode[]
  /** The parts between which records change their key. */
  readonly subtopologies: readonly CompiledSubtopology[]
  /** The sources, with topics, serdes and watermark settings. */
  readonly sources: readonly CompiledSource[]
  /** The edges between sub-topologies. */
  readonly boundaries: readonly Boundary[]
  /** The stores by name. */
  readonly stores: ReadonlyMap<string, StoreSpec>
  /** The global stores by name, each with the index of the source that fills it. */
  readonly globalStores: ReadonlyMap<string, number>
  /** How many sub-topologies lie behind one another at the most. */
  readonly levels: number
  /** The stores whose tables tell each changed row once per commit. */
  readonly perCommit: ReadonlyMap<string, PerCommit>
}
