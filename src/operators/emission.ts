/**
 * Tells the changed rows of one store once per commit. While an epoch is open, its operators note their updates here
 * instead of telling them; the store's undo log remembers which rows they changed, and what these were. When the barrier
 * closes the level each of them is told: its value at the last commit, and its newest. What is changed behind that, by
 * timers that have waited for it, is told at once, as without folding.
 */
import type { AnyStore, ChangedRows, StoreLifecycle } from '../state/contract.ts'
import type { CompiledNode, PerCommit } from '../topology/compiled.ts'
import type { Headers } from '../broker/wire/headers.ts'
import { Change, type Downstream, forward, type Maybe, type Origin, Rec } from './contract.ts'

/** The operator that made the rows: of several that share a store, any. */
export interface Teller {
  readonly index: number
  readonly name: string
  readonly children: Downstream
  readonly sendsOldValues: boolean
  /** The key under which it tells a row. */
  keyOf(row: ChangedRows): unknown
}

/** What the row does not remember of its last update. */
interface LastUpdate {
  readonly timestamp: number
  readonly headers: Headers
}

type LastUpdates = ReadonlyMap<string, LastUpdate>

export interface Telling {
  /** The place of the next row. */
  readonly origin: () => Origin
  /** A function below did not take the row. */
  readonly failed: (rec: Rec, error: unknown) => void
  /** So many functions are called at once. */
  readonly mostCalls: number
  readonly probe: { steps: number }
}

/** Rows whose functions have not answered, by key: the last one of each. */
class UnderWay {
  readonly #last = new Map<string, Promise<void>>()
  #ended: () => void = () => undefined

  get size(): number {
    return this.#last.size
  }

  of(key: string): Promise<void> | undefined {
    return this.#last.get(key)
  }

  add(key: string, answer: Promise<void>): void {
    const ended = answer.then(() => {
      if (this.#last.get(key) !== ended) return
      this.#last.delete(key)
      this.#ended()
    })
    this.#last.set(key, ended)
  }

  async fewerThan(most: number): Promise<void> {
    while (this.size >= most) {
      await new Promise<void>((resolve) => {
        this.#ended = resolve
      })
    }
  }
}

const never = Number.POSITIVE_INFINITY
const noHeaders: Headers = []

/** A deletion is told at the time of the record that made it: the row that had a time of its own is gone. */
export function toldAt(rec: Rec, value: unknown, rowTimestamp: number): number {
  return value === null || value === undefined ? rec.timestamp : rowTimestamp
}

export class Emission {
  readonly plan: PerCommit
  /** No update that is still to be told is older, but for those that came late. */
  least = never
  /** Updates noted, and rows told, since the last commit. */
  noted = 0
  told = 0
  #teller: Teller | undefined
  readonly #rows: StoreLifecycle
  /** Event time to which the task was advanced: operators below may have come as far. */
  readonly #advancedTo: () => number
  /** The rows of this epoch are told. */
  #isOver = false
  /** Of rows that were deleted, or whose record had headers. */
  #last: Map<string, LastUpdate> | undefined

  constructor(plan: PerCommit, rows: StoreLifecycle, advancedTo: () => number) {
    this.plan = plan
    this.#rows = rows
    this.#advancedTo = advancedTo
  }

  get teller(): Teller {
    return this.#teller as Teller
  }

  set teller(teller: Teller) {
    this.#teller ??= teller
  }

  /** Rows that are still to be told. */
  get dirtyRows(): number {
    return this.least === never ? 0 : this.#rows.changedCount
  }

  /** Takes an update that is put into the store; false: it is to be told now. */
  notes(key: unknown, start: number, end: number, value: unknown, timestamp: number, headers: Headers): boolean {
    if (this.#isOver) return false
    this.noted++
    if (timestamp < this.least) this.least = Math.max(timestamp, this.#advancedTo())
    if (headers.length > 0 || value === null || value === undefined || this.#last !== undefined)
      this.#remember(this.#rows.rowOf(key, start, end), value, timestamp, headers)
    return true
  }

  #remember(row: string, value: unknown, timestamp: number, headers: Headers): void {
    this.#last ??= new Map()
    if (headers.length > 0 || value === null || value === undefined) this.#last.set(row, { timestamp, headers })
    else this.#last.delete(row)
  }

  /** Tells all of them. Rows of different keys do not wait for one another's functions. */
  tell(telling: Telling): Maybe {
    const last = this.#last
    this.least = never
    this.#last = undefined
    this.#isOver = true
    return this.#tellRest(this.#rows.changedRows(), last, telling, new UnderWay())
  }

  /** As many rows as may wait for functions at once, and behind these the others. */
  #tellRest(rows: ChangedRows, last: LastUpdates | undefined, telling: Telling, underWay: UnderWay): Maybe {
    while (underWay.size < telling.mostCalls) {
      if (!rows.next()) return underWay.size === 0 ? undefined : underWay.fewerThan(1)
      const rec = this.#recordOf(rows, last, telling.origin())
      // Windows of one key, as its records do, come one after the other.
      const key = underWay.size === 0 ? undefined : this.#keyOf(rows)
      const before = key === undefined ? undefined : underWay.of(key)
      const answer = before === undefined ? this.#one(rec, telling) : before.then(() => this.#one(rec, telling))
      if (answer !== undefined) underWay.add(key ?? this.#keyOf(rows), answer)
    }
    return underWay.fewerThan(telling.mostCalls).then(() => this.#tellRest(rows, last, telling, underWay))
  }

  #keyOf({ row, key, start, end }: ChangedRows): string {
    return start === 0 && end === 0 ? row : this.#rows.rowOf(key, 0, 0)
  }

  #recordOf(rows: ChangedRows, last: LastUpdates | undefined, origin: Origin): Rec {
    const update = last?.get(rows.row)
    const timestamp = rows.isThere ? rows.timestamp : (update?.timestamp ?? rows.timestamp)
    const { sendsOldValues } = this.teller
    const change = new Change(rows.value, sendsOldValues ? rows.before : null)
    const headers = update?.headers ?? noHeaders
    return new Rec(this.teller.keyOf(rows), change, timestamp, headers, origin, undefined, undefined)
  }

  #one(rec: Rec, { failed, probe }: Telling): Maybe {
    this.told++
    probe.steps++
    try {
      return forward(this.teller.children, rec)?.catch((error) => failed(rec, error))
    } catch (error) {
      failed(rec, error)
    }
  }

  /** The epoch is sealed; the next one is open. Gives the number of updates that were not told one by one. */
  sealed(): number {
    const folded = Math.max(0, this.noted - this.told)
    this.noted = 0
    this.told = 0
    this.least = never
    this.#last = undefined
    this.#isOver = false
    return folded
  }
}

/** All that one task tells once per commit. */
export class Emissions {
  /** In the order of their operators. */
  readonly all: readonly Emission[]
  readonly byStore: ReadonlyMap<string, Emission>
  /** Those for which the task's own timers wait. */
  readonly #holding: readonly Emission[]

  constructor(
    nodes: readonly CompiledNode[],
    plans: ReadonlyMap<string, PerCommit>,
    stores: ReadonlyMap<string, AnyStore>,
    advancedTo: () => number,
  ) {
    const byStore = new Map<string, Emission>()
    for (const { spec } of nodes) {
      const name = 'store' in spec && typeof spec.store === 'object' ? spec.store.name : undefined
      const plan = name === undefined ? undefined : plans.get(name)
      if (name === undefined || plan === undefined || byStore.has(name)) continue
      byStore.set(name, new Emission(plan, stores.get(name) as AnyStore & StoreLifecycle, advancedTo))
    }
    this.byStore = byStore
    this.all = [...byStore.values()]
    this.#holding = this.all.filter(({ plan }) => plan.holdsTask)
  }

  /** No update that is still to be told is older, but for those that came late. */
  get least(): number {
    return leastOf(this.all)
  }

  /** No further than this may event time go in the task, as long as updates are still to be told. */
  get heldTo(): number {
    return this.#holding.length === 0 ? never : leastOf(this.#holding)
  }

  /** No further than this may event time go in deeper tasks. */
  get heldBelow(): number {
    let least = never
    for (const { plan, least: own } of this.all) if (plan.holdsDeeper && own < least) least = own
    return least
  }

  /** Rows that are told with the next commit. */
  get dirtyRows(): number {
    let rows = 0
    for (const emission of this.all) rows += emission.dirtyRows
    return rows
  }

  /** See `Emission.sealed`. */
  sealed(): number {
    let folded = 0
    for (const emission of this.all) folded += emission.sealed()
    return folded
  }
}

function leastOf(emissions: readonly Emission[]): number {
  let least = never
  for (const { least: own } of emissions) if (own < least) least = own
  return least
}
