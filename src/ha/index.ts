/** High availability: the coordinator, what it shows, and what it is given. */
export {
  coordinatorTopic,
  type HaCoordinator,
  type HaIdentity,
  type HaMetrics,
  type HaOptions,
  type HaSettings,
} from './contract.ts'
export { createHa } from './coordinator-shell.ts'
export { haSettings } from './settings.ts'
export { shortHash } from './topology-shape.ts'
export {
  type HaCommand,
  type HaCommandResult,
  type HaHistory,
  type HaPeer,
  type HaStatus,
  type HaView,
  judgeHaCommand,
} from './shown/view.ts'
