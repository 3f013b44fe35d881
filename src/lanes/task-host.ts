/** What tasks ask of their lane: writing, handing over, counting, time. */
import type { ByteRange } from '../base/byte-range.ts'
import type { Clock } from '../base/clock.ts'
import { laneIndex } from '../base/counters.ts'
import { keySlot } from '../base/hash.ts'
import type { CommitEpoch } from '../base/ids.ts'
import type { DropReason, Origin, Rec } from '../operators/contract.ts'
import type { TaskHost } from '../operators/task.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import type { Headers } from '../wire/headers.ts'
import { encodeHeaders } from '../wire/record-batch.ts'
import type { Affinity } from './affinity.ts'
import { deadLetterHeaders, dropSentence, type ErrorPolicies } from './error-policy.ts'
import type { Handoffs } from './handoffs.ts'
import type { LaneCounters } from './lane-counters.ts'
import type { Outputs } from './outputs.ts'
import type { TaskSlot } from './task-slot.ts'

export interface TaskHostOptions {
  readonly topology: CompiledTopology
  readonly applicationId: string
  readonly outputs: Outputs
  readonly handoffs: Handoffs
  readonly counters: LaneCounters
  readonly clock: Clock
  readonly policies: ErrorPolicies
  readonly affinity: () => Affinity
  readonly alive: (slot: TaskSlot) => boolean
  readonly originTopic: (name: string) => number
  readonly requestCommit: () => void
  readonly fencingToken: () => number
}

/** Where a boundary leads: the source that receives, its sub-topology and that one's level. */
interface Target {
  readonly source: number
  readonly subtopology: number
  readonly level: number
  /** Its topic, where sub-topologies exchange records through topics. */
  readonly topic: string
}

interface RawRecord {
  readonly key: ByteRange | null
  readonly value: ByteRange | null
}

export class TaskHostPort {
  readonly #options: TaskHostOptions
  /** What each record was when it came to this sub-topology; only where records that were changed on their way may become dead letters. */
  readonly #raw: WeakMap<Origin, RawRecord> | undefined
  readonly #targets: readonly Target[]

  constructor(options: TaskHostOptions) {
    this.#options = options
    this.#raw = options.policies.dropped === 'dead-letter' ? new WeakMap() : undefined
    const { topology, applicationId } = options
    this.#targets = topology.boundaries.map((boundary) => {
      const source = topology.sources.find((s) => s.boundary === boundary.index)
      const { toSubtopology: subtopology } = boundary
      const topic = `${applicationId}-${boundary.topic}`
      return { source: source?.index ?? -1, subtopology, level: source?.level ?? 0, topic }
    })
  }

  /** A record comes in, as these bytes. */
  began(origin: Origin, key: ByteRange | null, value: ByteRange | null): void {
    this.#raw?.set(origin, { key, value })
  }

  /** The host of one task. `slot` is asked for late, because slot and task are made of each other. */
  for(slot: () => TaskSlot): TaskHost {
    const { outputs, clock, counters, alive } = this.#options
    return {
      emit: (topic, key, value, rec, partitionKey) => {
        const s = slot()
        if (!alive(s)) return
        const epoch = (rec.origin.epoch || s.epoch) as CommitEpoch
        const { timestamp, headers } = rec
        if (key === undefined)
          outputs.addKeyed(epoch, topic, rec.keyRange ?? null, value, timestamp, headers, partitionKey)
        else outputs.add(epoch, topic, key, value, timestamp, headers, partitionKey)
      },
      handOff: (boundary, key, value, rec, partitionKey) => {
        const s = slot()
        if (alive(s)) this.#handOff(s, boundary, key, value, rec, partitionKey)
      },
      dropped: (rec, reason, node) => {
        const s = slot()
        if (alive(s)) this.dropped(s, rec, reason, node)
      },
      wallClock: () => clock.now(),
      requestCommit: () => this.#options.requestCommit(),
      fencingToken: () => this.#options.fencingToken(),
      timerFired: (kind: 'event-time' | 'wall-clock') =>
        counters.add(kind === 'event-time' ? laneIndex.eventTimersFired : laneIndex.wallClockTimersFired, 1),
      probe: counters.probe,
    }
  }

  /** A record that goes no further although nothing is wrong with the function: late, without a key, … */
  dropped(slot: TaskSlot, rec: Rec, reason: DropReason, node: string): void {
    const { counters, policies } = this.#options
    counters.dropped(slot.subtopology, reason)
    if (policies.dropped !== 'dead-letter') return
    const headers = deadLetterHeaders(undefined, rec.origin, rec.headers, dropSentence(reason, node))
    this.#deadLetter(slot, rec, reason, headers)
  }

  /** A record that could not be decoded, processed or encoded. */
  rejected(slot: TaskSlot, rec: Rec, error: unknown, reason: DropReason, deadLetter: boolean): void {
    this.#options.counters.dropped(slot.subtopology, reason)
    if (deadLetter) this.#deadLetter(slot, rec, reason, deadLetterHeaders(error, rec.origin, rec.headers))
  }

  #deadLetter(slot: TaskSlot, rec: Rec, reason: DropReason, headers: Headers): void {
    const { counters, outputs, policies } = this.#options
    counters.deadLetter(reason)
    const epoch = (rec.origin.epoch || slot.epoch) as CommitEpoch
    // The record as it came, so that it can be put back; of what a timer made there is only what it is.
    const raw = this.#raw?.get(rec.origin)
    const key = raw ? (raw.key?.view() ?? null) : readable(rec.keyBytes, rec.key)
    const value = raw ? (raw.value?.view() ?? null) : readable(rec.valueBytes, rec.value)
    outputs.add(epoch, policies.deadLetterTopic, key, value, Math.max(0, rec.timestamp), headers, undefined)
  }

  #handOff(
    slot: TaskSlot,
    boundary: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
    rec: Rec,
    partitionKey: Uint8Array | undefined,
  ): void {
    const { handoffs, counters, outputs } = this.#options
    const affinity = this.#options.affinity()
    const target = this.#targets[boundary] as Target
    const by = partitionKey ?? key
    const { origin } = rec
    const epoch = (origin.epoch || slot.epoch) as CommitEpoch
    counters.add(laneIndex.handedOff, 1)
    if (affinity.split === 'repartition-topics') {
      outputs.add(epoch, target.topic, key, value, rec.timestamp, rec.headers, partitionKey)
      return
    }
    const hash = by === null ? Math.max(0, origin.partition) : keySlot(by)
    const task = hash % affinity.tasks(target.subtopology)
    const lane = affinity.lane(target.subtopology, task)
    const headers = rec.headers.length === 0 ? null : encodeHeaders(rec.headers)
    // A timer's record carries the time before the timer: nothing behind the hand-off may find it late.
    const { watermark } = origin
    handoffs
      .writer(epoch, target.level, lane)
      .append(
        target.source,
        task,
        this.#options.originTopic(origin.topic),
        origin.partition,
        origin.offset,
        rec.timestamp,
        watermark,
        key,
        key === null ? -1 : 0,
        key === null ? -1 : key.length,
        value,
        value === null ? -1 : 0,
        value === null ? -1 : value.length,
        headers,
        0,
        headers?.length ?? 0,
      )
    handoffs.written(epoch, target.level, lane, Number.NEGATIVE_INFINITY)
  }
}

/** The bytes as they came; of a record that was changed on its way, something that people can read. */
function readable(bytes: Uint8Array | null | undefined, data: unknown): Uint8Array | null {
  if (bytes !== undefined) return bytes
  if (data === null || data === undefined) return null
  if (typeof data === 'string') return Buffer.from(data)
  const plain = (_: string, x: unknown): unknown => (typeof x === 'bigint' ? String(x) : x)
  return Buffer.from(JSON.stringify(data, plain) ?? String(data))
}
