/** `millrace/runtime`: run an application from your own program. */
export type { LogLine, Runtime, RuntimeOptions } from './contract.ts'
export { startRuntime } from './runtime.ts'
