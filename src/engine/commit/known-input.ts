/**
 * Up to when it is known what came. Windows that close while nothing comes go by it and not by the clock alone: a record
 * that waits in its topic, behind an open transaction or before a slow function, has come. Time in which nobody could have
 * seen a record (a pause, a broker that is gone) is told apart, for it is no quiet.
 *
 * Known is what each partition was last read to the end for, once all that was read until then is done: it was dispatched
 * before the mark of a commit that has gone through. Beside it is told what operators above still held back at that mark.
 *
 * Where sub-topologies exchange records through topics, what lay in the input at some moment is known once those who write
 * to the topic have it behind them, and the topic is read up to the end that it had then.
 */
import { heldSlot, knownInputSlot } from '../../base/counters.ts'
import type { Watermarks } from '../../time/watermarks.ts'
import type { TopologyPlan } from '../../topology/plan.ts'
import type { EngineOptions } from '../engine-options.ts'
import type { EngineSettings } from '../settings.ts'
import type { Route } from '../input/dispatcher.ts'
import { tellsOfInput } from '../input/repartition/upstream.ts'
import { type HeldFrom, HeldInput } from './held-input.ts'

/** How long a fetch that brought nothing proves a partition empty: a little more than it may wait. */
export const evidenceTtlMs = ({ fetchMaxWaitMs }: Pick<EngineSettings, 'fetchMaxWaitMs'>): number =>
  fetchMaxWaitMs + 2500

/** A sub-topology whose windows close in quiet, and the sources from which its records come in the end. */
interface Fed {
  readonly subtopology: number
  readonly sources: ReadonlySet<number>
  /** Its nodes that close in quiet. */
  readonly nodes: readonly number[]
}

/** What those who write to the topics of a sub-topology have come to. */
export interface CameThrough {
  /** All that lay in the input at this moment of the monotonic clock is at hand. */
  readonly at: number
  /** What they hold back. */
  readonly held: HeldFrom
}

interface Known {
  /** By the wall clock. */
  readonly at: number
  /** Undefined: what the lanes say of the same mark. */
  readonly held: HeldFrom | undefined
}

const unknown = Number.NEGATIVE_INFINITY
const nothing = Number.POSITIVE_INFINITY

export class KnownInput {
  readonly held: HeldInput
  readonly #o: Pick<EngineOptions, 'clock' | 'layout' | 'laneCounters' | 'settings'>
  readonly #routes: () => Iterable<Route>
  readonly #watermarks: Pick<Watermarks, 'knownAt'>
  readonly #fed: readonly Fed[]
  /** Sources of which those who write to their topics tell. */
  readonly #told: ReadonlySet<number>
  /** Up to when all input has come through to the topics of a sub-topology, and is at hand. */
  readonly #through = new Map<number, CameThrough>()
  /** By partition, on the monotonic clock. */
  readonly #seen = new WeakMap<Route, number>()
  /** What the mark of the commit under way closes in. */
  #marked: readonly Known[] | undefined

  constructor(
    options: Pick<EngineOptions, 'clock' | 'layout' | 'laneCounters' | 'settings'>,
    routes: () => Iterable<Route>,
    watermarks: Pick<Watermarks, 'knownAt'>,
  ) {
    this.#o = options
    this.#routes = routes
    this.#watermarks = watermarks
    const { plan, split } = options.settings
    this.held = new HeldInput(options.settings)
    this.#fed = fedOf(plan)
    const told = plan.sources.filter((source) => tellsOfInput(plan, source))
    this.#told = new Set(split === 'repartition-topics' ? told.map(({ index }) => index) : [])
  }

  cameThrough(subtopology: number, through: CameThrough): void {
    this.#through.set(subtopology, through)
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

  #look(): Known[] {
    const { clock } = this.#o
    const ahead = clock.now() - clock.monotonic()
    const least = this.#fed.map(() => clock.monotonic())
    for (const route of this.#routes()) {
      const { handle, buffer } = route
      const known = this.#watermarks.knownAt(handle)
      // What an open transaction holds back has come.
      const { isWithheld } = buffer
      const through = this.#told.has(route.source) ? (this.#through.get(route.subtopology)?.at ?? unknown) : known
      if (known !== undefined && through !== undefined && !isWithheld) this.#seen.set(route, Math.min(known, through))
      const seen = this.#seen.get(route) ?? unknown
      for (const [i, { sources }] of this.#fed.entries())
        if (sources.has(route.source)) least[i] = Math.min(least[i] as number, seen)
    }
    // What others had told by now: of what they let go later it is not known that it is done here.
    const told = ({ subtopology }: Fed): HeldFrom => this.#through.get(subtopology)?.held ?? new Map()
    const isTold = this.#o.settings.split === 'repartition-topics'
    return this.#fed.map((fed, i) => ({ at: (least[i] as number) + ahead, held: isTold ? told(fed) : undefined }))
  }

  #tell(known: readonly Known[]): void {
    const { layout, laneCounters, settings } = this.#o
    const here = known.some(({ held }) => held === undefined) ? this.held.above() : undefined
    for (const [i, fed] of this.#fed.entries()) {
      const { at, held = here } = known[i] as Known
      if (at === unknown) continue
      const slot = knownInputSlot(layout, fed.subtopology)
      for (const block of laneCounters) {
        // Before the instant that it belongs to: a lane may look in between.
        for (const node of fed.nodes) block[heldSlot(layout, node)] = held?.get(node) ?? nothing
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
    .map(({ id }) => {
      const feeding = subtopologiesAbove(plan, id)
      const sources = plan.sources.filter(({ kind, subtopology }) => kind !== 'global' && feeding.has(subtopology))
      const nodes = (plan.quiet ?? []).filter(({ subtopology }) => subtopology === id)
      return {
        subtopology: id,
        sources: new Set(sources.map(({ index }) => index)),
        nodes: nodes.map(({ node }) => node),
      }
    })
}

/** It, and all that hand records to it, directly or not. */
function subtopologiesAbove(plan: TopologyPlan, subtopology: number, found = new Set<number>()): Set<number> {
  if (found.has(subtopology)) return found
  found.add(subtopology)
  for (const { fromSubtopology, toSubtopology } of plan.boundaries)
    if (toSubtopology === subtopology) subtopologiesAbove(plan, fromSubtopology, found)
  return found
}
