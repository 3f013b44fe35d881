/**
 * Runs records through tasks and keeps the promises made to user functions: records of one key one after the other,
 * records of different keys side by side, watermarks behind whatever waits.
 */
import type { CommitEpoch } from '../base/ids.ts'
import type { Maybe, Origin, Rec } from '../operators/contract.ts'
import { keyIdentity, type Parked, type TaskSlot } from './task-slot.ts'
import type { Waiting } from './waiting.ts'

export interface RunnerHost {
  /** A user function threw, or its promise was rejected; the policy was applied when this returns. */
  failed(slot: TaskSlot, rec: Rec | undefined, error: unknown): void
  /** Something that was outstanding is done: the barrier or the input may go on. */
  settled(slot: TaskSlot): void
  /** False once the engine was reset: what comes back late is ignored. */
  alive(slot: TaskSlot): boolean
}

export class TaskRunner {
  readonly #host: RunnerHost
  readonly #maxInFlight: number
  readonly #maxParked: number
  /** Records whose promise is pending, oldest first. */
  readonly #pending = new Set<Rec>()
  inFlight = 0
  parked = 0
  processed = 0

  constructor(host: RunnerHost, maxInFlight: number) {
    this.#host = host
    this.#maxInFlight = maxInFlight
    this.#maxParked = maxInFlight * 16
  }

  /** No further records from the engine until something settles. */
  get throttled(): boolean {
    return this.inFlight >= this.#maxInFlight || this.parked >= this.#maxParked
  }

  /** As many records wait as may, behind others of their key or before their turn. */
  get crowded(): boolean {
    return this.parked >= this.#maxParked
  }

  /** The record whose promise has been pending longest. */
  get oldest(): Origin | undefined {
    if (this.inFlight === 0) return undefined
    for (const rec of this.#pending) return rec.origin
    return undefined
  }

  reset(): void {
    this.#pending.clear()
    this.inFlight = 0
    this.parked = 0
  }

  submit(slot: TaskSlot, source: number, rec: Rec): void {
    const { watermark } = rec.origin
    const before = Math.min(watermark, slot.newest)
    if (watermark > slot.newest) slot.newest = watermark
    const early = slot.timerBusy || (slot.stateful && rec.origin.epoch !== slot.epoch)
    if (early || slot.parked.length > 0) {
      slot.parked.push({ source, rec, waiting: slot.waiting.add(before) })
      this.parked++
      return
    }
    this.#admit(slot, source, rec, before, undefined)
  }

  /** Lets records in that had to wait for the task's next epoch or for a timer. */
  unpark(slot: TaskSlot): void {
    while (slot.parked.length > 0 && !slot.timerBusy && this.#host.alive(slot)) {
      const { source, rec, waiting } = slot.parked[0] as Parked
      if (slot.stateful && rec.origin.epoch !== slot.epoch) return
      slot.parked.shift()
      this.parked--
      this.#admit(slot, source, rec, waiting.before, waiting)
    }
  }

  /** Behind a record of its key that is outstanding, or at once. */
  #admit(slot: TaskSlot, source: number, rec: Rec, before: number, waiting: Waiting | undefined): void {
    if (slot.keys.size > 0) {
      const queue = slot.keys.get(keyIdentity(rec))
      if (queue !== undefined) {
        queue.push({ source, rec, waiting: waiting ?? slot.waiting.add(before) })
        this.parked++
        return
      }
    }
    this.#execute(slot, source, rec, before, waiting)
  }

  /** Moves the task's watermark as far as outstanding records allow. */
  advance(slot: TaskSlot, watermark: number): void {
    if (watermark > slot.target) slot.target = watermark
    const allowed = slot.allowedWatermark()
    if (allowed <= slot.watermark || slot.timerBusy || slot.straddling) return
    slot.watermark = allowed
    let pending: Maybe
    try {
      pending = slot.task.advance(allowed)
    } catch (error) {
      this.#host.failed(slot, undefined, error)
      return
    }
    if (pending !== undefined) this.#timer(slot, pending)
  }

  wallClock(slot: TaskSlot, now: number): void {
    if (slot.timerBusy) return
    let pending: Maybe
    try {
      pending = slot.task.wallClock(now)
    } catch (error) {
      this.#host.failed(slot, undefined, error)
      return
    }
    if (pending !== undefined) this.#timer(slot, pending)
  }

  #execute(slot: TaskSlot, source: number, rec: Rec, before: number, waiting: Waiting | undefined): void {
    this.processed++
    let pending: Maybe
    try {
      pending = slot.task.process(source, rec)
    } catch (error) {
      this.#host.failed(slot, rec, error)
      if (waiting !== undefined) waiting.done = true
      return
    }
    if (pending === undefined) {
      if (waiting !== undefined) waiting.done = true
      const watermark = rec.origin.watermark
      if (slot.advancedByRecords && watermark > slot.watermark) this.advance(slot, watermark)
      return
    }
    const entry = waiting ?? slot.waiting.add(before)
    const epoch = (rec.origin.epoch || slot.epoch) as CommitEpoch
    slot.begin(epoch)
    const identity = keyIdentity(rec)
    if (!slot.keys.has(identity)) slot.keys.set(identity, [])
    this.inFlight++
    this.#pending.add(rec)
    pending.then(
      () => this.#settle(slot, entry, epoch, identity, rec, undefined),
      (error) =>
        this.#settle(
          slot,
          entry,
          epoch,
          identity,
          rec,
          error ?? new TypeError('a promise was rejected without a reason'),
        ),
    )
  }

  #settle(slot: TaskSlot, entry: Waiting, epoch: CommitEpoch, identity: string, rec: Rec, error: unknown): void {
    if (!this.#host.alive(slot)) return
    if (error !== undefined) this.#host.failed(slot, rec, error)
    if (!this.#host.alive(slot)) return
    this.inFlight--
    this.#pending.delete(rec)
    slot.end(epoch)
    entry.done = true
    const queue = slot.keys.get(identity)
    slot.keys.delete(identity)
    if (queue !== undefined && queue.length > 0) this.#nextOfKey(slot, identity, queue)
    this.advance(slot, slot.advancedByRecords ? rec.origin.watermark : slot.target)
    this.#host.settled(slot)
  }

  /** The records behind the settled one, until one of them is outstanding in its turn. */
  #nextOfKey(slot: TaskSlot, identity: string, queue: Parked[]): void {
    for (let i = 0; i < queue.length; i++) {
      const { source, rec, waiting } = queue[i] as Parked
      this.parked--
      this.#execute(slot, source, rec, waiting.before, waiting)
      if (!this.#host.alive(slot)) return
      if (slot.keys.has(identity)) {
        slot.keys.set(identity, queue.slice(i + 1))
        return
      }
    }
  }

  #timer(slot: TaskSlot, pending: Promise<void>): void {
    const entry = slot.waiting.add(slot.watermark)
    const { epoch } = slot
    slot.begin(epoch)
    slot.timerBusy = true
    this.inFlight++
    const done = (error?: unknown): void => {
      if (!this.#host.alive(slot)) return
      if (error !== undefined) this.#host.failed(slot, undefined, error)
      this.inFlight--
      slot.timerBusy = false
      slot.end(epoch)
      entry.done = true
      this.unpark(slot)
      this.advance(slot, slot.target)
      this.#host.settled(slot)
    }
    pending.then(
      () => done(),
      (error) => done(error ?? new TypeError('a promise was rejected without a reason')),
    )
  }
}
