/** `millrace/runtime`: run an application from your own program. */
export type { LogLine, OwnLogger, Runtime, RuntimeOptions, StoreEntry, StoreReader } from './contract.ts'
export { type EmbeddedBroker, type EmbeddedBrokerOptions, startEmbeddedBroker } from '../broker/embedded/start.ts'
export type { SaslToken, TokenProvider } from '../broker/kafka/token-source.ts'
export { startRuntime } from './runtime.ts'
export type { NewRecord, ReadOptions, RecordSerdes, TopicRecord } from './topics/records.ts'
