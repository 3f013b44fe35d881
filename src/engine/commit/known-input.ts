/**
 * Up to when it is known what came. Windows that close while nothing comes go by it and not by the clock alone: a record
 * that waits in its topic, behind an open transaction or before a slow function, has come. Time in which nobody could have
 * seen a record (a pause, a broker that is gone) is told apart, for it is no quiet.
 *
 * Known is what each partition was last read to the end for, once all that was read until then is done: it was dispatched
 * before the mark of a commit that has gone through. Where sub-topologies exchange records through topics, what lay in the
 * input at some moment is known once those who write to the topic have it behind them, and the topic is read up to the end
 * that it had then.
 */
import { knownInputSlot } from '../../base/counters.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { TopologyPlan } from '../../topology/plan.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { EngineSettings } from '../settings.ts'
import type { Route } from '../input/dispatcher.ts'
import { isAnnounced, isSorted } from '../input/repartition/upstream.ts'

/** How long a fetch that brought nothing proves a partition empty: a little more than it may wait. */
export const evidenceTtlMs = ({ fetchMaxWaitMs }: Pick<EngineSettings, 'fetchMaxWaitMs'>): number =>
  fetchMaxWaitMs + 2500

/** A sub-topology whose windows close in quiet, and the sources from which its records come in the end. */
interface Fed {
  readonly subtopology: number
  readonly sources: ReadonlySet<number>
}

const unknown = Number.NEGATIVE_INFINITY

export class KnownInput {
  readonly #o: Pick<EngineOptions, 'clock' | 'layout' | 'laneCounters' | 'settings'>
  readonly #routes: () => Iterable<Route>
  readonly #watermarks: Pick<Watermarks, 'knownAt'>
  readonly #fed: readonly Fed[]
  /** Sources of which those who write to their topics tell. */
  readonly #told: ReadonlySet<number>
  /** Up to when all input has come through to the topics of a sub-topology, and is at hand. */
  readonly #through = new Map<number, number>()
  /** By partition, on the monotonic clock. */
  readonly #seen = new WeakMap<Route, number>()
  /** What the mark of the commit under way closes in, by the wall clock. */
  #marked: readonly number[] | undefined

  constructor(
    options: Pick<EngineOptions, 'clock' | 'layout' | 'laneCounters' | 'settings'>,
    routes: () => Iterable<Route>,
    watermarks: Pick<Watermarks, 'knownAt'>,
  ) {
    this.#o = options
    this.#routes = routes
    this.#watermarks = watermarks
    const { plan, split } = options.settings
    this.#fed = fedOf(plan)
    const told = plan.sources.filter((source) => isAnnounced(plan, source) || isSorted(plan, source))
    this.#told = new Set(split === 'repartition-topics' ? told.map(({ index }) => index) : [])
  }

  /** All that lay in the input at this moment of the monotonic clock is at hand for this sub-topology. */
  cameThrough(subtopology: number, at: number): void {
    this.#through.set(subtopology, at)
  }

  /** The mark of a commit lies behind all that was dispatched. */
  mark(): void {
    if (this.#fed.length > 0) this.#marked = this.#look()
  }

  /** That commit has gone through. */
  passed(): void {
    if (this.#marked) this.#tell(this.#marked)
    this.#marked = undefined
  }

  /** Nothing was dispatched behind the last commit. */
  rests(): void {
    if (this.#fed.length > 0) this.#tell(this.#look())
  }

  #look(): number[] {
    const { clock } = this.#o
    const ahead = clock.now() - clock.monotonic()
    const least = this.#fed.map(() => clock.monotonic())
    for (const route of this.#routes()) {
      const { handle, buffer } = route
      const known = this.#watermarks.knownAt(handle)
      // What an open transaction holds back has come.
      const isWithheld = buffer.highWatermark > buffer.logEndOffset
      const through = this.#told.has(route.source) ? (this.#through.get(route.subtopology) ?? unknown) : known
      if (known !== undefined && through !== undefined && !isWithheld) this.#seen.set(route, Math.min(known, through))
      const seen = this.#seen.get(route) ?? unknown
      for (const [i, { sources }] of this.#fed.entries())
        if (sources.has(route.source)) least[i] = Math.min(least[i] as number, seen)
    }
    return least.map((at) => at + ahead)
  }

  #tell(known: readonly number[]): void {
    const { layout, laneCounters, settings } = this.#o
    for (const [i, { subtopology }] of this.#fed.entries()) {
      const at = known[i] as number
      if (at === unknown) continue
      const slot = knownInputSlot(layout, subtopology)
      for (const block of laneCounters) {
        const before = block[slot] as number
        if (at <= before) continue
        const provenMs = evidenceTtlMs(settings)
        const blind = before === 0 ? 0 : Math.max(0, at - before - provenMs)
        block[slot + 1] = (block[slot + 1] as number) + blind
        block[slot + 2] = provenMs
        block[slot] = at
      }
    }
  }
}

function fedOf(plan: TopologyPlan): Fed[] {
  return plan.subtopologies
    .filter(({ closesInQuiet }) => closesInQuiet === true)
    .map(({ id }) => ({ subtopology: id, sources: sourcesAbove(plan, id, new Set()) }))
}

/** Its own, and those of all sub-topologies that hand records to it. */
function sourcesAbove(plan: TopologyPlan, subtopology: number, seen: Set<number>): Set<number> {
  if (seen.has(subtopology)) return new Set()
  seen.add(subtopology)
  const own = plan.sources.filter((source) => source.subtopology === subtopology && source.kind !== 'global')
  const above = plan.boundaries.filter(({ toSubtopology }) => toSubtopology === subtopology)
  return new Set([
    ...own.map(({ index }) => index),
    ...above.flatMap(({ fromSubtopology }) => [...sourcesAbove(plan, fromSubtopology, seen)]),
  ])
}
