/**
 * Which lanes come further, and what the others are at: a slow lane is not a stuck one. Two things never end by
 * themselves: a turn that is in a synchronous function, and a call of an asynchronous one that does not answer. One turn may
 * call many functions, one after the other, such as those of timers: it is as old as the last of its steps. Ages are
 * counted here, in steps that no pause of this process makes longer.
 */
import type { Clock } from '../../base/clock.ts'
import { laneIndex } from '../../base/counters.ts'
import type { EngineErrorDetails } from '../../base/errors.ts'
import { type RecordPlace, recordAt } from '../snapshots.ts'

/** What a lane is at, and for how long. */
export interface LaneWork {
  readonly lane: number
  readonly ageMs: number
  /** Index of the node; -1 where none is known. */
  readonly node: number
  readonly record: RecordPlace | null
  readonly asynchronous: boolean
}

/** A step counts for no more than this: whoever looks so seldom was not let run, and nor were the lanes. */
const longestStepMs = 1000
/** Nor for more than this part of the timeout, so that a lane which is not let run for a moment is not stuck. */
const stepsOfTimeout = 10

class Watched {
  readonly block: Float64Array
  #turns = 0
  #finished = 0
  #call = 0
  #steps = 0
  /** Since anything of the lane changed, since its turn began, since its oldest call did. */
  stillMs = 0
  turnMs = 0
  callMs = 0

  constructor(block: Float64Array) {
    this.block = block
  }

  look(stepMs: number): void {
    const { block } = this
    const begun = block[laneIndex.turnsBegun] as number
    const ended = block[laneIndex.turnsEnded] as number
    const turns = begun + ended
    const finished = block[laneIndex.finishedRecords] as number
    const call = block[laneIndex.oldestCall] as number
    const steps = block[laneIndex.steps] as number
    const isSame = turns === this.#turns && steps === this.#steps
    this.stillMs = isSame && finished === this.#finished ? this.stillMs + stepMs : 0
    this.turnMs = begun !== ended && isSame ? this.turnMs + stepMs : 0
    this.callMs = call !== 0 && call === this.#call ? this.callMs + stepMs : 0
    this.#turns = turns
    this.#steps = steps
    this.#finished = finished
    this.#call = call
  }
}

export class LaneWatch {
  readonly #clock: Clock
  readonly #lanes: readonly Watched[]
  readonly #longestStepMs: number
  #lookedAt: number

  /** It looks every `everyMs`, where it is let run. */
  constructor(laneCounters: readonly Float64Array[], clock: Clock, timeoutMs: number, everyMs: number) {
    this.#clock = clock
    this.#longestStepMs = Math.min(longestStepMs, Math.max(timeoutMs / stepsOfTimeout, everyMs))
    this.#lanes = laneCounters.map((block) => new Watched(block))
    this.#lookedAt = clock.monotonic()
  }

  look(): void {
    const now = this.#clock.monotonic()
    const step = Math.min(this.#longestStepMs, now - this.#lookedAt)
    this.#lookedAt = now
    for (const lane of this.#lanes) lane.look(step)
  }

  /** How long the slowest call of late took, or has taken yet. */
  get slowestMs(): number {
    let slowest = 0
    for (const { block, turnMs, callMs } of this.#lanes)
      slowest = Math.max(slowest, turnMs, callMs, block[laneIndex.slowestMs] as number)
    return slowest
  }

  /** For how long the lane has been in one function, or has done nothing since it was told something. */
  stillMs(lane: number, toldMs: number): number {
    const { turnMs, stillMs } = this.#lanes[lane] as Watched
    return Math.max(turnMs, Math.min(stillMs, toldMs))
  }

  /**
   * For how long one of these lanes has been in one and the same function; where none is in any, for how long all of them
   * have done nothing since they were told something, which was `toldMs` ago.
   */
  withoutProgressMs(lanes: readonly number[], toldMs: number): number {
    let longest = 0
    let still = lanes.length === 0 ? 0 : toldMs
    for (const lane of lanes) {
      const { turnMs, callMs, stillMs } = this.#lanes[lane] as Watched
      longest = Math.max(longest, turnMs, callMs)
      still = Math.min(still, stillMs)
    }
    return Math.max(longest, still)
  }

  /** What the slowest of these lanes is at; undefined where none of them is in a function. */
  work(lanes: readonly number[], originTopics: readonly string[]): LaneWork | undefined {
    let oldest: LaneWork | undefined
    for (const lane of lanes) {
      const { block, turnMs, callMs } = this.#lanes[lane] as Watched
      const asynchronous = callMs > turnMs
      const ageMs = Math.max(turnMs, callMs)
      if (ageMs === 0 || ageMs <= (oldest?.ageMs ?? 0)) continue
      const node = block[asynchronous ? laneIndex.oldestNode : laneIndex.currentNode] as number
      oldest = { lane, ageMs, node, record: recordAt(block, originTopics, asynchronous), asynchronous }
    }
    return oldest
  }
}

/** What this lane is at, for people; undefined where it is in no function. */
export function sentenceOf(
  watch: LaneWatch,
  lane: number,
  originTopics: readonly string[],
  nodeNames: readonly string[],
): string | undefined {
  const work = watch.work([lane], originTopics)
  return work && toldOf(work, (node) => nodeNames[node] ?? null).sentence
}

/** What a lane is at, for people, and the place for programs. */
export function toldOf(
  work: LaneWork,
  nodeName: (node: number) => string | null,
): { readonly sentence: string; readonly place: EngineErrorDetails } {
  const { lane, node, record, ageMs, asynchronous } = work
  const name = nodeName(node)
  const where = name === null ? 'a function of the application' : `a function of ${name}`
  const at = record === null ? '' : `, at the record ${record.topic}/${record.partition} at offset ${record.offset}`
  const seconds = (ageMs / 1000).toFixed(1)
  const sentence = asynchronous
    ? `lane-${lane} has waited ${seconds} s for the answer of ${where}${at}`
    : `lane-${lane} has been in ${where} for ${seconds} s${at}`
  return { sentence, place: { lane, ...record, ...(name !== null && { node: name }) } }
}
