import { EngineError, type ErrorCode, messageOf } from '../errors.ts'

/** What the command answers to its caller. */
export const exitCodes = {
  clean: 0,
  crash: 1,
  /** Wrong usage, configuration, application or input. */
  usage: 2,
  fenced: 3,
  license: 4,
  laneStuck: 70,
} as const

const byCode: Partial<Record<ErrorCode, number>> = {
  USAGE: exitCodes.usage,
  CONFIG_INVALID: exitCodes.usage,
  APPLICATION_INVALID: exitCodes.usage,
  TOPOLOGY_INVALID: exitCodes.usage,
  FEED_INVALID: exitCodes.usage,
  DECODE_FAILED: exitCodes.usage,
  STORE_LOCKED: exitCodes.usage,
  PORT_TAKEN: exitCodes.usage,
  FENCED: exitCodes.fenced,
  LICENSE_REFUSED: exitCodes.license,
  LANE_STUCK: exitCodes.laneStuck,
}

/** Errors without a code of the table are a crash. */
export function exitCodeOf(error: unknown): number {
  return (EngineError.is(error) ? byCode[error.code] : undefined) ?? exitCodes.crash
}

/**
 * The sentence for standard error. An error of the engine's own table explains itself; anything else is a bug, and then
 * where it happened is worth more than a tidy line.
 */
export function sentenceOf(error: unknown): string {
  if (EngineError.is(error)) return `millrace: ${error.message}`
  if (error instanceof Error && 'errorClass' in error) return `millrace: ${error.message}`
  return `millrace: ${error instanceof Error ? (error.stack ?? error.message) : messageOf(error)}`
}
