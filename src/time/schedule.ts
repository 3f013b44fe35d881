/**
 * When a scheduled source fires. Firings lie on a fixed grid, whatever the delay with which one was made: `last +
 * every`, or the instants that a cron expression names, in UTC. Firings missed while nothing ran are made up by one,
 * the latest of them: whoever comes back after a week does not want ten thousand at once.
 */
import { Cron } from 'croner'

export interface FiringRule {
  readonly everyMs: number | undefined
  /** Five or six fields (with seconds), as croner understands them. */
  readonly cron: string | undefined
}

const expressions = new Map<string, Cron>()

/**
 * The instant of the next firing, epoch milliseconds: in the future, or the latest one missed. `Infinity` when there is
 * none. `lastMs`: the instant of the last firing, or when the source began.
 */
export function nextFiring(rule: FiringRule, lastMs: number, now: number): number {
  if (rule.everyMs !== undefined) {
    const missed = Math.floor((now - lastMs) / rule.everyMs)
    return lastMs + Math.max(1, missed) * rule.everyMs
  }
  if (rule.cron === undefined) return Number.POSITIVE_INFINITY
  const cron = expressionOf(rule.cron)
  const next = cron.nextRun(new Date(lastMs))?.getTime() ?? Number.POSITIVE_INFINITY
  if (next > now) return next
  // `previousRuns` leaves out the instant asked from, and knows whole seconds only.
  const latest = cron.previousRuns(1, new Date(now + 1000))[0]?.getTime()
  if (latest !== undefined && latest <= now && latest > lastMs) return latest
  const before = cron.previousRuns(1, new Date(now))[0]?.getTime() ?? next
  return Math.max(before, next)
}

/** Says what is wrong with a cron expression; undefined for a good one. */
export function cronFault(expression: string): string | undefined {
  try {
    expressionOf(expression)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function expressionOf(expression: string): Cron {
  let cron = expressions.get(expression)
  if (cron === undefined) {
    cron = new Cron(expression, { timezone: 'UTC', paused: true })
    expressions.set(expression, cron)
  }
  return cron
}
