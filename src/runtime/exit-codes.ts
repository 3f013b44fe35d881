/** The exit codes of the process. */
import type { EngineError, ErrorCode } from '../base/errors.ts'

export const exitCodes = {
  clean: 0,
  crash: 1,
  /**
   * Wrong usage, configuration, application or input, damaged files, state that does not fit changelogs and offsets: to
   * start again does not help.
   */
  usage: 2,
  fenced: 3,
  license: 4,
  laneStuck: 70,
} as const

/** The exit code of an engine that has failed. Errors that are not named here are a crash. */
export function exitCodeFor(code: ErrorCode | 'UNKNOWN'): number {
  switch (code) {
    case 'CONFIG_INVALID':
    case 'APPLICATION_INVALID':
    case 'TOPOLOGY_INVALID':
    case 'FEED_INVALID':
    case 'USAGE':
    case 'STORE_LOCKED':
    case 'BROKER_FILES_DAMAGED':
    case 'SCHEMAS_DAMAGED':
    case 'STORE_AHEAD':
    case 'OFFSETS_MISSING':
    case 'PARTITIONS_CHANGED':
    case 'CHANGELOG_LOST':
    case 'STATE_CHANGED':
      return exitCodes.usage
    case 'FENCED':
      return exitCodes.fenced
    case 'LICENSE_REFUSED':
      return exitCodes.license
    case 'LANE_STUCK':
      return exitCodes.laneStuck
    default:
      return exitCodes.crash
  }
}

/** The exit code behind an engine that has ended; `ofFailure` where nothing better is known of its failure. */
export function exitCodeAfter(error: EngineError | undefined, ofFailure: number): number {
  if (error === undefined) return exitCodes.clean
  const own = exitCodeFor(error.code)
  return own === exitCodes.crash ? ofFailure : own
}
