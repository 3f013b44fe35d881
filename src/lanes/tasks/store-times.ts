/** The times by which a task's store forgets: for whoever reads it beside its records, and for what a commit removes. */
import type { Task } from '../../operators/task.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { StoreOptions } from '../../state/stores/base-store.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { type Stage, storesLookedUp } from '../../topology/levels/stages.ts'

const unknown = Number.NEGATIVE_INFINITY

/**
 * Windows are forgotten by the watermark alone: before it is known, every one of them may still be in time; and once it
 * has come, its timers still find them.
 */
export function storeTimes(
  spec: StoreSpec,
  stages: readonly Stage[],
  topology: CompiledTopology,
  taskOf: (stage: Stage) => Task | undefined,
): Pick<StoreOptions, 'streamTime' | 'removableTo'> {
  const { name, kind } = spec
  const { keeper, readers } = placesOf(stages, topology, name)
  const settledTo = (): number => taskOf(keeper)?.settledTo ?? unknown
  const streamTime = kind === 'key-value' ? () => taskOf(keeper)?.rowTime ?? unknown : settledTo
  const written = kind === 'key-value' ? () => rowsRemovableTo(taskOf(keeper), spec) : settledTo
  if (readers.length === 0) return { streamTime, removableTo: written }
  const removableTo = (): number => {
    let least = written()
    for (const reader of readers) least = Math.min(least, taskOf(reader)?.settledTo ?? unknown)
    return least
  }
  return { streamTime, removableTo }
}

/** Where a store is kept, and which other stages look into it. */
interface Places {
  readonly keeper: Stage
  /** Records of a deeper stage come to its rows later, with the watermarks that they had. */
  readonly readers: readonly Stage[]
}

/** The same for each partition. */
const known = new WeakMap<readonly Stage[], Map<string, Places>>()

function placesOf(stages: readonly Stage[], topology: CompiledTopology, name: string): Places {
  let byStore = known.get(stages)
  if (byStore === undefined) {
    byStore = new Map()
    known.set(stages, byStore)
  }
  let places = byStore.get(name)
  if (places === undefined) {
    const keeper = (stages.find(({ stores }) => stores.includes(name)) ?? stages.at(-1)) as Stage
    places = { keeper, readers: stages.filter((stage) => stage !== keeper && reads(stage, topology, name)) }
    byStore.set(name, places)
  }
  return places
}

/**
 * Before a watermark is known each record goes by its own time. So that no more is kept than one time to live of what
 * nobody may read, rows go then as well: when they are over for a record that is older than the newest by as much. After
 * that timers read as of their own times, and are not further than what is settled.
 */
function rowsRemovableTo(task: Task | undefined, { ttlMs }: StoreSpec): number {
  if (task === undefined) return unknown
  return task.streamTime === unknown ? task.rowTime - (ttlMs ?? 0) : task.settledTo
}

function reads({ nodes }: Stage, topology: CompiledTopology, store: string): boolean {
  return nodes.some((index) => {
    const node = topology.nodes[index]
    return node !== undefined && storesLookedUp(node).includes(store)
  })
}
