/** The tasks of a lane: their stores opened, restored, sealed and applied. */
import { assert } from '../../base/assert.ts'
import { laneIndex, storeSlot, storeSlots } from '../../base/counters.ts'
import type { CommitEpoch } from '../../base/ids.ts'
import { usualSizes } from '../../base/sizes.ts'
import { rowsBehindOf } from '../../operators/defer.ts'
import { Task, type TaskOptions } from '../../operators/task.ts'
import { packChangelog } from '../stores/changelog-batches.ts'
import type { AnyStore, Checkpoint, StoreBackend, StoreLifecycle, StoreSpec } from '../../state/contract.ts'
import { WriteBehind } from '../../state/backends/write-behind.ts'
import { openStore } from '../../state/open-store.ts'
import { storeForm } from '../../state/rows/form.ts'
import { type Stage, type Stages, stagesOf } from '../../topology/levels/stages.ts'
import { isTimeless } from '../../topology/levels/timeless.ts'
import { rowsByKey } from '../../topology/keys/rows-by-key.ts'
import type { BatchPacker } from '../../broker/wire/batch-pack.ts'
import type { CompiledSubtopology, CompiledTopology } from '../../topology/compiled.ts'
import type { Affinity, TaskRef } from '../../topology/affinity.ts'
import type { GlobalState } from '../global-state.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { LevelState } from '../levels/level-state.ts'
import type { OpenedStore, StartingTask, StorePartition, TaskWatermark, ToLane } from '../protocol.ts'
import type { TaskRunner } from './task-runner.ts'
import { dumpRows, type Dumped } from '../stores/dump.ts'
import { restoreInto } from '../stores/restore.ts'
import { sourceRows } from './source-rows.ts'
import type { TaskHostPort } from './task-host.ts'
import { storeMeter } from '../stores/store-meter.ts'
import { storeTimes } from './store-times.ts'
import { StoreWriter } from '../stores/store-writer.ts'
import { TaskSlot } from './task-slot.ts'

type OpenStore = AnyStore & StoreLifecycle

const entriesSlot = storeSlots.indexOf('entries')
const bytesSlot = storeSlots.indexOf('bytes')
const restoredSlot = storeSlots.indexOf('restored')

/** Durable stores are written with their commit. */
const writeThrough = { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY }

function foundIn(backend: StoreBackend): Pick<OpenedStore, 'checkpoint' | 'writtenAt'> {
  const checkpoint = backend.checkpoint() ?? null
  const writtenAt = backend instanceof WriteBehind ? backend.backend.writtenAt?.() : undefined
  return writtenAt === undefined ? { checkpoint } : { checkpoint, writtenAt }
}

export class TaskSet {
  readonly #options: LaneOptions
  readonly host: TaskHostPort
  readonly #globals: GlobalState
  readonly #levels: readonly LevelState[]
  readonly stages: Stages
  /** By stage, then task. */
  readonly #slots: Array<Array<TaskSlot | undefined>>
  readonly #all = new Set<TaskSlot>()
  /** Opened (perhaps not yet started) stores by `<store>/<partition>`. */
  readonly #stores = new Map<string, OpenStore>()
  readonly #backends = new Map<string, StoreBackend>()
  /** Writes what is committed to the durable stores. */
  readonly writer: StoreWriter
  affinity: Affinity | undefined
  /** The newest commit that the stores have all of; undefined: they were filled from changelogs since. */
  #lastCommit: string | undefined
  /** The watermark up to which the epoch goes that is sealed next: what a replay of later epochs reads is kept. */
  sealsUpTo = Number.NEGATIVE_INFINITY
  /** All lanes have started. Before, what a wall-clock timer hands over might come to a lane that does not know its tasks. */
  haveBegun = false
  /** Nothing is let in: what the wall clock brings about waits as well. */
  paused = false
  /** What the stores have taken since the commit before. */
  #storesMs = 0

  constructor(options: LaneOptions, host: TaskHostPort, globals: GlobalState, levels: readonly LevelState[]) {
    this.#options = options
    this.host = host
    this.#globals = globals
    this.#levels = levels
    this.stages = stagesOf(options.topology)
    this.#slots = this.stages.all.map(() => [])
    this.writer = new StoreWriter(options.writeBehind ?? writeThrough, {
      together: (partition, write) => {
        const began = options.clock.monotonic()
        try {
          options.backends.together(partition, write)
        } finally {
          this.#storesMs += options.clock.monotonic() - began
        }
      },
      holding: (bytes) => {
        options.counters[laneIndex.unwrittenBytes] = bytes
      },
      passed: () => options.failpoint?.('S6'),
    })
  }

  get size(): number {
    return this.#all.size
  }

  all(): Iterable<TaskSlot> {
    return this.#all
  }

  has(slot: TaskSlot): boolean {
    return this.#all.has(slot)
  }

  get(stage: number, partition: number): TaskSlot | undefined {
    return (this.#slots[stage] as Array<TaskSlot | undefined>)[partition]
  }

  /** The task that takes the records of a source. */
  ofSource(source: number, partition: number): TaskSlot | undefined {
    return this.get(this.stages.ofSource[source] as number, partition)
  }

  store(name: string, partition: number): OpenStore | undefined {
    return this.#stores.get(`${name}/${partition}`)
  }

  /** Opens the stores of tasks to come; answers what they hold. */
  open(tasks: readonly TaskRef[]): OpenedStore[] {
    const opened: OpenedStore[] = []
    for (const task of tasks) {
      for (const name of this.#storesOf(task.subtopology)) {
        const store = this.#open(name, task)
        const backend = this.#backends.get(`${name}/${task.partition}`)
        assert(backend !== undefined, `store ${name}/${task.partition} is open without a backend`)
        if (store.spec.changelog) opened.push({ store: name, partition: task.partition, ...foundIn(backend) })
      }
    }
    return opened
  }

  restore(message: Extract<ToLane, { type: 'restore' }>): number {
    const id = `${message.store}/${message.partition}`
    const store = this.#stores.get(id)
    assert(store !== undefined, `store ${id} is restored before it is open`)
    if (message.wipe) store.wipe()
    // What it holds from here on is not what a commit of this process left.
    this.#lastCommit = undefined
    assert(this.affinity !== undefined, `store ${id} is restored before the lane knows which tasks there are`)
    const foreign = sourceRows(store.spec, message.partition, this.#options, this.affinity)
    const count = restoreInto(store, message, foreign)
    const now = this.#options.clock.now()
    this.writer.notice(now)
    this.writer.makeRoom(now)
    this.#count(message.store, restoredSlot, count)
    return count
  }

  start(tasks: readonly StartingTask[], epoch: CommitEpoch, ofAll: number): void {
    for (const { subtopology, partition, watermark = ofAll } of tasks) {
      const stages = this.stages.bySubtopology[subtopology]
      assert(stages !== undefined, `no sub-topology ${subtopology}`)
      const stores = new Map<string, OpenStore>()
      for (const name of this.#storesOf(subtopology)) {
        const store = this.#stores.get(`${name}/${partition}`)
        assert(store !== undefined, `task ${subtopology}_${partition} starts before its store ${name} is open`)
        stores.set(name, store)
      }
      const ways = this.stages.deferrals.filter(({ stage }) => stages.some(({ index }) => index === stage))
      const rowsBehind = rowsBehindOf(ways)
      const before: Task[] = []
      for (const stage of stages)
        before.push(this.#startStage(stage, { partition, rowsBehind, before: [...before] }, stores, epoch, watermark))
      for (const store of stores.values()) store.begin(watermark)
    }
  }

  #startStage(
    stage: Stage,
    place: Required<Pick<TaskOptions, 'partition' | 'rowsBehind' | 'before'>>,
    stores: ReadonlyMap<string, OpenStore>,
    epoch: CommitEpoch,
    watermark: number,
  ): Task {
    const { topology, applicationId } = this.#options
    const { subtopology } = stage
    const { partition } = place
    const compiled = topology.subtopologies[subtopology] as CompiledSubtopology
    const globalStores = this.#globals.stores
    const host = this.host.for(() => slot)
    const task = new Task({ topology, applicationId, subtopology, stage, ...place, stores, globalStores, host })
    const levels = new Set(stage.nodes.flatMap((node) => levelsFeeding(topology, node)))
    if (levels.size === 0) levels.add(stage.level)
    const own = new Map([...stores].filter(([name]) => stage.stores.includes(name)))
    const slot: TaskSlot = new TaskSlot(
      subtopology,
      partition,
      stage.level,
      compiled.stores.some((name) => own.has(name)),
      task,
      own,
      epoch,
      levels.size === 1 && compiled.order !== 'arrival' && !isTimeless(topology, stage),
      topology.sources.map((source) => {
        const name = source.subtopology === subtopology ? rowsByKey(topology, source) : undefined
        return name === undefined ? undefined : own.get(name)?.rowPrefetch
      }),
    )
    slot.begins(watermark)
    slot.comparesKeys = this.stages.deferrals.some((way) => way.stage === stage.index)
    const slots = this.#slots[stage.index] as Array<TaskSlot | undefined>
    assert(slots[partition] === undefined, `task ${subtopology}_${partition} starts twice`)
    slots[partition] = slot
    this.#all.add(slot)
    for (const level of levels) (this.#levels[level] as LevelState).slots.push(slot)
    task.init(watermark)
    task.held?.mark()
    return task
  }

  /** What the task changed in this epoch, as changelog batches; later changes belong to the next epoch. */
  seal(slot: TaskSlot, epoch: CommitEpoch, into: BatchPacker): void {
    const { batchBytes } = this.#options.sizes ?? usualSizes
    assert(slot.epoch === epoch, `epoch ${epoch} is sealed of a task that works in ${slot.epoch}`)
    // While no watermark is known, stores go by the time of the records.
    const reached = slot.sealsUpTo ?? this.sealsUpTo
    const upTo = reached === Number.NEGATIVE_INFINITY ? undefined : reached
    for (const [name, store] of slot.stores) {
      const sealed = store.seal(epoch, upTo)
      if (sealed === null || !store.spec.changelog) continue
      // Where the source topic is the changelog, the changes stand there already.
      if (store.spec.changelogTopic === undefined) packChangelog(name, slot.partition, sealed, into, batchBytes)
      else into.addEmpty(name, slot.partition, sealed.count)
    }
  }

  /** A task that goes by its own watermark has come this far with what was dispatched to it. */
  advance({ subtopology, partition, watermark }: TaskWatermark, runner: TaskRunner): void {
    for (const { index } of this.stages.bySubtopology[subtopology] ?? []) {
      const slot = this.get(index, partition)
      if (slot !== undefined) runner.advance(slot, watermark)
    }
  }

  /** Some rows of a store in the form of its changelog, from this key of the backend on. */
  dump(name: string, partition: number, from: Uint8Array | null): Dumped {
    const store = this.store(name, partition)
    const backend = this.#backends.get(`${name}/${partition}`)
    assert(
      store !== undefined && backend !== undefined,
      `store ${name}/${partition} is asked for its rows before it is open`,
    )
    return dumpRows(store.spec, partition, backend, from)
  }

  applied(
    epoch: CommitEpoch,
    checkpoints: ReadonlyArray<StorePartition & { checkpoint: Checkpoint }>,
    commitId: string,
  ): void {
    const { clock, counters } = this.#options
    const before = this.#storesMs
    const began = clock.monotonic()
    this.#lastCommit = commitId
    for (const { store, partition, checkpoint } of checkpoints) {
      this.#stores.get(`${store}/${partition}`)?.applied(epoch, checkpoint)
      this.#options.failpoint?.('S6')
    }
    for (const { stores } of this.#all) for (const store of stores.values()) store.committed(epoch)
    this.writer.notice(clock.now())
    // Told of each commit: a lane that is at something else takes no notice of one, whatever its stores need.
    counters[laneIndex.storesMs] = before + clock.monotonic() - began
    this.#storesMs = 0
    for (const name of this.#options.layout.stores) {
      let entries = 0
      for (const { partition, stores } of this.#all) {
        const backend = stores.has(name) ? this.#backends.get(`${name}/${partition}`) : undefined
        entries += backend?.entriesAbout?.() ?? backend?.entries() ?? 0
      }
      this.#count(name, entriesSlot, entries, true)
    }
  }

  /** What the stores have and take: to be asked now and then. Of those of a standby no commit tells it. */
  measure(): void {
    for (const name of this.#options.layout.stores) {
      const all = [...this.#backends].flatMap(([id, backend]) => (id.startsWith(`${name}/`) ? backend : []))
      const bytes = all.reduce((sum, backend) => sum + (backend.bytes?.() ?? 0), 0)
      const entries = all.reduce((sum, backend) => sum + (backend.entriesAbout?.() ?? backend.entries()), 0)
      this.#count(name, bytesSlot, bytes, true)
      this.#count(name, entriesSlot, entries, true)
    }
  }

  /** Some store has rows past their time that only another commit removes. */
  hasExpired(): boolean {
    return [...this.#all].some(({ stores }) => [...stores.values()].some((store) => store.hasExpired))
  }

  /** Earliest wall-clock instant at which a timer is due, of those that may fire; Infinity: none. */
  get nextWallClock(): number {
    let next = Number.POSITIVE_INFINITY
    if (!this.haveBegun || this.paused) return next
    for (const slot of this.#all) if (!slot.holdsTimers) next = Math.min(next, slot.task.nextWallClock)
    return next
  }

  /** Fires the wall-clock timers that are due; true: there were some. */
  wallClock(now: number, runner: TaskRunner): boolean {
    if (this.nextWallClock > now) return false
    for (const slot of [...this.#all])
      if (!slot.holdsTimers && slot.task.nextWallClock <= now) runner.wallClock(slot, now)
    return true
  }

  uncommittedBytes(): number {
    let bytes = 0
    for (const slot of this.#all) if (slot.stateful) bytes += slot.uncommittedBytes()
    return bytes
  }

  /** Whether a commit has something to take from the tasks. */
  hasEffects(): boolean {
    return this.uncommittedBytes() > 0 || this.dirtyRows() > 0
  }

  /** Rows that are told with the next commit. */
  dirtyRows(): number {
    let rows = 0
    for (const { task } of this.#all) rows += task.emissions.dirtyRows
    return rows
  }

  closeTasks(tasks: readonly TaskRef[]): void {
    for (const { subtopology, partition } of tasks) {
      for (const { index } of this.stages.bySubtopology[subtopology] ?? []) {
        const slot = this.get(index, partition)
        if (slot) this.#drop(slot)
      }
      this.writer.flush(partition)
      for (const name of this.#storesOf(subtopology)) {
        const id = `${name}/${partition}`
        this.#stores.get(id)?.close()
        this.#stores.delete(id)
        this.#backends.delete(id)
        this.writer.release(name, partition)
      }
    }
  }

  /** Drops tasks and every change that is not committed; the backends stay open. */
  discard(): void {
    this.haveBegun = false
    for (const slot of [...this.#all]) this.#drop(slot)
    for (const store of this.#stores.values()) store.detach()
    this.#stores.clear()
    this.#globals.reset()
  }

  close(): void {
    for (const slot of [...this.#all]) this.#drop(slot)
    for (const store of this.#stores.values()) store.detach()
    this.writer.flushAll()
    this.#markWhole()
    for (const store of this.#stores.values()) store.close()
    this.#stores.clear()
    this.#backends.clear()
  }

  /** The store's partitions on this lane; a global table's rows, which every lane has, are the first lane's to tell. */
  queried(name: string): OpenStore[] {
    const global = this.#globals.stores.get(name)
    if (global !== undefined) {
      return this.#options.lane === 0 ? [global as OpenStore] : []
    }
    const found: OpenStore[] = []
    for (const slot of this.#all) {
      const store = slot.stores.get(name)
      if (store !== undefined) found.push(store)
    }
    return found
  }

  /** The stores on disk have all of the last commit, whether or not it changed them: a later start can tell. */
  #markWhole(): void {
    const commitId = this.#lastCommit
    if (commitId === undefined || this.writer.full) return
    for (const [id, backend] of this.#backends) {
      const partition = Number(id.slice(id.lastIndexOf('/') + 1))
      if (!(backend instanceof WriteBehind) || backend.isHolding || backend.backend.isLost === true) continue
      const checkpoint = backend.checkpoint() ?? { changelogOffset: 0, topicId: '' }
      this.#options.backends.together(partition, () => backend.backend.apply([], { ...checkpoint, commitId }))
    }
  }

  #drop(slot: TaskSlot): void {
    const wasThere = this.#all.delete(slot)
    assert(wasThere, `task ${slot.subtopology}_${slot.partition} is dropped twice`)
    for (const { index } of this.stages.bySubtopology[slot.subtopology] ?? []) {
      if (this.get(index, slot.partition) === slot) this.#slots[index]![slot.partition] = undefined
    }
    for (const { slots } of this.#levels) {
      const at = slots.indexOf(slot)
      if (at >= 0) slots.splice(at, 1)
    }
    slot.task.close()
  }

  #storesOf(subtopology: number): string[] {
    const { topology } = this.#options
    const names = new Set<string>(topology.subtopologies[subtopology]?.stores ?? [])
    for (const index of topology.subtopologies[subtopology]?.nodes ?? []) {
      for (const name of topology.nodes[index]?.stores ?? []) if (!topology.globalStores.has(name)) names.add(name)
    }
    return [...names]
  }

  #open(name: string, task: TaskRef): OpenStore {
    const id = `${name}/${task.partition}`
    const known = this.#stores.get(id)
    if (known) return known
    const spec = this.#options.topology.stores.get(name)
    assert(spec !== undefined, `there is no store ${name}`)
    const backend = this.#backends.get(id) ?? this.#openBackend(spec, task.partition)
    backend.opensAnew?.()
    this.#backends.set(id, backend)
    const stages = this.stages.bySubtopology[task.subtopology] ?? []
    const taskOf = ({ index }: Stage): Task | undefined => this.get(index, task.partition)?.task
    const times = storeTimes(spec, stages, this.#options.topology, taskOf)
    const store = openStore(spec, backend, task.partition, {
      ...times,
      meter: storeMeter(this.#options.layout, name, this.#options.counters, this.#options.clock),
    }) as OpenStore
    this.#stores.set(id, store)
    return store
  }

  #openBackend(spec: StoreSpec, partition: number): StoreBackend {
    const { name } = spec
    const backend = this.#options.backends.open(name, partition, storeForm(spec))
    return backend.durable ? this.writer.open(name, partition, backend) : backend
  }

  #count(store: string, slot: number, value: number, set = false): void {
    const index = this.#options.layout.stores.indexOf(store)
    if (index < 0) return
    const { counters, layout } = this.#options
    const at = storeSlot(layout, index, slot)
    counters[at] = set ? value : (counters[at] as number) + value
  }
}

/** The levels at which a node takes in records of its own: none but of sources. */
function levelsFeeding({ sources }: CompiledTopology, node: number): number[] {
  return sources.filter((source) => source.node === node).map(({ level }) => level)
}
