/** One lane as its counters in shared memory show it, from one look to the next. */
import { type CounterLayout, laneIndex, subtopologySlot } from '../../base/counters.ts'
import { CallLook } from './call-look.ts'
import type { LaneFacts, RecordPlace } from './facts.ts'

export interface SeenFunction {
  readonly function: string | null
  readonly blocked: boolean
  /** When the thread was found in that function first, one time after the other, and when last. */
  readonly found?: { readonly firstMs: number; readonly lastMs: number }
}

export interface LaneSample {
  readonly facts: LaneFacts
  readonly timersPending: number
}

/** The rate is taken over so long. */
const windowMs = 5000
/** Fewer looks than this within the window say nothing. */
const fewestLooks = 4
/** A key goes on being the heaviest one although it was not for so long. */
const hotPauseMs = 1500
/**
 * A lane goes on being at work although it had nothing for so long: what feeds it may have waited for a processor, or, at a commit, for the
 * call of another lane.
 */
const idlePauseMs = 3000
/** Who was at work at fewer of the looks waits for records most of the time. */
const leastShare = 0.25

export class LaneLook {
  readonly #name: string
  readonly #block: Float64Array
  readonly #layout: CounterLayout
  readonly #calls: CallLook
  #turns = -1
  #steps = 0
  #records = 0
  #offset = -1
  #stepSinceMs: number | null = null
  #stillSinceMs = 0
  #ended = 0
  #oldest = 0
  #longestStepMs = 0
  #busySinceMs: number | null = null
  #lastBusyMs = 0
  #hot: { hash: number; sinceMs: number; seenMs: number; facts: NonNullable<LaneFacts['hotKey']> } | null = null
  /** Earlier looks, oldest first: finished records, and whether the lane was at work. */
  #looks: Array<{ readonly atMs: number; readonly count: number; readonly isBusy: boolean }> = []

  constructor(lane: number, block: Float64Array, layout: CounterLayout) {
    this.#name = `lane-${lane}`
    this.#block = block
    this.#layout = layout
    this.#calls = new CallLook(block)
  }

  take(
    now: number,
    topics: readonly string[],
    nodeName: (node: number) => string | null,
    seen: SeenFunction | undefined,
    functionName: (node: number) => string | null = () => null,
    restarts = 0,
  ): LaneSample {
    const block = this.#block
    this.#step(now)
    const { call, longestMs } = this.#calls.take(now, restarts)
    const { queued, inFlight } = { queued: this.#at('queuedRecords'), inFlight: this.#at('inFlightAsync') }
    const isBehindACall = this.#stepSinceMs === null && inFlight > 0
    const isInside = isBehindACall && seen !== undefined && this.#isInside(seen)
    const stepSinceMs = isInside ? this.#stillSinceMs : this.#stepSinceMs
    const isBusy = stepSinceMs !== null || inFlight > 0 || queued > 0
    const rate = this.#rate(now, isBusy)
    const busyShare = this.#looks.filter((look) => look.isBusy).length / this.#looks.length
    if (isBusy) this.#lastBusyMs = now
    if (isBusy) this.#busySinceMs ??= now
    else if (now - this.#lastBusyMs >= idlePauseMs) this.#busySinceMs = null
    // One that gets a little again and again is not at work all along.
    if (rate !== null && busyShare < leastShare) this.#busySinceMs = null
    const at = place(topics, this.#at('currentTopic'), this.#at('currentPartition'), this.#at('currentOffset'))
    const facts: LaneFacts = {
      lane: this.#name,
      stepSinceMs,
      ...(isBehindACall && { stillSinceMs: this.#stillSinceMs }),
      node: nodeName(this.#at('currentNode')),
      nodeFunction: functionName(this.#at('currentNode')),
      function: stepSinceMs === null ? null : (seen?.function ?? null),
      blocked: stepSinceMs !== null && seen?.blocked === true,
      // Behind a call it is not the record that came last.
      at: this.#at('recordsReceived') > 0 && !isInside ? at : null,
      call: call && {
        sinceMs: call.sinceMs,
        ...(call.isAgain && { isAgain: true }),
        node: nodeName(this.#at('oldestNode')),
        nodeFunction: functionName(this.#at('oldestNode')),
        at: place(topics, this.#at('oldestTopic'), this.#at('oldestPartition'), this.#at('oldestOffset')),
      },
      ...this.#failing(topics, nodeName, functionName),
      longestStepMs: this.#longestStepMs,
      longestCallMs: Math.max(longestMs, inFlight > 0 ? this.#at('callMs') : 0),
      callMs: this.#at('callMs'),
      queuedRecords: Math.max(0, queued),
      storesMs: this.#at('storesMs'),
      rate,
      busySinceMs: this.#busySinceMs,
      busyShare,
      hotKey: this.#hotKey(now, topics, nodeName),
    }
    return { facts, timersPending: block[laneIndex.timersPending] as number }
  }

  #failing(
    topics: readonly string[],
    nodeName: (node: number) => string | null,
    functionName: (node: number) => string | null,
  ): Pick<LaneFacts, 'failing'> {
    const calls = this.#at('failingCalls')
    if (calls === 0) return {}
    const node = this.#at('failingNode')
    return {
      failing: {
        calls,
        sinceMs: this.#at('failingSinceMs'),
        node: nodeName(node),
        nodeFunction: functionName(node),
        at: place(topics, this.#at('failingTopic'), this.#at('failingPartition'), this.#at('failingOffset')),
      },
    }
  }

  #at(slot: keyof typeof laneIndex): number {
    return this.#block[laneIndex[slot]] as number
  }

  /**
   * What goes on when a promise was kept belongs to no turn. The thread is in such a function where it is found there again and again,
   * while nothing else is heard of the lane.
   */
  #isInside({ function: name, found }: SeenFunction): boolean {
    if (name === null || found === undefined) return false
    return found.firstMs < found.lastMs && found.lastMs > this.#stillSinceMs
  }

  /** A step ends when the lane begins another record, call or turn: one that goes on and on has none. */
  #step(now: number): void {
    const turns = this.#at('turnsBegun') + this.#at('turnsEnded')
    const isInTurn = this.#at('turnsBegun') !== this.#at('turnsEnded')
    const offset = this.#at('currentOffset')
    let records = 0
    for (let sub = 0; sub < this.#layout.subtopologies; sub++)
      records += this.#block[subtopologySlot(this.#layout, sub)] as number
    const steps = this.#at('steps')
    const moved = turns !== this.#turns || records !== this.#records || offset !== this.#offset || steps !== this.#steps
    const ended = this.#at('finishedRecords')
    const oldest = this.#at('oldestCall')
    if (moved || ended !== this.#ended || oldest !== this.#oldest) this.#stillSinceMs = now
    this.#ended = ended
    this.#oldest = oldest
    if (moved && this.#stepSinceMs !== null)
      this.#longestStepMs = Math.max(this.#longestStepMs, now - this.#stepSinceMs)
    if (!isInTurn) this.#stepSinceMs = null
    else if (moved || this.#stepSinceMs === null) this.#stepSinceMs = now
    this.#turns = turns
    this.#steps = steps
    this.#records = records
    this.#offset = offset
  }

  #rate(now: number, isBusy: boolean): number | null {
    const count = this.#at('finishedRecords')
    const list = this.#looks
    // A restart in place counts anew.
    if (list.length > 0 && count < (list.at(-1)?.count ?? 0)) list.length = 0
    list.push({ atMs: now, count, isBusy })
    while (list.length > 2 && now - (list[1]?.atMs ?? now) >= windowMs) list.shift()
    const [first] = list
    if (first === undefined || list.length < fewestLooks || now - first.atMs < windowMs / 2) return null
    return ((count - first.count) * 1000) / (now - first.atMs)
  }

  /** Another key may wait for a moment, or none: the one that has waited all along stays. */
  #hotKey(now: number, topics: readonly string[], nodeName: (node: number) => string | null): LaneFacts['hotKey'] {
    const waiting = this.#at('longestChain')
    const hash = this.#at('hotKeyHash')
    const known = this.#hot
    if (known !== null && (waiting < 2 || hash !== known.hash)) {
      if (now - known.seenMs < hotPauseMs) return known.facts
      this.#hot = null
    }
    if (waiting < 2) return null
    const sinceMs = this.#hot?.sinceMs ?? now
    const facts = {
      hash: hash.toString(16).padStart(8, '0'),
      waiting,
      node: nodeName(this.#at('oldestNode')),
      topic: topics[this.#at('hotKeyTopic')] ?? null,
      partition: this.#at('hotKeyPartition'),
      sinceMs,
    }
    this.#hot = { hash, sinceMs, seenMs: now, facts }
    return facts
  }
}

function place(topics: readonly string[], topicIndex: number, partition: number, offset: number): RecordPlace | null {
  const topic = topics[topicIndex]
  return topic === undefined || offset < 0 ? null : { topic, partition, offset }
}
