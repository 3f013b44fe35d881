/** The public surface of the package: applications, the DSL, serdes, stores, errors. */
export type { Duration } from './base/duration.ts'
export type { ConfigInput } from './config/config-input.ts'
export { type Application, type ApplicationDefinition, defineApp, isApplication } from './dsl/app.ts'
export { type CloudEvent, cloudEvents } from './serde/cloud-events.ts'
export { CogroupedStream, SessionWindowedCogroup, WindowedCogroup } from './dsl/cogroup.ts'
export { type Emit, GroupedStream, SessionWindowedStream, WindowedStream } from './dsl/grouped.ts'
export { GroupedTable } from './dsl/grouped-table.ts'
export type {
  Cancellable,
  ForwardOptions,
  KeyTimers,
  Processor,
  ProcessOptions,
  ProcessorContext,
  ProcessorFactory,
  ValueProcessorContext,
  ValueProcessorFactory,
} from './dsl/process.ts'
export { type CallSettings, type RetryOptions, withRetry } from './dsl/retry.ts'
export { keyValueStore, sessionStore, type StoreDeclaration, versionedStore, windowStore } from './dsl/stores.ts'
export { Stream } from './dsl/stream.ts'
export type { Branch, TopicChoice } from './dsl/nodes.ts'
export type { StreamJoinOptions, TableJoinOptions } from './dsl/stream-joins.ts'
export { type ForeignKeyJoinOptions, GlobalTable, type SuppressOptions, Table } from './dsl/table.ts'
export { compile, type ScheduledSettings, Topology } from './dsl/topology.ts'
export type {
  Awaitable,
  Fold,
  Named,
  Ordered,
  RecordFn,
  RecordGuard,
  SourceSettings,
  TombstoneSettings,
  Stored,
  StoreSettings,
  StreamFn,
  WatermarkSettings,
  WithSerdes,
} from './dsl/types.ts'
export { hopping, session, sliding, tumbling, unlimited, type WindowSettings, type Windows } from './dsl/windows.ts'
export type { LogFields, Logger, LogLevel, LogMethod } from './base/logger.ts'
export { EngineError, type ErrorCode } from './base/errors.ts'
export {
  type MessagePackOptions,
  type PlainAvroOptions,
  type ProtobufType,
  type Serde,
  serdes,
  type StandardSchema,
} from './serde/index.ts'
export type {
  KeyValueStore,
  ReadOnlyKeyValueStore,
  SessionStore,
  TimestampedKeyValueStore,
  ValueAndTimestamp,
  VersionedRecord,
  VersionedStore,
  Window,
  Windowed,
  WindowStore,
} from './state/contract.ts'
export type { CompileOptions } from './topology/compile.ts'
export type { CompiledTopology, ScheduledTick } from './topology/compiled.ts'
export { describeText, describeTopology } from './topology/describe.ts'
export type { FunctionContext, RecordView } from './topology/operator-spec.ts'
export type { Headers, HeaderValue } from './broker/wire/headers.ts'
