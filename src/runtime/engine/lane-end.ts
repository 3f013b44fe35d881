/** Why a lane's thread has ended, as a sentence. `src/view/diagnosis/wording/cause-advice.ts` goes by its words. */
import { messageOf } from '../../base/errors.ts'
import { isThrownHere, thrownAt } from '../../base/thrown-at.ts'

/** Whatever it was that nothing caught. */
export interface Uncaught {
  readonly error: unknown
}

export function whyEnded(code: number, uncaught: Uncaught | undefined): string {
  if (uncaught === undefined) return `its thread ended with exit code ${code}, as \`process.exit\` ends it`
  const { error } = uncaught
  const message = messageOf(error)
  if (error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY')
    return `its thread ran out of memory (${message})`
  const at = thrownAt(error)
  const where = at === undefined ? (isThrownHere(error) ? ', in code of Millrace' : '') : `, thrown at ${at}`
  return `${isRejection(error) ? 'nobody handled the rejection of a promise' : 'nothing caught an error'}${where}: ${message}`
}

/** As `src/lanes/lane-worker.ts` throws it. Of its class only the code gets here: an error comes from a thread as a copy. */
function isRejection(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'LANE_FAILED'
}
