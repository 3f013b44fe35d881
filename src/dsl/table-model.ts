/**
 * What the graph knows of a table while it is built: where its rows can be read, and whether its updates carry the
 * value they replace. Operators further down ask for both, so the answers become known only as the calls come in.
 */
import type { Getter, JoinFn, StoreRefSpec, UserFn } from '../topology/operator-spec.ts'
import type { StoreDefinition } from '../topology/physical.ts'

export interface TableModel {
  /** Makes updates carry the value that they replace. With `force`, the table is kept as state where that is needed. */
  enableOldValues(force: boolean): boolean
  /** How its rows are read. Asking makes sure that they can be. */
  getter(): Getter
}

const refOf = (store: StoreDefinition | undefined): StoreRefSpec | undefined =>
  store && { name: store.name, kind: store.kind }
const storeGetter = (store: StoreDefinition, global = false): Getter => ({
  kind: 'store',
  store: store.name,
  storeKind: store.kind,
  global,
})

/** The names of the stores that a getter reads. Global ones need no connection. */
export function getterStores(getter: Getter): string[] {
  switch (getter.kind) {
    case 'store':
      return getter.global ? [] : [getter.store]
    case 'join':
      return [...new Set([...getterStores(getter.left), ...getterStores(getter.right)])]
    case 'suppressed':
      return [getter.store, ...getterStores(getter.parent)]
    default:
      return getterStores(getter.parent)
  }
}

/** A topic or stream read as a table. It is kept as state only when an operator needs that. */
export class SourceTable implements TableModel {
  readonly definition: StoreDefinition
  kept: boolean
  sendOldValues = false

  constructor(definition: StoreDefinition, kept: boolean) {
    this.definition = definition
    this.kept = kept
  }

  enableOldValues(force: boolean): boolean {
    if (this.sendOldValues) return true
    if (!force && !this.kept) return false
    this.kept = true
    this.sendOldValues = true
    return true
  }

  getter(): Getter {
    this.kept = true
    return storeGetter(this.definition)
  }

  output(): { store: StoreRefSpec | undefined; sendOldValues: boolean } {
    return { store: this.kept ? refOf(this.definition) : undefined, sendOldValues: this.sendOldValues }
  }
}

/** The result of an aggregate, which is always kept, or of several aggregates that share a store (a cogroup). */
export class AggregateTable implements TableModel {
  readonly definition: StoreDefinition
  sendOldValues = false

  constructor(definition: StoreDefinition) {
    this.definition = definition
  }

  enableOldValues(): boolean {
    this.sendOldValues = true
    return true
  }

  getter(): Getter {
    return storeGetter(this.definition)
  }

  output(): { store: StoreRefSpec | undefined; sendOldValues: boolean } {
    return { store: refOf(this.definition), sendOldValues: this.sendOldValues }
  }
}

/** A filter or a mapping of values. */
export class DerivedTable implements TableModel {
  readonly #parent: TableModel
  readonly #definition: StoreDefinition | undefined
  readonly #view: (parent: Getter) => Getter
  sendOldValues: boolean

  constructor(
    parent: TableModel,
    definition: StoreDefinition | undefined,
    view: (parent: Getter) => Getter,
    tryOldValues: boolean,
  ) {
    this.#parent = parent
    this.#definition = definition
    this.#view = view
    // A filter above a table that is kept can always look up whether it let the old value of a row pass.
    this.sendOldValues = tryOldValues && parent.enableOldValues(false)
  }

  enableOldValues(force: boolean): boolean {
    if (this.#definition !== undefined || this.#parent.enableOldValues(force)) this.sendOldValues = true
    return this.sendOldValues
  }

  getter(): Getter {
    return this.#definition ? storeGetter(this.#definition) : this.#view(this.#parent.getter())
  }

  output(): { store: StoreRefSpec | undefined; sendOldValues: boolean } {
    return { store: refOf(this.#definition), sendOldValues: this.sendOldValues }
  }
}

export const filterView =
  (predicate: UserFn, not: boolean) =>
  (parent: Getter): Getter => ({ kind: 'filter', parent, predicate, not })

export const mapView =
  (fn: UserFn, onDeletes: boolean) =>
  (parent: Getter): Getter => ({ kind: 'mapValues', parent, fn, onDeletes })

export interface TableJoinShape {
  readonly leftOuter: boolean
  readonly rightOuter: boolean
  readonly joiner: JoinFn
}

export class JoinTable implements TableModel {
  readonly #left: TableModel
  readonly #right: TableModel
  readonly #definition: StoreDefinition | undefined
  readonly #shape: TableJoinShape
  sendOldValues = false

  constructor(left: TableModel, right: TableModel, definition: StoreDefinition | undefined, shape: TableJoinShape) {
    this.#left = left
    this.#right = right
    this.#definition = definition
    this.#shape = shape
  }

  enableOldValues(): boolean {
    this.#left.enableOldValues(true)
    this.#right.enableOldValues(true)
    this.sendOldValues = true
    return true
  }

  getter(): Getter {
    if (this.#definition) return storeGetter(this.#definition)
    return { kind: 'join', left: this.#left.getter(), right: this.#right.getter(), ...this.#shape }
  }

  output(): { store: StoreRefSpec | undefined; sendOldValues: boolean } {
    return { store: refOf(this.#definition), sendOldValues: this.sendOldValues }
  }
}

export class SuppressedTable implements TableModel {
  readonly #parent: TableModel
  readonly #store: string
  sendOldValues = false

  constructor(parent: TableModel, store: string) {
    this.#parent = parent
    this.#store = store
  }

  enableOldValues(force: boolean): boolean {
    if (this.#parent.enableOldValues(force)) this.sendOldValues = true
    return this.sendOldValues
  }

  getter(): Getter {
    return { kind: 'suppressed', parent: this.#parent.getter(), store: this.#store }
  }
}

export class GlobalTableModel implements TableModel {
  readonly #definition: StoreDefinition

  constructor(definition: StoreDefinition) {
    this.#definition = definition
  }

  enableOldValues(): boolean {
    return false
  }

  getter(): Getter {
    return storeGetter(this.#definition, true)
  }
}
