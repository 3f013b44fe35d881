/** What the HTTP interface needs of high availability: `../ha` fills it; without one, `/ha/*` is answered 404. */
export {
  type HaAcknowledgement,
  type HaCommand,
  type HaCommandResult,
  type HaHistory,
  type HaHistoryEvent,
  type HaPeer,
  type HaStatus,
  type HaVerdict,
  type HaView,
  judgeHaCommand,
  staleViewMs,
} from '../ha/shown/view.ts'
