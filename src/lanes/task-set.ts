/** The tasks of a lane: their stores opened, restored, sealed and applied. */
import { assert } from '../base/assert.ts'
import { storeSlots } from '../base/counters.ts'
import type { CommitEpoch } from '../base/ids.ts'
import { EngineError, toWireError, type WireError } from '../errors.ts'
import { Task } from '../operators/task.ts'
import { changelogBatches } from './changelog-batches.ts'
import type { AnyStore, Checkpoint, StoreBackend, StoreLifecycle, StoreSpec } from '../state/contract.ts'
import { openStore } from '../state/open-store.ts'
import type { Affinity, TaskRef } from './affinity.ts'
import type { GlobalState } from './global-state.ts'
import type { LaneOptions } from './lane-core.ts'
import type { LevelState } from './level-state.ts'
import type { ChangelogBatches, StorePartition, StoreQuery, ToLane } from './protocol.ts'
import { restoreInto } from './restore.ts'
import type { TaskHostPort } from './task-host.ts'
import { TaskSlot } from './task-slot.ts'

type OpenStore = AnyStore & StoreLifecycle

const entriesSlot = storeSlots.indexOf('entries')
const restoredSlot = storeSlots.indexOf('restored')

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
  affinity: Affinity | undefined

  constructor(options: LaneOptions, host: TaskHostPort, globals: GlobalState, levels: readonly LevelState[]) {
    this.#options = options
    this.host = host
    this.#globals = globals
    this.#levels = levels
    this.#slots = options.topology.subtopologies.map(() => [])
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
    if (message.wipe) this.#backends.get(id)?.wipe()
    const { records, fromOffset, aborted, checkpoint } = message
    const count = restoreInto(store, records, fromOffset, aborted, checkpoint)
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
      )
      slot.watermark = watermark
      slot.target = watermark
      ;(this.#slots[subtopology] as TaskSlot[])[partition] = slot
      this.#all.add(slot)
      for (const level of levels) (this.#levels[level] as LevelState).slots.push(slot)
      task.init()
      if (watermark > Number.NEGATIVE_INFINITY) task.advance(watermark)
    }
  }

  /** What the task changed in this epoch, as changelog batches; later changes belong to the next epoch. */
  seal(slot: TaskSlot, epoch: CommitEpoch): ChangelogBatches[] {
    const result: ChangelogBatches[] = []
    for (const [name, store] of slot.stores) {
      const sealed = store.seal(epoch)
      if (sealed === null || !store.spec.changelog) continue
      const records = changelogBatches(sealed)
      result.push({ store: name, partition: slot.partition, records, count: sealed.changes.length })
    }
    return result
  }

  applied(epoch: CommitEpoch, checkpoints: ReadonlyArray<StorePartition & { checkpoint: Checkpoint }>): void {
    for (const { store, partition, checkpoint } of checkpoints) {
      this.#stores.get(`${store}/${partition}`)?.applied(epoch, checkpoint)
    }
    for (const slot of this.#all) {
      for (const [name, store] of slot.stores) this.#count(name, entriesSlot, store.entries(), true)
    }
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
      for (const name of this.#storesOf(subtopology)) {
        const id = `${name}/${partition}`
        this.#stores.get(id)?.close()
        this.#stores.delete(id)
        this.#backends.delete(id)
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
    for (const store of this.#stores.values()) store.close()
    this.#stores.clear()
    this.#backends.clear()
  }

  /** Rows of committed state. */
  query(name: string, query: StoreQuery): { rows: Array<readonly [Uint8Array, Uint8Array]>; error?: WireError } {
    const rows: Array<readonly [Uint8Array, Uint8Array]> = []
    let found = false
    for (const [id, backend] of this.#backends) {
      if (id.slice(0, id.lastIndexOf('/')) !== name) continue
      found = true
      if (query.kind === 'get') {
        const value = backend.get(query.key)
        if (value) rows.push([query.key, value.slice()])
      } else if (query.kind === 'range') {
        for (const [key, value] of backend.range(query.from ?? undefined, query.to ?? undefined)) {
          if (rows.length >= query.limit) break
          rows.push([key.slice(), value.slice()])
        }
      }
    }
    if (found) return { rows }
    return { rows, error: toWireError(new EngineError('USAGE', `there is no store ${name} on this lane`)) }
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
    const backend = this.#backends.get(id) ?? this.#options.backends.open(name, task.partition)
    this.#backends.set(id, backend)
    const store = openStore(spec, backend, task.partition, {
      streamTime: () => this.get(task.subtopology, task.partition)?.watermark ?? Number.NEGATIVE_INFINITY,
    }) as OpenStore
    this.#stores.set(id, store)
    return store
  }

  #count(store: string, slot: number, value: number, set = false): void {
    const index = this.#options.layout.stores.indexOf(store)
    if (index < 0) return
    const { counters, layout } = this.#options
    const at = counters.length - layout.stores.length * storeSlots.length + index * storeSlots.length + slot
    counters[at] = set ? value : (counters[at] as number) + value
  }
}
