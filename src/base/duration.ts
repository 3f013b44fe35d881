/** A span of time: a number of milliseconds, `'10s'`, `'5m'`, `'1h30m'`, or ISO 8601 (`'PT30S'`, `'P1DT2H'`). */
export type Duration = number | string

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
const short = /(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)/gy
const iso =
  /^P(?:(\d+(?:\.\d+)?)W)?(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/i

/** The milliseconds of a duration, or undefined where it is not one. Never negative, always an integer. */
export function tryParseDuration(duration: unknown): number | undefined {
  if (typeof duration === 'number') return Number.isFinite(duration) && duration >= 0 ? Math.round(duration) : undefined
  if (typeof duration !== 'string') return undefined
  const text = duration.trim()
  if (/^\d+$/.test(text)) return Number(text)
  const m = text.length > 1 ? iso.exec(text) : null
  if (m?.slice(1).some((part) => part !== undefined)) {
    const [w = 0, d = 0, h = 0, min = 0, s = 0] = m.slice(1).map((part) => Number(part ?? 0))
    return Math.round(w * 604_800_000 + d * 86_400_000 + h * 3_600_000 + min * 60_000 + s * 1000)
  }
  let total = 0
  let at = 0
  while (at < text.length) {
    short.lastIndex = at
    const part = short.exec(text)
    if (!part) return undefined
    total += Number(part[1]) * (unitMs[part[2] as string] as number)
    at = short.lastIndex
    while (text[at] === ' ') at++
  }
  return text.length === 0 ? undefined : Math.round(total)
}

/** ISO 8601 rendering, as `PT26H3M4.5S`. */
export function isoDuration(durationMs: number): string {
  const sign = durationMs < 0 ? '-' : ''
  let rest = Math.abs(Math.round(durationMs))
  const hours = Math.floor(rest / 3_600_000)
  rest -= hours * 3_600_000
  const minutes = Math.floor(rest / 60_000)
  rest -= minutes * 60_000
  const seconds = rest / 1000
  const text = `${hours ? `${hours}H` : ''}${minutes ? `${minutes}M` : ''}${seconds ? `${seconds}S` : ''}`
  return `${sign}PT${text || '0S'}`
}
