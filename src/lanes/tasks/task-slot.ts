/** One task at work in a lane: order per key while user functions are outstanding, and what waits for what. */
import { keySlot } from '../../base/hash.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import type { OpenCall, Rec } from '../../operators/contract.ts'
import { bytesText } from '../../operators/text-order.ts'
import type { Task } from '../../operators/task.ts'
import type { AnyStore, StoreLifecycle } from '../../state/contract.ts'
import type { RowPrefetch } from '../../state/table/prefetch.ts'
import { isOlder, type Waiting, WaitingRecords } from './waiting.ts'

/** A record that cannot be processed yet. */
export interface Parked {
  readonly source: number
  readonly rec: Rec
  readonly waiting: Waiting
}

export class TaskSlot {
  readonly subtopology: number
  readonly partition: number
  /** The deepest level that feeds it: there it is sealed. */
  readonly level: number
  readonly stateful: boolean
  readonly task: Task
  readonly stores: ReadonlyMap<string, AnyStore & StoreLifecycle>
  /** Of each source the rows of which its records read the one of their key, where that is known. */
  readonly rowsBySource: ReadonlyArray<RowPrefetch | undefined>
  /** It goes by time, and its records come in one order: then each of them advances it to the watermark before its dispatch. */
  readonly isOrdered: boolean
  /** Epoch that effects without a source record (timers) belong to; where epochs are kept apart the only one it may work in. */
  epoch: CommitEpoch
  /** What the task was advanced to, and what it is to be advanced to when nothing holds it. */
  watermark = Number.NEGATIVE_INFINITY
  target = Number.NEGATIVE_INFINITY
  /** Of a task that goes by its own watermark: how far it goes in the epoch that is sealed next. */
  sealsUpTo: number | undefined
  /**
   * While the barrier has passed and the task is not sealed: how far its epoch goes. Timers that are due later belong to
   * the next epoch, as they do in tasks that are sealed already: a deeper level takes all of an epoch before the next.
   */
  epochEndsAt = Number.POSITIVE_INFINITY
  /**
   * Of a task whose operators at several levels write one store: the barrier has passed a shallower level that feeds it,
   * but not its deepest one. Timers wait, since what they hand over would come behind the mark.
   */
  straddling = false
  /** Records are passed on to it within its task, some of which nobody has encoded: keys are told by what they are. */
  comparesKeys = false
  /** A timer's user function has not answered: records wait. */
  timerBusy = false
  /** That function, or the one of the timer after it. */
  timerCall: OpenCall | undefined
  /** Everything that came and is not done. */
  readonly waiting = new WaitingRecords()
  /** Records (and timers) of the even and the odd epoch that came and are not done. */
  readonly outstandingByParity: [number, number] = [0, 0]
  /** Keys with an outstanding record, and the records that wait behind it. */
  readonly keys = new Map<KeyIdentity, Parked[]>()
  /**
   * Records that came before their turn: of the next epoch, or while a timer is busy. By parity of their epoch, for those
   * of the epoch that is being closed never wait behind those of the next one, whichever came first.
   */
  readonly parked: readonly [Parked[], Parked[]] = [[], []]

  constructor(
    subtopology: number,
    partition: number,
    level: number,
    stateful: boolean,
    task: Task,
    stores: ReadonlyMap<string, AnyStore & StoreLifecycle>,
    epoch: CommitEpoch,
    isOrdered: boolean,
    rowsBySource: ReadonlyArray<RowPrefetch | undefined> = [],
  ) {
    this.subtopology = subtopology
    this.partition = partition
    this.level = level
    this.stateful = stateful
    this.task = task
    this.stores = stores
    this.epoch = epoch
    this.isOrdered = isOrdered
    this.rowsBySource = rowsBySource
  }

  begins(watermark: number): void {
    this.watermark = watermark
    this.target = watermark
  }

  /** It has state, or schedules, which go by time as well: no record of an epoch enters before the last one is over. */
  get keepsEpochsApart(): boolean {
    const { nextWake, nextWallClock } = this.task
    return this.stateful || Math.min(nextWake, nextWallClock) !== Number.POSITIVE_INFINITY
  }

  /**
   * A timer that is due before a record of this place waits for records that came before it: this one must not overtake
   * it. A timer that waits for the end of the epoch, or for what is told then, waits for this record too.
   */
  holdsBack(at: number): boolean {
    if (this.straddling || this.waiting.oldestAt >= at) return false
    const due = this.task.nextTimerMet
    return due <= Math.min(at, this.epochEndsAt, this.task.emissions.heldTo) && this.waiting.oldestAt < due
  }

  /** No timer fires now, whatever its time. */
  get holdsTimers(): boolean {
    return this.timerBusy || this.straddling
  }

  outstandingOf(epoch: CommitEpoch): number {
    return this.outstandingByParity[epoch & 1] as number
  }

  /**
   * The watermark must not overtake a record that waits: its own windows have to be open when it goes on. Nor what
   * operators have still to tell at the commit.
   */
  allowedWatermark(): number {
    return Math.min(this.target, this.epochEndsAt, this.waiting.oldestAt, this.task.emissions.heldTo)
  }

  /** Timers may have changed what they wait for themselves: then the task has not come as far as it was allowed to. */
  came(): void {
    const { advancedTo } = this.task
    if (advancedTo < this.watermark) this.watermark = advancedTo
  }

  begin(epoch: CommitEpoch): void {
    this.outstandingByParity[epoch & 1]!++
  }

  end(epoch: CommitEpoch): void {
    this.outstandingByParity[epoch & 1]!--
  }

  /** Before those of a later place. */
  park(parked: Parked): void {
    const all = this.parkedOf(parked.rec.origin.epoch)
    let to = all.length
    while (to > 0 && isOlder(parked.waiting, (all[to - 1] as Parked).waiting)) to--
    all.splice(to, 0, parked)
  }

  parkedOf(epoch: CommitEpoch): Parked[] {
    return this.parked[epoch & 1] as Parked[]
  }

  get hasParked(): boolean {
    return this.parked[0].length > 0 || this.parked[1].length > 0
  }

  uncommittedBytes(): number {
    let bytes = 0
    for (const store of this.stores.values()) bytes += store.uncommittedBytes
    return bytes
  }
}

/**
 * A key within its task: its slot where its bytes are known, or a negative number for the records of a partition that have
 * no key. Two keys may share a slot: then they wait for each other, as one key would.
 */
export type KeyIdentity = number | string

export function keyIdentity({ comparesKeys }: TaskSlot, { keyRange, key, origin }: Rec): KeyIdentity {
  // What a scheduled source made has the partition -1.
  if (keyRange === null || key === null || key === undefined) return -2 - origin.partition
  if (keyRange !== undefined && !comparesKeys) return keySlot(keyRange.buffer, keyRange.start, keyRange.end)
  if (key instanceof Uint8Array) return `b${bytesText(key)}`
  // Keys that are objects wait for one another there: what equals what only their serde knows.
  return typeof key === 'object' ? 'object' : `${typeof key} ${String(key)}`
}
