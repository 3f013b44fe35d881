/** What tasks ask of their lane: writing, handing over, counting, time. */
import { assert } from '../../base/assert.ts'
import { mostNullBytes } from '../transfer.ts'
import type { Clock } from '../../base/clock.ts'
import { laneIndex } from '../../base/counters.ts'
import { EngineError } from '../../base/errors.ts'
import { keySlot } from '../../base/hash.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import type { LogPort } from '../../base/logger.ts'
import {
  type CallGate,
  Change,
  type DropReason,
  type Operator,
  type Origin,
  Rec,
  type Tracing,
} from '../../operators/contract.ts'
import type { HostInput } from '../../operators/quiet/input-knowledge.ts'
import type { TaskHost } from '../../operators/task.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { CompiledNode, CompiledTopology } from '../../topology/compiled.ts'
import type { Deferral } from '../../topology/levels/stages.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { encodeHeaders } from '../../broker/wire/record-batch.ts'
import type { Affinity } from '../../topology/affinity.ts'
import {
  deadLetterHeaders,
  dropSentence,
  type ErrorPolicies,
  policyFor,
  refusedLetter,
  refusedRecord,
  withoutRecord,
} from './error-policy.ts'
import { passingOver } from './passing-over.ts'
import type { Deferred } from '../levels/deferred.ts'
import type { Handoffs } from '../levels/handoffs.ts'
import { Places } from '../levels/place.ts'
import type { LaneCounters } from '../lane-counters.ts'
import type { Outputs, Refusal, Taken } from '../outputs.ts'
import type { TaskSlot } from './task-slot.ts'

export interface TaskHostOptions {
  readonly topology: CompiledTopology
  readonly applicationId: string
  readonly outputs: Outputs
  readonly handoffs: Handoffs
  readonly deferred: Deferred
  readonly counters: LaneCounters
  readonly clock: Clock
  /** What of the lane's options says how the input is known. */
  readonly about: Pick<LaneOptions, 'tellsInput' | 'heldAbove'>
  readonly policies: ErrorPolicies
  readonly affinity: () => Affinity
  readonly alive: (slot: TaskSlot) => boolean
  readonly originTopic: (name: string) => number
  readonly requestCommit: () => void
  readonly fencingToken: () => number
  /** A record failed when the call that brought it was over already; applies the policy. */
  readonly failed: (slot: TaskSlot, rec: Rec, error: unknown) => void
  readonly gate: (node: CompiledNode) => CallGate | undefined
  readonly log: LogPort | undefined
  readonly tracing: Tracing | undefined
  readonly returned: (slot: TaskSlot, origin: Origin | undefined) => void
  readonly called: (slot: TaskSlot, origin: Origin | undefined, node: number) => void
  /** See `LaneOptions.dropped`. */
  readonly told: ((rec: Rec, reason: DropReason, node: string | undefined) => void) | undefined
}

/** Where a boundary leads: the source that receives, its sub-topology and that one's level. */
interface Target {
  readonly source: number
  readonly subtopology: number
  readonly level: number
  readonly isOrdered: boolean
  /** Its topic, where sub-topologies exchange records through topics. */
  readonly topic: string
  /** Its records are handed over with their values; otherwise with empty ones. */
  readonly carriesValue: boolean
}

export class TaskHostPort {
  readonly #options: TaskHostOptions
  /** Origins are to tell how records came: what was changed on its way may become a dead letter. */
  readonly keepsRecords: boolean
  /** Of topics that records come from: their incarnations. */
  topicIds: ReadonlyMap<string, string> = new Map()
  readonly #targets: readonly Target[]
  readonly #places: Places
  #hasRunOut = false

  constructor(options: TaskHostOptions) {
    this.#options = options
    const { topology, applicationId, policies } = options
    this.keepsRecords = Object.values(policies).includes('dead-letter')
    this.#places = new Places(topology.levels)
    this.#targets = topology.boundaries.map((boundary) => {
      const source = topology.sources.find((s) => s.boundary === boundary.index)
      const { toSubtopology: subtopology } = boundary
      const topic = `${applicationId}-${boundary.topic}`
      const isOrdered = topology.subtopologies[subtopology]?.order !== 'arrival'
      // Dead letters are records as they came.
      const carriesValue = source?.carriesValue !== false || this.keepsRecords
      return { source: source?.index ?? -1, subtopology, level: source?.level ?? 0, isOrdered, topic, carriesValue }
    })
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
        const taken =
          key === undefined
            ? outputs.addKeyed(epoch, topic, rec.keyRange ?? null, value, timestamp, headers, partitionKey)
            : outputs.add(epoch, topic, key, value, timestamp, headers, partitionKey)
        if (taken !== true) this.#notTaken(s, rec, epoch, taken)
      },
      handOff: (boundary, key, value, rec, to) => {
        const s = slot()
        if (alive(s)) this.#handOff(s, boundary, key, value, rec, to)
      },
      defer: (way, rec) => {
        const s = slot()
        if (alive(s)) this.#defer(s, way, rec)
      },
      dropped: (rec, reason, node) => {
        const s = slot()
        if (alive(s)) this.dropped(s, rec, reason, node)
      },
      isPassedOver: (rec, error, isTold) => {
        const s = slot()
        return alive(s) && this.isPassedOver(s, rec, error, isTold)
      },
      wallClock: () => clock.now(),
      timerEpoch: () => slot().epoch,
      input: this.#input(() => slot().subtopology),
      requestCommit: () => this.#options.requestCommit(),
      fencingToken: () => this.#options.fencingToken(),
      log: this.#options.log,
      around: this.#around(slot),
      gate: (node) => this.#options.gate(node),
      returned: (origin) => {
        const s = slot()
        if (alive(s)) this.#options.returned(s, origin)
        // Of a task that is gone nothing is at work here.
        else counters.probe.currentNode = -1
      },
      called: (origin, node) => {
        const s = slot()
        if (alive(s)) this.#options.called(s, origin, node)
      },
      folded: (updates) => counters.add(laneIndex.foldedUpdates, updates),
      timerFired: (kind: 'event-time' | 'wall-clock') =>
        counters.add(kind === 'event-time' ? laneIndex.eventTimersFired : laneIndex.wallClockTimersFired, 1),
      probe: counters.probe,
    }
  }

  #input(subtopology: () => number): HostInput | undefined {
    const { counters, clock, about } = this.#options
    const { tellsInput, heldAbove } = about
    if (tellsInput === true) return counters.inputOf(subtopology)
    if (heldAbove === undefined) return undefined
    return { knownTo: () => clock.now(), blindMs: () => 0, heldFrom: heldAbove }
  }

  /** Undefined: each operator is called as it is. */
  #around(slot: () => TaskSlot): Tracing['around'] | undefined {
    const { tracing, policies, alive } = this.#options
    const traced =
      tracing &&
      ((...[operator, node, isBoundary]: Parameters<Tracing['around']>): Operator =>
        tracing.around(operator, node, isBoundary))
    if (policies.processing === 'fail' && policies.producing === 'fail') return traced
    const isPassedOver = (rec: Rec, error: unknown): boolean => {
      const s = slot()
      return alive(s) && this.isPassedOver(s, rec, error)
    }
    return (operator, node, isBoundary) =>
      passingOver(traced?.(operator, node, isBoundary) ?? operator, node, isPassedOver)
  }

  /** A record that goes no further although nothing is wrong with the function: late, without a key, … */
  dropped(slot: TaskSlot, rec: Rec, reason: DropReason, node: string): void {
    const { counters, policies } = this.#options
    counters.dropped(slot.subtopology, reason)
    this.#options.told?.(rec, reason, node)
    if (policies.dropped !== 'dead-letter' || isElsewhere(reason)) return
    this.#deadLetter(slot, rec, reason, this.#letterHeaders(undefined, rec, dropSentence(reason, node)))
  }

  /** Whether a record that failed goes no further by the policy for its failure; else the lane has failed. */
  isPassedOver(slot: TaskSlot, rec: Rec, error: unknown, isTold = false): boolean {
    const policy = policyFor(error, this.#options.policies)
    if (policy === 'fail') return false
    if (isTold) return true
    const reason = EngineError.is(error) && error.code === 'DECODE_FAILED' ? 'deserialize' : 'handler'
    this.rejected(slot, rec, error, reason, policy === 'dead-letter')
    return true
  }

  /** A record that could not be decoded, processed or encoded. */
  rejected(slot: TaskSlot, rec: Rec, error: unknown, reason: DropReason, deadLetter: boolean): void {
    const { counters, told } = this.#options
    counters.dropped(slot.subtopology, reason)
    told?.(rec, reason, EngineError.is(error) ? error.details.node : undefined)
    if (deadLetter) this.#deadLetter(slot, rec, reason, this.#letterHeaders(error, rec))
  }

  #letterHeaders(error: unknown, { origin, headers }: Rec, reason?: string): Headers {
    return deadLetterHeaders(error, origin, origin.came?.headers ?? headers, this.topicIds.get(origin.topic), reason)
  }

  #deadLetter(slot: TaskSlot, rec: Rec, reason: DropReason, headers: Headers): void {
    const { counters, outputs, policies, clock } = this.#options
    counters.deadLetter(reason)
    const epoch = (rec.origin.epoch || slot.epoch) as CommitEpoch
    // The record as it came, so that it can be put back; of what a timer made there is only what it is.
    const raw = rec.origin.came
    const at = Math.max(0, raw?.timestamp ?? rec.timestamp)
    const key = raw ? (raw.key?.view() ?? null) : readable(rec.keyBytes, rec.key)
    const value = raw ? (raw.value?.view() ?? null) : readable(rec.valueBytes, rec.value)
    const taken = outputs.add(epoch, policies.deadLetterTopic, key, value, at, headers, undefined)
    if (taken === true) return
    // Of what is refused there as well the reason is left, and where the record is to be found.
    const shorten = (refusal: Refusal): void => {
      const short = withoutRecord(headers, refusal)
      // The very limit moves on with the clock, and would be missed. The record's own time stands in the reason.
      const time = refusal.why === 'time' || refusal.why === 'old' ? clock.now() : at
      const left = outputs.add(epoch, policies.deadLetterTopic, null, null, time, short, undefined)
      if (left === false) this.#options.failed(slot, rec, refusedLetter(outputs.refusal, rec.origin))
    }
    if (taken === 'later') outputs.whenRefused(epoch, shorten)
    else shorten(outputs.refusal)
  }

  /** Its topic would refuse it; or it is not known yet whether it does. */
  #notTaken(slot: TaskSlot, rec: Rec, epoch: CommitEpoch, taken: Exclude<Taken, true>): void {
    const { outputs } = this.#options
    if (taken === false) throw refusedRecord(outputs.refusal, rec.origin)
    outputs.whenRefused(epoch, (refusal) => this.#options.failed(slot, rec, refusedRecord(refusal, rec.origin)))
  }

  /** The place of what the record hands on next, as it is within its task. */
  #next(origin: Origin): number {
    const sub = this.#places.under(origin.sub, ++origin.handed)
    if (this.#places.hasRunOut && !this.#hasRunOut) this.#runOut(origin)
    return sub
  }

  #runOut({ topic, partition, offset }: Origin): void {
    this.#hasRunOut = true
    const message =
      `what the record at ${topic}/${partition}, offset ${offset}, has become was handed on too often for all of it to be told apart ` +
      `in a topology of ${this.#options.topology.levels} levels: results of one key that follow from this record may be in another order. ` +
      'Sum up instead of keeping the last, or put a topic of your own between'
    this.#options.log?.write('warn', { topic, partition, offset }, undefined, message)
  }

  /** The record goes to a deeper stage of its task: it stays here, and what is sent for it is its place. */
  #defer(slot: TaskSlot, way: Deferral, rec: Rec): void {
    const { deferred, handoffs, topology, affinity } = this.#options
    const { origin } = rec
    const epoch = (origin.epoch || slot.epoch) as CommitEpoch
    const target = deferred.target(way.stage, slot.partition)
    const { level } = target
    // It goes on before all that the record hands over, as if at once; what it hands over itself has its turn among that.
    const sub = this.#next(origin)
    // Member by member: not all of them need be the origin's own.
    const { topic, partition, offset, watermark, at, seq, came } = origin
    const place = { epoch, at, seq, sub, handed: 0 }
    const passed: Origin = { topic, partition, offset, watermark, ...place, came, call: undefined }
    const { key, value, timestamp, headers, keyRange, valueRange } = rec
    const source = topology.sources.length + way.index
    const id = deferred.put(target, source, new Rec(key, value, timestamp, headers, passed, keyRange, valueRange))
    const lane = affinity().lane(slot.subtopology, slot.partition)
    const writer = handoffs.writer(epoch, level, lane, true)
    writer.append(
      source,
      slot.partition,
      this.#options.originTopic(origin.topic),
      origin.partition,
      origin.offset,
      timestamp,
      id,
      null,
      -1,
      -1,
      null,
      -1,
      -1,
      null,
      0,
      0,
      origin.at,
      origin.seq,
      sub,
    )
    handoffs.written(writer, epoch, level, lane, true)
  }

  #handOff(
    slot: TaskSlot,
    boundary: number,
    key: Uint8Array | null,
    value: Uint8Array | null | undefined,
    rec: Rec,
    to: Uint8Array | number | undefined,
  ): void {
    const { handoffs, counters, outputs } = this.#options
    const affinity = this.#options.affinity()
    const target = this.#targets[boundary] as Target
    const { origin } = rec
    const epoch = (origin.epoch || slot.epoch) as CommitEpoch
    counters.add(laneIndex.handedOff, 1)
    if (affinity.split === 'repartition-topics') {
      const bytes = value === undefined ? (rec.valueBytes ?? null) : value
      const taken = outputs.add(epoch, target.topic, key, bytes, rec.timestamp, rec.headers, to)
      if (taken !== true) this.#notTaken(slot, rec, epoch, taken)
      return
    }
    assert(typeof to !== 'number', 'a partition is chosen where tasks have none')
    const by = to ?? key
    const hash = by === null ? Math.max(0, origin.partition) : keySlot(by)
    const task = hash % affinity.tasks(target.subtopology)
    const lane = affinity.lane(target.subtopology, task)
    const headers = rec.headers.length === 0 ? null : encodeHeaders(rec.headers)
    const range = value === undefined ? rec.valueRange : undefined
    const from = range?.buffer ?? value ?? null
    const start = range?.start ?? 0
    const whole = range?.end ?? from?.length ?? 0
    const end = target.carriesValue || whole - start <= mostNullBytes ? whole : start
    // A timer's record carries the time before the timer: nothing behind the hand-off may find it late.
    const { watermark } = origin
    const sub = this.#next(origin) + 1
    const writer = handoffs.writer(epoch, target.level, lane, target.isOrdered)
    writer.append(
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
      from,
      from === null ? -1 : start,
      from === null ? -1 : end,
      headers,
      0,
      headers?.length ?? 0,
      origin.at,
      origin.seq,
      sub,
    )
    handoffs.written(writer, epoch, target.level, lane, target.isOrdered)
  }
}

/** The bytes as they came; of a record that was changed on its way, something that people can read. */
function readable(bytes: Uint8Array | null | undefined, data: unknown): Uint8Array | null {
  if (bytes !== undefined) return bytes
  if (data instanceof Change) return readable(undefined, data.newValue)
  if (data === null || data === undefined) return null
  if (typeof data === 'string') return Buffer.from(data)
  const plain = (_: string, x: unknown): unknown => (typeof x === 'bigint' ? String(x) : x)
  return Buffer.from(JSON.stringify(data, plain) ?? String(data))
}

/** What is in some of its windows, or a version of its row, would count there twice if it were put back. */
function isElsewhere(reason: DropReason): boolean {
  return reason === 'late_window' || reason === 'out_of_order'
}
