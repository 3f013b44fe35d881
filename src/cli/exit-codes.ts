import { EngineError, type ErrorCode, messageOf } from '../base/errors.ts'
import { exitCodeFor, exitCodes } from '../runtime/exit-codes.ts'

export { exitCodes }

/** Of the command's input, where of a running engine they are a crash. */
const wrongInput: readonly ErrorCode[] = ['DECODE_FAILED', 'PORT_TAKEN']

/** Errors without a code of the table are a crash. */
export function exitCodeOf(error: unknown): number {
  if (!EngineError.is(error)) return isFolderWrong(error) ? exitCodes.usage : exitCodes.crash
  return wrongInput.includes(error.code) ? exitCodes.usage : exitCodeFor(error.code)
}

/** Of the embedded broker: to start again does not help while another process has it, or where there can be none. */
function isFolderWrong(error: unknown): boolean {
  if (!(error instanceof Error && 'errorClass' in error && 'code' in error)) return false
  return error.code === 'STORAGE_LOCKED' || error.code === 'STORAGE_UNUSABLE'
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
