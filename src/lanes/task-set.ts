/** The tasks of a lane: their stores opened, restored, sealed and applied. */
import { assert } from '../base/assert.ts'
import { laneIndex, storeSlot, storeSlots } from '../base/counters.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { Task } from '../operators/task.ts'
import { packChangelog } from './changelog-batches.ts'
import type { AnyStore, Checkpoint, StoreBackend, StoreLifecycle, StoreSpec } from '../state/contract.ts'
import { openStore } from '../state/open-store.ts'
import { rowsByKey } from '../topology/rows-by-key.ts'
import type { BatchPacker } from '../wire/batch-pack.ts'
import type { Affinity, TaskRef } from './affinity.ts'
import type { GlobalState } from './global-state.ts'
import type { LaneOptions } from './lane-core.ts'
import type { LevelState } from './level-state.ts'
import type { StorePartition, ToLane } from './protocol.ts'
import { restoreInto } from './restore.ts'
import type { TaskHostPort } from './task-host.ts'
import { storeMeter } from './store-meter.ts'
import { StoreWriter } from './store-writer.ts'
import { TaskSlot } from './task-slot.ts'

type OpenStore = AnyStore & StoreLifecycle

const entriesSlot = storeSlots.indexOf('entries')
const bytesSlot = storeSlots.indexOf('bytes')
const restoredSlot = storeSlots.indexOf('restored')

/** Durable stores are written with their commit. */
const writeThrough = { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY }

export class TaskSet {
  readonly #options: LaneOptions
  readonly host: TaskHostPort
  readonly #globals: GlobalState
  readonly #levels: readonly LevelState[]
  /** By sub-topology, then task. */
  readonly #slots: Array<Array<TaskSlot | undefined>>
  readonly #all = new Set<TaskSlot>()
  /** Opened (perhaps not yet started) stores by `<store>/<partition>`. */
  readonly #stores = new Map<string, OpenStore>()
  readonly #backends = new Map<string, StoreBackend>()
  /** Writes what is committed to the durable stores. */
  readonly writer: StoreWriter
  affinity: Affinity | undefined
  /** The watermark up to which the epoch goes that is sealed next: what a replay of later epochs reads is kept. */
  sealsUpTo = Number.NEGATIVE_INFINITY

  constructor(options: LaneOptions, host: TaskHostPort, globals: GlobalState, levels: readonly LevelState[]) {
    this.#options = options
    this.host = host
    this.#globals = globals
    this.#levels = levels
    this.#slots = options.topology.subtopologies.map(() => [])
    this.writer = new StoreWriter(options.writeBehind ?? writeThrough, {
      together: (partition, write) => options.backends.together(partition, write),
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

  get(subtopology: number, partition: number): TaskSlot | undefined {
    return (this.#slots[subtopology] as Array<TaskSlot | undefined>)[partition]
  }

  store(name: string, partition: number): OpenStore | undefined {
    return this.#stores.get(`${name}/${partition}`)
  }

  /** Opens the stores of tasks to come; answers what they hold. */
  open(tasks: readonly TaskRef[]): Array<StorePartition & { checkpoint: Checkpoint | null }> {
    const opened: Array<StorePartition & { checkpoint: Checkpoint | null }> = []
    for (const task of tasks) {
      for (const name of this.#storesOf(task.subtopology)) {
        const store = this.#open(name, task)
        const backend = this.#backends.get(`${name}/${task.partition}`) as StoreBackend
        if (store.spec.changelog)
          opened.push({ store: name, partition: task.partition, checkpoint: backend.checkpoint() ?? null })
      }
    }
    return opened
  }

  restore(message: Extract<ToLane, { type: 'restore' }>): number {
    const id = `${message.store}/${message.partition}`
    const store = this.#stores.get(id)
    assert(store !== undefined, `store ${id} is restored before it is open`)
    if (message.wipe) store.wipe()
    const count = restoreInto(store, message)
    this.writer.notice(this.#options.clock.now())
    this.#count(message.store, restoredSlot, count)
    return count
  }

  start(tasks: readonly TaskRef[], epoch: CommitEpoch, watermark: number): void {
    const { topology, applicationId } = this.#options
    for (const { subtopology, partition } of tasks) {
      const compiled = topology.subtopologies[subtopology]
      assert(compiled !== undefined, `no sub-topology ${subtopology}`)
      const stores = new Map<string, OpenStore>()
      for (const name of this.#storesOf(subtopology)) {
        const store = this.#stores.get(`${name}/${partition}`)
        assert(store !== undefined, `task ${subtopology}_${partition} starts before its store ${name} is open`)
        stores.set(name, store)
      }
      const host = this.host.for(() => slot)
      const task = new Task({
        topology,
        applicationId,
        subtopology,
        partition,
        stores,
        globalStores: this.#globals.stores,
        host,
      })
      const levels = new Set(compiled.sources.map((source) => topology.sources[source]?.level ?? 0))
      const slot: TaskSlot = new TaskSlot(
        subtopology,
        partition,
        compiled.level,
        compiled.stores.length > 0,
        task,
        stores,
        epoch,
        // Deeper down a record may come before an older one that waits in an asynchronous function above.
        levels.size === 1 && compiled.level === 0,
        topology.sources.map((source) => {
          const name = source.subtopology === subtopology ? rowsByKey(topology, source) : undefined
          return name === undefined ? undefined : stores.get(name)?.rowsAhead
        }),
      )
      slot.watermark = watermark
      slot.target = watermark
      ;(this.#slots[subtopology] as TaskSlot[])[partition] = slot
      this.#all.add(slot)
      for (const level of levels) (this.#levels[level] as LevelState).slots.push(slot)
      task.init()
      if (watermark > Number.NEGATIVE_INFINITY) task.advance(watermark)
      for (const store of stores.values()) store.begin(watermark)
    }
  }

  /** What the task changed in this epoch, as changelog batches; later changes belong to the next epoch. */
  seal(slot: TaskSlot, epoch: CommitEpoch, into: BatchPacker): void {
    // While no watermark is known, stores go by the time of the records.
    const upTo = this.sealsUpTo === Number.NEGATIVE_INFINITY ? undefined : this.sealsUpTo
    for (const [name, store] of slot.stores) {
      const sealed = store.seal(epoch, upTo)
      if (sealed === null || !store.spec.changelog) continue
      // Where the source topic is the changelog, the changes stand there already.
      if (store.spec.changelogTopic === undefined) packChangelog(name, slot.partition, sealed, into)
      else into.addEmpty(name, slot.partition, sealed.count)
    }
  }

  applied(epoch: CommitEpoch, checkpoints: ReadonlyArray<StorePartition & { checkpoint: Checkpoint }>): void {
    for (const { store, partition, checkpoint } of checkpoints) {
      this.#stores.get(`${store}/${partition}`)?.applied(epoch, checkpoint)
      this.#options.failpoint?.('S6')
    }
    for (const { stores } of this.#all) for (const store of stores.values()) store.committed(epoch)
    this.writer.notice(this.#options.clock.now())
    for (const name of this.#options.layout.stores) {
      let entries = 0
      for (const { partition, stores } of this.#all) {
        const backend = stores.has(name) ? this.#backends.get(`${name}/${partition}`) : undefined
        entries += backend?.entriesAbout?.() ?? backend?.entries() ?? 0
      }
      this.#count(name, entriesSlot, entries, true)
    }
  }

  /** What the stores take: to be asked now and then, for it is estimated from rows. */
  measure(): void {
    for (const name of this.#options.layout.stores) {
      let bytes = 0
      for (const { partition, stores } of this.#all) {
        if (stores.has(name)) bytes += this.#backends.get(`${name}/${partition}`)?.bytes?.() ?? 0
      }
      this.#count(name, bytesSlot, bytes, true)
    }
  }

  /** Some store has rows past their time that only another commit removes. */
  isForgetting(): boolean {
    for (const { stores } of this.#all) for (const store of stores.values()) if (store.isForgetting) return true
    return false
  }

  uncommittedBytes(): number {
    let bytes = 0
    for (const slot of this.#all) if (slot.stateful) bytes += slot.uncommittedBytes()
    return bytes
  }

  closeTasks(tasks: readonly TaskRef[]): void {
    for (const { subtopology, partition } of tasks) {
      const slot = this.get(subtopology, partition)
      if (slot) this.#drop(slot)
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
    for (const slot of [...this.#all]) this.#drop(slot)
    for (const store of this.#stores.values()) store.detach()
    this.#stores.clear()
    this.#globals.reset()
  }

  close(): void {
    for (const slot of [...this.#all]) this.#drop(slot)
    for (const store of this.#stores.values()) store.detach()
    this.writer.flushAll()
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

  #drop(slot: TaskSlot): void {
    this.#all.delete(slot)
    ;(this.#slots[slot.subtopology] as Array<TaskSlot | undefined>)[slot.partition] = undefined
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
    const spec = this.#options.topology.stores.get(name) as StoreSpec
    const backend = this.#backends.get(id) ?? this.#openBackend(name, task.partition)
    this.#backends.set(id, backend)
    // Windows are forgotten by the watermark alone: before it is known, every one of them may still be in time; and once
    // it has come, its timers still find them.
    const slot = (): TaskSlot | undefined => this.get(task.subtopology, task.partition)
    const time = spec.kind === 'key-value' ? () => slot()?.task.rowTime : () => slot()?.task.settledTo
    const store = openStore(spec, backend, task.partition, {
      streamTime: () => time() ?? Number.NEGATIVE_INFINITY,
      meter: storeMeter(this.#options.layout, name, this.#options.counters, this.#options.clock),
    }) as OpenStore
    this.#stores.set(id, store)
    return store
  }

  #openBackend(name: string, partition: number): StoreBackend {
    const backend = this.#options.backends.open(name, partition)
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
