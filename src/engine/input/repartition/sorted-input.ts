/** Partitions of topics between sub-topologies whose records are taken in the order of event time, and what that takes. */
import type { Clock } from '../../../base/clock.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../../base/ids.ts'
import { usualSizes } from '../../../base/sizes.ts'
import { noHead } from '../../../time/head-order.ts'
import type { Gate } from '../../../time/gates.ts'
import type { Watermarks } from '../../../time/watermarks.ts'
import type { EngineSettings } from '../../settings.ts'
import type { Route } from '../dispatcher.ts'
import type { PartitionBuffer } from '../partition-buffer.ts'
import { type Kept, type LetGo, SortedBuffer, sortedRoom, type SortedRoom } from './sorted-buffer.ts'
import { timingOf } from '../source-timing.ts'
import { neverWait } from '../../../time/task-inputs.ts'
import { isAnnounced, isSorted } from './upstream.ts'

/** A gate that holds a head and has not moved for so long lets it go: two of the longest commits. */
const patienceMs = 60_000

export class SortedInput {
  readonly #settings: EngineSettings
  readonly #watermarks: Watermarks
  readonly #routes: ReadonlyMap<PartitionKey, Route>
  readonly #clock: Clock
  readonly #warn: (message: string) => void
  /** Of all partitions together. */
  readonly #room: SortedRoom = { share: 0, most: 0, used: 0 }
  /** Topics of which it was told that records came too late for their turn. */
  readonly #toldOf = new Set<string>()
  /** By task: what was let go of it, and whether for want of memory. */
  readonly #letGo = new Map<string, LetGo & { forRoom: boolean }>()
  /** By partition, how far those who write have told that they have come; below it nothing is to be expected any more. */
  readonly #shown = new Map<Route, number>()
  readonly #gates = new Map<Route, Gate>()
  /** Since when a head has been held by a gate that does not move. */
  readonly #heldSince = new Map<Route, number>()

  constructor(
    settings: EngineSettings,
    watermarks: Watermarks,
    routes: ReadonlyMap<PartitionKey, Route>,
    clock: Clock,
    warn: (message: string) => void,
  ) {
    this.#settings = settings
    this.#watermarks = watermarks
    this.#routes = routes
    this.#clock = clock
    this.#warn = warn
  }

  /** Undefined where records are taken as they come. */
  bufferFor(source: number, task: string, inner: PartitionBuffer, kept: Kept | undefined): SortedBuffer | undefined {
    const { plan, split, maxTaskIdleMs } = this.#settings
    // What a commit has left half done is to be finished, whatever the settings say by now.
    const sorts = maxTaskIdleMs !== neverWait && isSorted(plan, plan.sources[source])
    if (split !== 'repartition-topics' || !(sorts || kept !== undefined)) return undefined
    return new SortedBuffer(inner, kept, this.#room, this.#letGoOf(task))
  }

  /** These partitions are there now: heads of their sub-topologies wait for those who write. */
  assigned(partitions: readonly TopicPartition[], now: number): void {
    const { plan, split, maxTaskIdleMs } = this.#settings
    if (split !== 'repartition-topics') return
    this.#share()
    const fresh = partitions.map(({ topic, partition }) => this.#routes.get(partitionKey(topic, partition)))
    for (const route of fresh) {
      if (route && isAnnounced(plan, plan.sources[route.source]))
        this.#watermarks.setCeiling(route.handle, Number.NEGATIVE_INFINITY)
    }
    if (maxTaskIdleMs === neverWait) return
    for (const subtopology of new Set(fresh.map((route) => route?.subtopology))) {
      const members = [...this.#routes.values()].filter((route) => route.subtopology === subtopology)
      const awaited = members.find(({ source }) => isSorted(plan, plan.sources[source]))
      if (!awaited) continue
      const went = new Map(members.map(({ handle, sorted }) => [handle, sorted?.wentUpTo ?? Number.NEGATIVE_INFINITY]))
      this.#watermarks.gate([...went.keys()], awaited.handle, (handle) => went.get(handle) as number, now)
    }
  }

  /** Half of the room is shared out, so that each has some; the rest is for those that need it. */
  #share(): void {
    const { bufferedMaxBytes, sizes = usualSizes } = this.#settings
    let partitions = 0
    for (const { sorted } of this.#routes.values()) if (sorted !== undefined) partitions++
    const most = sortedRoom(bufferedMaxBytes, sizes)
    this.#room.share = Math.max(sizes.sortedBytes, most / 2 / Math.max(1, partitions))
    this.#room.most = most / 2
  }

  /** Something was fetched where nothing was; true where it has to wait. */
  arrived(route: Route): boolean {
    const { sorted, handle } = route
    if (sorted === undefined) return false
    sorted.fill()
    this.#show(route)
    return this.#watermarks.isWithheld(handle)
  }

  /** Everything below this offset is at hand: it was dispatched, or has its place among what waits. */
  reached(route: Route | undefined, offset: number): boolean {
    if (route === undefined) return false
    return (route.sorted?.taken ?? route.buffer.nextOffset) >= offset
  }

  /** So much of a partition of the input was there when it was asked how far those who write have come. */
  endsAtLeast(route: Route | undefined, offset: number): void {
    if (route === undefined) return
    const now = this.#clock.monotonic()
    route.buffer.endsAtLeast(offset, now)
    const { lag } = route.buffer
    if (lag > 0) this.#watermarks.evidence(route.handle, lag, false, now)
  }

  /** Nothing of some partition goes before all is read again that was at hand at the last commit. */
  get isReadingAgain(): boolean {
    for (const { sorted } of this.#routes.values()) if (sorted?.isReadingAgain) return true
    return false
  }

  shows(route: Route | undefined, epochMs: number): void {
    if (route === undefined) return
    this.#shown.set(route, Math.max(epochMs, this.#shown.get(route) ?? epochMs))
    this.#watermarks.setCeiling(route.handle, this.#shown.get(route) as number)
    this.#tell(route)
  }

  cameTo(route: Route | undefined, gate: Gate, known: ReadonlyMap<PartitionKey, number>): void {
    if (route === undefined) return
    const last = this.#gates.get(route)
    if (last?.upToMs !== gate.upToMs || last.knownUpToMs !== gate.knownUpToMs) this.#heldSince.delete(route)
    this.#gates.set(route, gate)
    this.#watermarks.cameTo(route.handle, gate, known, this.#clock.monotonic())
  }

  /** To be called when nothing goes at the moment. True where something may go now. */
  settle(): boolean {
    let goes = false
    const makesRoom = this.#makesRoom()
    for (const route of this.#routes.values()) {
      const { sorted, handle } = route
      if (this.#shown.has(route)) this.#tell(route)
      if (sorted !== undefined && sorted.overtaken > 0) this.#tellOf(route)
      // Others may have made room.
      if (sorted?.mayTakeMore) goes = !this.arrived(route) || goes
      if (sorted === undefined || !this.#isHeld(route)) continue
      const now = this.#clock.monotonic()
      const since = this.#heldSince.get(route) ?? now
      this.#heldSince.set(route, since)
      // Whoever is so far behind that memory does not reach, or tells nothing for so long, is not waited for: the oldest
      // at hand goes.
      if ((makesRoom || !sorted.isFull) && now - since < patienceMs) continue
      const letGo = this.#letGoOf(route.task)
      letGo.upToMs = Math.max(letGo.upToMs, sorted.headTimestamp)
      letGo.forRoom = sorted.isFull
      this.#watermarks.letGo(handle, sorted.headTimestamp, now)
      goes = true
    }
    return goes
  }

  /** Some record may go, once lanes or other processes have come further, and leaves room. */
  #makesRoom(): boolean {
    for (const { sorted, handle } of this.#routes.values())
      if (sorted?.hasHead && !this.#watermarks.isWithheld(handle)) return true
    return false
  }

  #letGoOf(task: string): LetGo & { forRoom: boolean } {
    const known = this.#letGo.get(task) ?? { upToMs: Number.NEGATIVE_INFINITY, forRoom: false }
    this.#letGo.set(task, known)
    return known
  }

  /** Once for a topic: where one who writes is that far behind, it is so with each record. */
  #tellOf({ topic, partition, task }: Route): void {
    if (this.#toldOf.has(topic)) return
    this.#toldOf.add(topic)
    const why = this.#letGoOf(task).forRoom
      ? `who wrote them was farther behind than memory reaches, ${Math.round((2 * this.#room.most) / 1024)} KiB of what others have written meanwhile ` +
        '(half of engine.processing.buffered-max-bytes); a larger value waits longer'
      : 'who wrote them had told nothing for a minute; see whether all processes of the application run and commit'
    this.#warn(
      `records of ${topic}/${partition} came when younger ones had gone before them: ${why}. ` +
        'None is lost, but a join with a table may meet the row of another time, and those of a key are not in the order of event time',
    )
  }

  #isHeld(route: Route): boolean {
    const isHeld = this.#watermarks.isWithheld(route.handle)
    // What comes next has its own minute: nobody has waited while there was nothing.
    if (!isHeld) this.#heldSince.delete(route)
    return isHeld
  }

  revoked(route: Route): void {
    route.sorted?.leave()
    this.#letGo.delete(route.task)
    this.#shown.delete(route)
    this.#gates.delete(route)
    this.#heldSince.delete(route)
  }

  #show(route: Route): void {
    const { sorted, handle } = route
    if (sorted === undefined || !sorted.hasHead || sorted.headOffset === sorted.shownOffset) return
    const { headTimestamp, headOffset } = sorted
    const now = this.#clock.monotonic()
    if (sorted.shownOffset < 0) this.#watermarks.headArrived(handle, headTimestamp, headOffset, now)
    else this.#watermarks.headReplaced(handle, headTimestamp, headOffset, now)
    sorted.shownOffset = headOffset
  }

  /** Those who write have come so far, and what is older was dispatched: so far the partition's time has come. */
  #tell(route: Route): void {
    const { handle, sorted, source } = route
    const shown = this.#shown.get(route) as number
    const head = sorted?.headTimestamp ?? noHead
    this.#watermarks.announce(handle, Math.min(shown, head) - timingOf(this.#settings, source).maxOutOfOrdernessMs)
  }
}
