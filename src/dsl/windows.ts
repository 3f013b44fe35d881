/** The kinds of windows. All times are durations: milliseconds, `'10s'`, `'1h30m'` or ISO 8601. */
import { type Duration, tryParseDuration } from '../base/duration.ts'
import { checkOptions, type Names, shownInstead } from '../topology/check-given.ts'
import { invalid } from '../topology/physical.ts'
import type { WindowSpec } from '../topology/operator-spec.ts'

/** What all kinds of windows have in common. */
export interface WindowSettings {
  /** How long after its end a window still takes late records. Default: 0. */
  readonly grace?: Duration
  /**
   * Closes windows also while the input is quiet: once no record has come for this long by the wall clock, event time
   * goes on with the clock. A record that waits in its topic, or before a slow function, has come; time in which nobody
   * could have seen one (a pause, a broker that is gone) does not count. Windows close up to a second later than that, and
   * behind a re-key of other windows two seconds more. They wait for what operators above them hold back, however long
   * that is, and see within five seconds that it has gone. Default: only records close windows.
   */
  readonly closeAfterIdle?: Duration
}

const windowOptions: Names<WindowSettings> = { grace: true, closeAfterIdle: true }

declare const windowKind: unique symbol
interface SpecByKind {
  readonly time: Extract<WindowSpec, { type: 'time' }>
  readonly sliding: Extract<WindowSpec, { type: 'sliding' }>
  readonly session: Extract<WindowSpec, { type: 'session' }>
  readonly unlimited: Extract<WindowSpec, { type: 'unlimited' }>
}

/** A kind of windows, made by `tumbling`, `hopping`, `sliding`, `session` or `unlimited`. */
export interface Windows<
  out Kind extends 'time' | 'sliding' | 'session' | 'unlimited' = 'time' | 'sliding' | 'session' | 'unlimited',
> {
  readonly [windowKind]?: Kind
  /** What the engine makes of it: all times in milliseconds. */
  readonly spec: SpecByKind[Kind]
}

/** @throws EngineError `TOPOLOGY_INVALID` for what no function of this file has made. */
export function specOf(windows: { readonly spec: WindowSpec }): WindowSpec {
  const spec = (windows as { readonly spec?: WindowSpec } | null | undefined)?.spec
  if (spec !== undefined) return spec
  throw invalid(
    `windowedBy is given ${shownInstead(windows)}; give what tumbling(…), hopping(…), sliding(…), session(…) or unlimited(…) returns`,
  )
}

/** The milliseconds of a duration. Throws where it is none. */
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

function common(taker: string, settings: WindowSettings | undefined): { graceMs: number; closeAfterIdleMs?: number } {
  checkOptions(taker, settings, windowOptions)
  const graceMs = ms(settings?.grace ?? 0, 'the grace of a window')
  if (settings?.closeAfterIdle === undefined) return { graceMs }
  return { graceMs, closeAfterIdleMs: positive(settings.closeAfterIdle, 'closeAfterIdle of a window') }
}

/**
 * Windows of one size that follow one another without a gap: `[0, size)`, `[size, 2·size)`, …
 *
 * @example
 * clicks.groupByKey().windowedBy(tumbling('1h', { grace: '10m' })).count().toStream().to('per-hour')
 * // clicks ← ann: { page: 'shop' } @ 59m
 * // clicks ← ann: { page: 'shop' } @ 61m
 * // per-hour → ann [0h, 1h): 1
 * // per-hour → ann [1h, 2h): 1
 * @throws EngineError `TOPOLOGY_INVALID` when a duration is malformed, or the size is 0.
 */
export function tumbling(size: Duration, settings?: WindowSettings): Windows<'time'> {
  const sizeMs = positive(size, 'the size of a tumbling window')
  return { spec: { type: 'time', sizeMs, advanceMs: sizeMs, ...common('tumbling', settings) } }
}

/**
 * Windows of one size that begin every `advance`: a record belongs to `size / advance` of them.
 *
 * @example
 * clicks.groupByKey().windowedBy(hopping('2m', '1m')).count().toStream().to('counts')
 * // clicks ← ann: { page: 'shop' } @ 90s
 * // counts → ann [0m, 2m): 1
 * // counts → ann [1m, 3m): 1
 * @throws EngineError `TOPOLOGY_INVALID` when a duration is malformed or 0, or the advance is larger than the size.
 */
export function hopping(size: Duration, advance: Duration, settings?: WindowSettings): Windows<'time'> {
  const sizeMs = positive(size, 'the size of a hopping window')
  const advanceMs = positive(advance, 'the advance of a hopping window')
  if (advanceMs > sizeMs) {
    throw invalid(
      `a hopping window of ${sizeMs} ms advances by ${advanceMs} ms; the advance must not be larger than the size`,
    )
  }
  return { spec: { type: 'time', sizeMs, advanceMs, ...common('hopping', settings) } }
}

/**
 * Windows that end at each record: they hold the records at most `difference` older. A late record makes windows after
 * it, too. Both ends are inclusive.
 *
 * @example
 * clicks.groupByKey().windowedBy(sliding('10s'), { emit: 'on-close' }).count().toStream().to('counts')
 * // clicks ← ann: { page: 'shop' } @ 20s
 * // clicks ← ann: { page: 'cart' } @ 25s
 * // clicks ← bob: { page: 'shop' } @ 2m
 * // counts → ann [10s, 20s]: 1
 * // counts → ann [15s, 25s]: 2
 * // counts → ann [20001ms, 30001ms]: 1
 * @throws EngineError `TOPOLOGY_INVALID` when a duration is malformed.
 */
export function sliding(difference: Duration, settings?: WindowSettings): Windows<'sliding'> {
  return {
    spec: {
      type: 'sliding',
      differenceMs: ms(difference, 'the difference of a sliding window'),
      ...common('sliding', settings),
    },
  }
}

/**
 * Windows of activity: records of a key at most `gap` apart belong to one session. Both ends are inclusive.
 *
 * @example
 * clicks.groupByKey().windowedBy(session('30m'), { emit: 'on-close' }).count().toStream().to('visits')
 * // clicks ← ann: { page: 'shop' } @ 0m
 * // clicks ← ann: { page: 'cart' } @ 20m
 * // clicks ← bob: { page: 'shop' } @ 2h
 * // visits → ann [0m, 20m]: 2
 * @throws EngineError `TOPOLOGY_INVALID` when a duration is malformed, or the gap is 0.
 */
export function session(gap: Duration, settings?: WindowSettings): Windows<'session'> {
  return {
    spec: { type: 'session', gapMs: positive(gap, 'the gap of a session window'), ...common('session', settings) },
  }
}

/**
 * One window without end, from `start` (epoch milliseconds, default 0). It never closes, so it emits on update only.
 *
 * @example
 * const counts = clicks.groupByKey().windowedBy(unlimited({ start: 60_000 })).count()
 * counts.toStream({ key: (count, window) => window.key }).to('counts')
 * // clicks ← ann: { page: 'shop' } @ 50s
 * // clicks ← ann: { page: 'shop' } @ 70s
 * // counts → ann: 1
 * @throws EngineError `TOPOLOGY_INVALID` when `start` is no epoch milliseconds.
 */
export function unlimited(settings?: { readonly start?: number }): Windows<'unlimited'> {
  checkOptions('unlimited', settings, { start: true })
  const startMs = settings?.start ?? 0
  if (!Number.isSafeInteger(startMs) || startMs < 0)
    throw invalid(`an unlimited window starts at ${startMs}; give epoch milliseconds`)
  return { spec: { type: 'unlimited', startMs } }
}
