/**
 * Runs records through tasks and keeps the promises made to user functions: records of one key one after the other,
 * records of different keys side by side, watermarks behind whatever waits.
 */
import type { Maybe, OpenCall, Rec } from '../../operators/contract.ts'
import { SerdeWaits } from '../../serde/serde.ts'
import type { Calls } from './calls.ts'
import { type KeyIdentity, keyIdentity, type Parked, type TaskSlot } from './task-slot.ts'
import type { Waiting } from './waiting.ts'

export interface RunnerHost {
  /** A user function threw, or its promise was rejected; the policy was applied when this returns. */
  failed(slot: TaskSlot, rec: Rec | undefined, error: unknown): void
  /** Something that was outstanding is done: the barrier or the input may go on. */
  settled(slot: TaskSlot): void
  /** False once the engine was reset: what comes back late is ignored. */
  alive(slot: TaskSlot): boolean
  /** Decodes a record that came `undecoded`. Undefined: it goes no further. Throws as `decodeRecord`. */
  decode(slot: TaskSlot, source: number, rec: Rec): Rec | undefined
}

/** Stands for the value of a record whose bytes cannot be read yet. */
export const undecoded = Symbol('undecoded')

/** Stands for the records behind one of a key, so that a list is made only where there are any. */
const nobody: Parked[] = []

export class TaskRunner {
  readonly #host: RunnerHost
  readonly #maxInFlight: number
  readonly #maxParked: number
  readonly #calls: Calls
  inFlight = 0
  parked = 0
  processed = 0

  constructor(host: RunnerHost, calls: Calls, maxInFlight: number) {
    this.#host = host
    this.#calls = calls
    this.#maxInFlight = maxInFlight
    this.#maxParked = maxInFlight * 16
  }

  /** No further records from the engine until something settles. */
  get throttled(): boolean {
    return this.inFlight >= this.#maxInFlight || this.parked >= this.#maxParked
  }

  /** As many records wait as may, behind others of their key or before their turn. */
  get overloaded(): boolean {
    return this.parked >= this.#maxParked
  }

  reset(): void {
    this.#calls.reset()
    this.inFlight = 0
    this.parked = 0
  }

  /** `place` and `seq`: the record's place, which its origin has only where it may be handed on. */
  submit(slot: TaskSlot, source: number, rec: Rec, place: number, seq: number): void {
    const { epoch } = rec.origin
    // Timers that are due together with the one that made the record fire behind it.
    const at = seq < 0 ? place - 1 : place
    slot.begin(epoch)
    const early = slot.timerBusy || (epoch > slot.epoch && slot.keepsEpochsApart)
    if (early || slot.parkedOf(epoch).length > 0) {
      this.#park(slot, source, rec, at, seq)
      return
    }
    if (slot.isOrdered && at > slot.watermark && !this.#comesTo(slot, at)) {
      this.#park(slot, source, rec, at, seq)
      return
    }
    this.#admit(slot, source, rec, at, seq, undefined)
  }

  /** Timers that were due before the record was dispatched fire before it. False: it waits for them. */
  #comesTo(slot: TaskSlot, at: number): boolean {
    this.advance(slot, at)
    return !slot.timerBusy && !(at > slot.watermark && slot.holdsBack(at))
  }

  #park(slot: TaskSlot, source: number, rec: Rec, at: number, seq: number): void {
    slot.parkedOf(rec.origin.epoch).push({ source, rec, waiting: slot.waiting.add(at, seq) })
    this.parked++
  }

  /** Lets records in that had to wait for the task's next epoch or for a timer. */
  unpark(slot: TaskSlot): void {
    const [even, odd] = slot.parked
    const evenFirst = (even[0]?.rec.origin.epoch ?? 0) <= (odd[0]?.rec.origin.epoch ?? 0)
    for (const parked of evenFirst ? slot.parked : [odd, even]) this.#unpark(slot, parked)
  }

  #unpark(slot: TaskSlot, parked: Parked[]): void {
    while (parked.length > 0 && !slot.timerBusy && this.#host.alive(slot)) {
      const { source, rec, waiting } = parked[0] as Parked
      const { at, seq } = waiting
      const { epoch } = rec.origin
      if (epoch > slot.epoch && slot.keepsEpochsApart) return
      if (slot.isOrdered && at > slot.watermark && (!this.#comesTo(slot, at) || !this.#host.alive(slot))) return
      parked.shift()
      this.parked--
      this.#admit(slot, source, rec, at, seq, waiting)
    }
  }

  /** Behind a record of its key that is outstanding, or at once. */
  #admit(slot: TaskSlot, source: number, rec: Rec, at: number, seq: number, waiting: Waiting | undefined): void {
    if (slot.keys.size === 0) this.#execute(slot, source, rec, at, seq, waiting, undefined)
    else this.#admitBesideOthers(slot, source, rec, at, seq, waiting)
  }

  #admitBesideOthers(
    slot: TaskSlot,
    source: number,
    rec: Rec,
    at: number,
    seq: number,
    waiting: Waiting | undefined,
  ): void {
    const identity = keyIdentity(slot, rec)
    const queue = slot.keys.get(identity)
    if (queue === undefined) {
      this.#execute(slot, source, rec, at, seq, waiting, identity)
      return
    }
    const parked = { source, rec, waiting: waiting ?? slot.waiting.add(at, seq) }
    if (queue === nobody) slot.keys.set(identity, [parked])
    else queue.push(parked)
    this.parked++
  }

  /** Moves the task's watermark as far as outstanding records allow. */
  advance(slot: TaskSlot, watermark: number): void {
    if (watermark > slot.target) slot.target = watermark
    const allowed = slot.allowedWatermark()
    const before = slot.watermark
    if (allowed <= before || slot.holdsTimers) return
    slot.watermark = allowed
    let pending: Maybe
    try {
      pending = slot.task.advance(allowed)
    } catch (error) {
      this.#host.failed(slot, undefined, error)
      return
    }
    if (pending === undefined) slot.came()
    else this.#timer(slot, pending, before)
  }

  /** Tells what the task has folded since the last commit. True: something is still outstanding in this epoch. */
  tell(slot: TaskSlot): boolean {
    const { task } = slot
    if (task.emissions.dirtyRows === 0) return false
    // Nothing deeper is to pass what a function below holds up.
    const from = Math.min(slot.watermark, task.emissions.heldBelow)
    let pending: Maybe
    try {
      pending = task.tell((rec, error) => this.#host.failed(slot, rec, error), this.#maxInFlight)
    } catch (error) {
      this.#host.failed(slot, undefined, error)
      return true
    }
    if (pending !== undefined) this.#timer(slot, pending, from)
    else this.advance(slot, slot.target)
    return slot.outstandingOf(slot.epoch) > 0
  }

  wallClock(slot: TaskSlot, now: number): void {
    let pending: Maybe
    try {
      pending = slot.task.wallClock(now)
    } catch (error) {
      this.#host.failed(slot, undefined, error)
      return
    }
    if (pending !== undefined) this.#timer(slot, pending, slot.watermark)
  }

  /** `identity`: of its key, where it is known already. */
  #execute(
    slot: TaskSlot,
    source: number,
    rec: Rec,
    at: number,
    seq: number,
    waiting: Waiting | undefined,
    identity: KeyIdentity | undefined,
  ): void {
    this.processed++
    let pending: Maybe
    try {
      pending = rec.value === undecoded ? this.#decodeFirst(slot, source, rec) : slot.task.process(source, rec)
    } catch (error) {
      this.#host.failed(slot, rec, error)
      this.#done(slot, source, rec, waiting)
      return
    }
    if (pending === undefined) {
      this.#done(slot, source, rec, waiting)
      return
    }
    this.#outstanding(
      slot,
      source,
      rec,
      waiting ?? slot.waiting.add(at, seq),
      identity ?? keyIdentity(slot, rec),
      pending,
    )
  }

  /** Apart, so that no scope is made for the closures where nothing has to wait. */
  #outstanding(
    slot: TaskSlot,
    source: number,
    rec: Rec,
    entry: Waiting,
    identity: KeyIdentity,
    pending: Promise<void>,
  ): void {
    if (!slot.keys.has(identity)) slot.keys.set(identity, nobody)
    this.inFlight++
    const call = this.#calls.began(rec.origin)
    pending.then(
      () => this.#settle(slot, source, entry, identity, rec, call, undefined),
      (error) => this.#settle(slot, source, entry, identity, rec, call, slot.task.failed(error ?? noReason(), rec)),
    )
  }

  /** At once where what was missing has come meanwhile; otherwise the key waits as for an asynchronous function. */
  #decodeFirst(slot: TaskSlot, source: number, rec: Rec): Maybe {
    let decoded: Rec | undefined
    try {
      decoded = this.#host.decode(slot, source, rec)
    } catch (error) {
      if (!(error instanceof SerdeWaits)) throw error
      return error.ready.then(() => {
        if (this.#host.alive(slot)) return this.#decodeFirst(slot, source, rec)
      })
    }
    return decoded === undefined ? undefined : slot.task.process(source, decoded)
  }

  #done(slot: TaskSlot, source: number, rec: Rec, waiting: Waiting | undefined): void {
    this.#calls.done(source, rec)
    slot.end(rec.origin.epoch)
    if (waiting !== undefined) waiting.done = true
  }

  #settle(
    slot: TaskSlot,
    source: number,
    entry: Waiting,
    identity: KeyIdentity,
    rec: Rec,
    call: OpenCall,
    error: unknown,
  ): void {
    slot.task.returned()
    if (!this.#host.alive(slot)) {
      this.#leave(call)
      return
    }
    this.#calls.ended(call)
    if (error !== undefined) this.#host.failed(slot, rec, error)
    if (!this.#host.alive(slot)) return
    this.inFlight--
    this.#calls.done(source, rec, typeof identity === 'number' ? identity : -1)
    slot.end(rec.origin.epoch)
    entry.done = true
    const queue = slot.keys.get(identity)
    slot.keys.delete(identity)
    if (queue !== undefined && queue !== nobody) this.#nextOfKey(slot, identity, queue)
    this.advance(slot, slot.target)
    if (slot.hasParked) {
      this.unpark(slot)
      // Those may have been all that time waited for.
      this.advance(slot, slot.target)
    }
    this.#host.settled(slot)
  }

  /** The records behind the settled one, until one of them is outstanding in its turn, or has to wait for a timer. */
  #nextOfKey(slot: TaskSlot, identity: KeyIdentity, queue: readonly Parked[]): void {
    for (let i = 0; i < queue.length; i++) {
      const { source, rec, waiting } = queue[i] as Parked
      if (slot.isOrdered && waiting.at > slot.watermark && !this.#comesTo(slot, waiting.at)) {
        for (const each of queue.slice(i)) slot.park(each)
        return
      }
      if (!this.#host.alive(slot)) return
      this.parked--
      this.#execute(slot, source, rec, waiting.at, waiting.seq, waiting, identity)
      if (!this.#host.alive(slot)) return
      if (slot.keys.has(identity)) {
        if (i + 1 < queue.length) slot.keys.set(identity, queue.slice(i + 1))
        return
      }
    }
  }

  /** The answer is of nobody's interest, as where the task's partition went to another process; the call is out no more. */
  #leave(call: OpenCall): void {
    if (!this.#calls.isOfThisRun(call)) return
    this.#calls.ended(call)
    this.inFlight--
  }

  /** A timer's function has not answered: nothing deeper is to pass the watermark from which it began. */
  #timer(slot: TaskSlot, pending: Promise<void>, from: number): void {
    const entry = slot.waiting.add(from, Number.POSITIVE_INFINITY)
    const { epoch } = slot
    slot.begin(epoch)
    slot.timerBusy = true
    this.inFlight++
    const call = this.#calls.began(undefined)
    slot.timerCall = call
    const done = (error?: unknown): void => {
      if (!this.#host.alive(slot)) {
        this.#leave(call)
        return
      }
      this.#calls.ended(call)
      if (error !== undefined) this.#host.failed(slot, undefined, error)
      this.inFlight--
      slot.timerBusy = false
      slot.timerCall = undefined
      slot.came()
      slot.end(epoch)
      entry.done = true
      this.unpark(slot)
      this.advance(slot, slot.target)
      this.#host.settled(slot)
    }
    pending.then(
      () => done(),
      (error) => done(error ?? noReason()),
    )
  }
}

function noReason(): TypeError {
  return new TypeError('a promise was rejected without a reason')
}
