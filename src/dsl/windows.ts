/** The kinds of windows. All times are durations: milliseconds, `'10s'`, `'1h30m'` or ISO 8601. */
import { type Duration, tryParseDuration } from '../base/duration.ts'
import { invalid } from '../topology/physical.ts'
import type { WindowSpec } from '../topology/operator-spec.ts'

export interface WindowSettings {
  /** How long after its end a window still takes late records. Default: 0. */
  readonly grace?: Duration
  /**
   * Closes windows also while the input is quiet: once no record has come for this long by the wall clock, event time
   * is taken to go on with it. Default: windows close by records alone.
   */
  readonly closeAfterIdle?: Duration
}

declare const windowKind: unique symbol
interface SpecByKind {
  readonly time: Extract<WindowSpec, { type: 'time' }>
  readonly sliding: Extract<WindowSpec, { type: 'sliding' }>
  readonly session: Extract<WindowSpec, { type: 'session' }>
  readonly unlimited: Extract<WindowSpec, { type: 'unlimited' }>
}

/** A description of windows, made by `tumbling`, `hopping`, `sliding`, `session` or `unlimited`. */
export interface Windows<
  out Kind extends 'time' | 'sliding' | 'session' | 'unlimited' = 'time' | 'sliding' | 'session' | 'unlimited',
> {
  readonly [windowKind]?: Kind
  readonly spec: SpecByKind[Kind]
}

/** The milliseconds of a duration; refuses what is none. */
export function ms(duration: Duration, what: string): number {
  const parsed = tryParseDuration(duration)
  if (parsed === undefined) {
    throw invalid(
      `${what} is ${JSON.stringify(duration)}, which is no duration; write milliseconds, '10s', '5m' or 'PT1H'`,
    )
  }
  return parsed
}

function positive(duration: Duration, what: string): number {
  const parsed = ms(duration, what)
  if (parsed === 0) throw invalid(`${what} is 0; it must be at least one millisecond`)
  return parsed
}

function common(settings: WindowSettings | undefined): { graceMs: number; closeAfterIdleMs?: number } {
  const graceMs = ms(settings?.grace ?? 0, 'the grace of a window')
  if (settings?.closeAfterIdle === undefined) return { graceMs }
  return { graceMs, closeAfterIdleMs: positive(settings.closeAfterIdle, 'closeAfterIdle of a window') }
}

/**
 * Windows of one size that follow one another without gap: `[0, size)`, `[size, 2·size)`, …
 *
 * @example
 * stream.groupByKey().windowedBy(tumbling('1h', { grace: '10m' })).count()
 */
export function tumbling(size: Duration, settings?: WindowSettings): Windows<'time'> {
  const sizeMs = positive(size, 'the size of a tumbling window')
  return { spec: { type: 'time', sizeMs, advanceMs: sizeMs, ...common(settings) } }
}

/** Windows of one size that begin every `advance`: a record belongs to `size / advance` of them. */
export function hopping(size: Duration, advance: Duration, settings?: WindowSettings): Windows<'time'> {
  const sizeMs = positive(size, 'the size of a hopping window')
  const advanceMs = positive(advance, 'the advance of a hopping window')
  if (advanceMs > sizeMs) {
    throw invalid(
      `a hopping window of ${sizeMs} ms advances by ${advanceMs} ms; the advance must not be larger than the size`,
    )
  }
  return { spec: { type: 'time', sizeMs, advanceMs, ...common(settings) } }
}

/** Windows around each record: all records at most `difference` apart are together in one. Both ends are inclusive. */
export function sliding(difference: Duration, settings?: WindowSettings): Windows<'sliding'> {
  return {
    spec: { type: 'sliding', differenceMs: ms(difference, 'the difference of a sliding window'), ...common(settings) },
  }
}

/** Windows of activity: records at most `gap` apart belong together. Both ends are inclusive. */
export function session(gap: Duration, settings?: WindowSettings): Windows<'session'> {
  return { spec: { type: 'session', gapMs: positive(gap, 'the gap of a session window'), ...common(settings) } }
}

/** One window without end, from `start` (epoch milliseconds, default 0). */
export function unlimited(settings?: { readonly start?: number }): Windows<'unlimited'> {
  const startMs = settings?.start ?? 0
  if (!Number.isSafeInteger(startMs) || startMs < 0)
    throw invalid(`an unlimited window starts at ${startMs}; give epoch milliseconds`)
  return { spec: { type: 'unlimited', startMs } }
}
