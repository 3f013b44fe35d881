/**
 * Places in a commit at which a test lets the process die, as a lost machine would, to see what the next one makes of
 * what is left. Whoever passes such a place is given the function at its construction; without a test there is none.
 */

/**
 * S0 the marks are under way, S1 all lanes have acknowledged, S2 outputs and changelogs are stored, S3 the offsets are
 * in the transaction, S4 its end is asked for, S5 it is known to have taken effect, S6 a store has written it,
 * S7 all have.
 */
export const commitSteps = ['S0', 'S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7'] as const
export type CommitStep = (typeof commitSteps)[number]

export type Failpoint = (step: CommitStep) => void

/** `S4:3` lets `die` be called when S4 is passed for the third time. Undefined where nothing is asked for. */
export function failpointOf(text: string | undefined, die: () => void): Failpoint | undefined {
  const [, step, times] = /^(S[0-7])(?::(\d+))?$/.exec(text ?? '') ?? []
  if (step === undefined) return undefined
  let left = Number(times ?? 1)
  return (passed) => {
    if (passed === step && --left === 0) die()
  }
}

/** As `failpointOf`, as the environment says; the process ends as by `kill -9`, with all its threads. */
export function failpointOfProcess(): Failpoint | undefined {
  return failpointOf(process.env.MILLRACE_FAILPOINT, () => process.kill(process.pid, 'SIGKILL'))
}
