/** What tests say to the driver, and what it gives them. */
import type { Duration } from '../base/duration.ts'
import type { LogFields, LogLevel } from '../base/logger.ts'
import type { Headers } from '../broker/wire/headers.ts'
import type { ConfigInput } from '../config/config-input.ts'
import type { DropReason } from '../operators/contract.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { AnyStore } from '../state/contract.ts'
import type { CompiledTopology } from '../topology/compiled.ts'

/** What a topic of the test is like. */
export interface TopicOptions {
  /** How many partitions it has. Default: 1. */
  readonly partitions?: number
}

/** How a `TopologyTestDriver` runs its applications. */
export interface DriverOptions {
  /**
   * Configuration by dotted key, over that of each application. What concerns threads, disks and the network plays no part.
   */
  readonly config?: ConfigInput
  /** Wall clock at the beginning, epoch milliseconds. Default: 0. */
  readonly startAt?: number
  /** Partitions of all topics, or of each by name. Default: 1. */
  readonly partitions?: number | Readonly<Record<string, number>>
  /** Topics by name. What stands here goes before `partitions`. */
  readonly topics?: Readonly<Record<string, TopicOptions>>
  /** Lanes of the engine. Results do not depend on it. Default: 1. */
  readonly lanes?: number
  /**
   * When results are committed, so that they can be read. With `each` every call that feeds records or moves the clock
   * commits. With `interval` the engine commits as it does in production: when `commit-barrier.interval-ms` of the wall
   * clock have passed, and when the test calls `commit()`. Default: `each`.
   */
  readonly commits?: 'each' | 'interval'
  /**
   * How long, at most, a call that has a `timeout` may really take before it counts as late; shorter timeouts hold as they are. A
   * call that has none may take ten times as long while nothing else happens, then the driver's call rejects with `USAGE`.
   * Default: 1 s.
   */
  readonly patience?: Duration
  /**
   * The schema registry of `millrace/registry`, in this process; the application's own schemas go into it. Default: an empty
   * one, which is enough where the application has schemas of its own.
   */
  readonly registry?: EmbeddedRegistry
  /**
   * Gets what functions write with `context.logger`, from `log.level` on, as the log of a running application has it. Default:
   * nobody does.
   */
  readonly log?: (line: DriverLogLine) => void
  /** Where the driver runs several applications: what is another one's by its id. Default: all are run alike. */
  readonly applications?: Readonly<Record<string, ApplicationOptions>>
}

/** How one of several applications runs. What stands here goes before what the `DriverOptions` say for all. */
export interface ApplicationOptions {
  /** Configuration by dotted key, over that for all. */
  readonly config?: ConfigInput
  /** Lanes of its engine. */
  readonly lanes?: number
  /** Gets what its functions write with `context.logger`. */
  readonly log?: (line: DriverLogLine) => void
}

/** One of the applications that a `TopologyTestDriver` runs. */
export interface TestedApplication {
  /** Its id. */
  readonly applicationId: string
  /** Its compiled topology. */
  readonly topology: CompiledTopology
  /**
   * A store of the application by its name, to be read. It can be used across restarts.
   *
   * @throws EngineError `USAGE` when it has none of that name and partition.
   */
  store<S = AnyStore>(name: string, partition?: number): S
  /** Says in words how far its event time has come and what it waits for. */
  explain(): string
  /** The records that it has dropped so far. */
  dropped(): DroppedRecord[]
  /** The warnings that its engine has logged so far. */
  warnings(): readonly string[]
  /** Its topology as text, as `millrace topology` shows it. */
  describe(): string
  /**
   * Kills the application and starts it again on an empty disk, also where it has failed. Stores are restored from their changelogs, and
   * what was not committed is processed again. The other applications run on.
   */
  restart(): Promise<void>
}

/** A line that a function of the application wrote to the log. */
export interface DriverLogLine {
  /** How grave it is. */
  readonly level: LogLevel
  /** What it says. */
  readonly message: string
  /** What the function gave, and which node wrote it for which record. */
  readonly fields: LogFields
}

/** What a record has beside key and value. */
export interface PipeOptions {
  /** Epoch milliseconds. Default: the driver's wall clock. */
  readonly timestamp?: number
  /** Default: none. */
  readonly headers?: Headers
  /** Default: chosen by the key's hash. */
  readonly partition?: number
}

/** A record to feed. */
export interface InputRecord<K, V> extends PipeOptions {
  /** The key, not yet encoded. */
  readonly key: K | null
  /** The value, not yet encoded; null for a deletion. */
  readonly value: V | null
}

/** A topic to feed. */
export interface InputTopic<K, V> {
  /** Feeds a record. Resolves when everything that follows from it is done. */
  pipe(key: K | null, value: V | null, options?: PipeOptions): Promise<void>
  /**
   * Feeds records that lie in the topic all at once, like a backlog. Resolves when everything is done; with
   * `commits: 'interval'`, all that is let in ahead of a commit: `commit()` or time brings the rest about.
   */
  pipeAll(records: ReadonlyArray<InputRecord<K, V>>): Promise<void>
}

/** A record that the application wrote. */
export interface OutputRecord<K = unknown, V = unknown> {
  /** The topic that it was written to. */
  readonly topic: string
  /** Its partition. */
  readonly partition: number
  /** Its offset there. */
  readonly offset: number
  /** The key, decoded. */
  readonly key: K
  /** The value, decoded; null for a deletion. */
  readonly value: V
  /** Event time, epoch milliseconds. */
  readonly timestamp: number
  /** The headers, in their order. */
  readonly headers: Headers
}

/** A topic to read. */
export interface OutputTopic<K, V> {
  /** The oldest record that was not read yet. */
  read(): OutputRecord<K, V> | undefined
  /** All records that were not read yet. */
  readAll(): Array<OutputRecord<K, V>>
  /**
   * Reads all records that were not read yet and compares them, in this order, by the members that are given. Where
   * they differ it throws an `AssertionError` with the difference, and with what event time waits for.
   */
  expect(records: ReadonlyArray<Partial<OutputRecord<K, V>>>): void
}

/** A record that went no further. */
export interface DroppedRecord {
  /** Why: it was late, had no key, could not be processed, … */
  readonly reason: DropReason
  /** The operator that dropped it, or that failed at it. */
  readonly node: string
  /** The key, decoded. */
  readonly key: unknown
  /** The value, decoded; below a table the new one of its row. */
  readonly value: unknown
  /** Event time, epoch milliseconds. */
  readonly timestamp: number
}
