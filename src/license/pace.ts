import type { Random } from '../base/random.ts'

/** The first retry waits for this part of the heartbeat interval; each further one twice as long. */
const firstRetryPart = 1 / 16

/**
 * Time until the next validation. Heartbeats are spread by a tenth either way, retries shortened by up to a half, so
 * that machines that failed together do not ask together.
 */
export function validationDelayMs(
  intervalMs: number,
  failures: number,
  retryAfterMs: number | undefined,
  random: Random,
): number {
  if (failures === 0) return intervalMs * (0.9 + 0.2 * random.next())
  const backoff = Math.min(intervalMs, intervalMs * firstRetryPart * 2 ** (failures - 1))
  return Math.max(backoff * (0.5 + 0.5 * random.next()), Math.min(retryAfterMs ?? 0, intervalMs))
}
