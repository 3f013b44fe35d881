/** `millrace/runtime`: run an application from your own program. */
export type { LogLine, Runtime, RuntimeOptions, StoreEntry, StoreReader } from './contract.ts'
export { type EmbeddedBroker, type EmbeddedBrokerOptions, startEmbeddedBroker } from '../broker/embedded/start.ts'
export { startRuntime } from './runtime.ts'
