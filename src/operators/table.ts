/** Operators that make tables and derive tables from tables. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValueStore, TimestampedKeyValueStore } from '../state/contract.ts'
import type { SpecOf, UserFn } from '../topology/operator-spec.ts'
import { type Emission, toldAt } from './emission.ts'
import { Change, type Downstream, forward, isPromise, type Maybe, Rec } from './contract.ts'
import { NodeOperator, type OperatorEnv } from './node-operator.ts'
import { type HistoryRows, isChangeable, RowStore } from './rows.ts'
import { withValue } from './stateless.ts'

const nothing = (value: unknown): value is null | undefined => value === null || value === undefined

/** Turns records into updates of rows. Without a store it knows no old values. */
export class TableSourceOperator extends NodeOperator {
  readonly #rows: RowStore | undefined
  readonly #sendOldValues: boolean
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableSource'>) {
    super(env, children)
    this.#rows = spec.store && new RowStore(env.context, spec.store)
    this.#sendOldValues = spec.sendOldValues
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (nothing(rec.key)) return this.drop(rec, 'null_key')
    const value = rec.value ?? null
    const rows = this.#rows
    if (rows === undefined) return forward(this.children, withValue(rec, new Change(value, null)))
    const old = this.#sendOldValues ? rows.get(rec.key, rec) : undefined
    const put = rows.put(rec.key, value, rec.timestamp, rec)
    if (put === 'rejected') return this.drop(rec, 'expired')
    if (this.#emission?.notes(rec.key, 0, 0, value, rec.timestamp, rec.headers)) return
    return forward(
      this.children,
      withValue(rec, new Change(value, old?.value ?? null, put === 'latest', old?.timestamp)),
    )
  }
}

/** Fills a global table or store. */
export class GlobalPutOperator extends NodeOperator {
  readonly #put: (key: unknown, value: unknown, rec: Rec) => void
  /** The newest time of each partition: they are loaded one after the other, whatever came first while they were written. */
  readonly #newest: number[] = []

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'globalPut'>) {
    super(env, children)
    const store = env.context.store(spec.store.name)
    if (spec.timestamped) {
      const rows = store as TimestampedKeyValueStore<unknown, unknown>
      this.#put = (key, value, { timestamp }) => rows.put(key, value, timestamp)
    } else if (spec.store.kind === 'versioned') {
      // No watermark says how far a global table has come: the history of a partition ends so much before its newest version.
      const versions = store as unknown as HistoryRows
      this.#put = (key, value, { timestamp, origin }) => {
        const newest = Math.max(timestamp, this.#newest[origin.partition] ?? timestamp)
        this.#newest[origin.partition] = newest
        versions.putAt(key, value, timestamp, newest)
      }
    } else {
      const values = store as KeyValueStore<unknown, unknown>
      this.#put = (key, value) => values.put(key, value)
    }
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (nothing(rec.key)) return this.drop(rec, 'null_key')
    this.#put(rec.key, rec.value, rec)
  }
}

export class TableFilterOperator extends NodeOperator {
  readonly #spec: SpecOf<'tableFilter'>
  readonly #rows: RowStore | undefined
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableFilter'>) {
    super(env, children)
    this.#spec = spec
    this.#rows = spec.store && new RowStore(env.context, spec.store)
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    const change = rec.value as Change
    return this.whenDone(this.#passing(change.newValue, rec, false), rec, (newValue) => {
      if (!this.#spec.sendOldValues) return this.#go(rec, newValue, null)
      if (this.#rows) {
        const row = this.#rows.get(rec.key, rec)
        return this.#go(rec, newValue, row?.value, row?.timestamp)
      }
      return this.whenDone(this.#passing(change.oldValue, rec, true), rec, (oldValue) =>
        this.#go(rec, newValue, oldValue, change.oldTimestamp),
      )
    })
  }

  /** The value if it passes, else null. */
  #passing(value: unknown, rec: Rec, isOld: boolean): unknown {
    if (nothing(value)) return null
    const { predicate, not } = this.#spec
    try {
      const passes = predicate(value, rec.key, withValue(rec, value))
      if (!isPromise(passes)) return Boolean(passes) !== not ? value : null
      return passes.then(
        (result) => (Boolean(result) !== not ? value : null),
        (error) => this.noRow(error, rec, isOld, this.#asksBack),
      )
    } catch (error) {
      return this.noRow(error, rec, isOld, this.#asksBack)
    }
  }

  /** What has rows of its own knows what it has told. */
  get #asksBack(): boolean {
    return this.#rows === undefined && this.#spec.sendOldValues
  }

  #go(rec: Rec, newValue: unknown, oldValue: unknown, oldTimestamp?: number): Maybe {
    const { sendOldValues, versioned } = this.#spec
    if (!versioned && sendOldValues && nothing(oldValue) && nothing(newValue)) return
    let isLatest = (rec.value as Change).isLatest
    if (this.#rows) {
      const put = this.#rows.put(rec.key, newValue, rec.timestamp, rec)
      if (put === 'rejected') return this.drop(rec, 'expired')
      if (this.#emission?.notes(rec.key, 0, 0, newValue, rec.timestamp, rec.headers)) return
      isLatest = put === 'latest'
    }
    return forward(this.children, withValue(rec, new Change(newValue, oldValue ?? null, isLatest, oldTimestamp)))
  }
}

export class TableMapValuesOperator extends NodeOperator {
  readonly #spec: SpecOf<'tableMapValues'>
  readonly #rows: RowStore | undefined
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableMapValues'>) {
    super(env, children)
    this.#spec = spec
    this.#rows = spec.store && new RowStore(env.context, spec.store)
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    const change = rec.value as Change
    return this.whenDone(this.#map(change.newValue, rec, false), rec, (newValue) => {
      if (!this.#spec.sendOldValues) return this.#go(rec, newValue, null)
      if (this.#rows) {
        const row = this.#rows.get(rec.key, rec)
        return this.#go(rec, newValue, row?.value, row?.timestamp)
      }
      this.atWork()
      return this.whenDone(this.#map(change.oldValue, rec, true), rec, (oldValue) =>
        this.#go(rec, newValue, oldValue, change.oldTimestamp),
      )
    })
  }

  #map(value: unknown, rec: Rec, isOld: boolean): unknown {
    if (nothing(value) && !this.#spec.onDeletes) return null
    try {
      const made = this.#spec.fn(value ?? null, rec.key, withValue(rec, value ?? null))
      return isPromise(made) ? made.then(undefined, (error) => this.noRow(error, rec, isOld, this.#asksBack)) : made
    } catch (error) {
      return this.noRow(error, rec, isOld, this.#asksBack)
    }
  }

  /** What has rows of its own knows what it has told. */
  get #asksBack(): boolean {
    return this.#rows === undefined && this.#spec.sendOldValues
  }

  #go(rec: Rec, newValue: unknown, oldValue: unknown, oldTimestamp?: number): Maybe {
    let isLatest = (rec.value as Change).isLatest
    if (this.#rows) {
      const put = this.#rows.put(rec.key, newValue, rec.timestamp, rec)
      if (put === 'rejected') return this.drop(rec, 'expired')
      if (this.#emission?.notes(rec.key, 0, 0, newValue, rec.timestamp, rec.headers)) return
      isLatest = put === 'latest'
    }
    return forward(
      this.children,
      withValue(rec, new Change(newValue ?? null, oldValue ?? null, isLatest, oldTimestamp)),
    )
  }
}

/** Sends each row to its group: out of the old one, into the new one. */
export class TableGroupByOperator extends NodeOperator {
  readonly #fn: UserFn
  readonly #versioned: boolean
  readonly #throughTopic: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableGroupBy'>) {
    super(env, children)
    this.#fn = spec.fn
    this.#versioned = spec.versioned
    this.#throughTopic = spec.throughTopic === true
  }

  process(rec: Rec): Maybe {
    this.enter()
    const change = rec.value as Change
    if (this.#versioned && !change.isLatest) return this.drop(rec, 'out_of_order')
    return this.whenDone(this.#group(change.newValue, rec, false), rec, (added) =>
      this.whenDone(this.#group(change.oldValue, rec, true), rec, (removed) => this.#go(rec, change, added, removed)),
    )
  }

  #group(value: unknown, rec: Rec, isOld: boolean): unknown {
    if (nothing(value)) return null
    try {
      const pair = this.#fn(value, rec.key, withValue(rec, value))
      return isPromise(pair) ? pair.then(undefined, (error) => this.noRow(error, rec, isOld)) : pair
    } catch (error) {
      return this.noRow(error, rec, isOld)
    }
  }

  #go(rec: Rec, change: Change, added: unknown, removed: unknown): Maybe {
    const into = usable(added)
    const from = usable(removed)
    // Behind a topic the oldest goes first: what is taken out has to stand behind where it was put in.
    const outAt = this.#throughTopic ? Math.max(rec.timestamp, change.oldTimestamp ?? 0) : rec.timestamp
    const send = (key: unknown, newValue: unknown, oldValue: unknown, at: number): Rec => {
      const value = new Change(newValue, oldValue, change.isLatest)
      return new Rec(key, value, at, rec.headers, rec.origin, undefined, undefined)
    }
    if (into && from && outAt === rec.timestamp && sameKey(into[0], from[0]))
      return forward(this.children, send(from[0], into[1], from[1], outAt))
    const updates: Rec[] = []
    if (from) updates.push(send(from[0], null, from[1], outAt))
    if (into) updates.push(send(into[0], into[1], null, rec.timestamp))
    return this.inTurn(updates, (update) => forward(this.children, update))
  }
}

/** A pair with neither key nor value missing. */
function usable(pair: unknown): readonly [unknown, unknown] | undefined {
  if (!Array.isArray(pair) || nothing(pair[0]) || nothing(pair[1])) return undefined
  return pair as unknown as readonly [unknown, unknown]
}

/** Two keys that it tells apart go to their groups one by one, which is right for equal ones as well. */
function sameKey(a: unknown, b: unknown): boolean {
  return a === b || (typeof a === 'object' && isDeepStrictEqual(a, b))
}

export class TableAggregateOperator extends NodeOperator {
  readonly #spec: SpecOf<'tableAggregate'>
  readonly #rows: RowStore
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'tableAggregate'>) {
    super(env, children)
    this.#spec = spec
    this.#rows = new RowStore(env.context, spec.store ?? { name: '', kind: 'key-value' })
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (nothing(rec.key)) return this.drop(rec, 'null_key')
    const { oldValue, newValue } = rec.value as Change
    const { subtract } = this.#spec
    const row = this.#rows.get(rec.key, rec)
    const old = row?.value ?? null
    const takesOut = !nothing(oldValue) && !nothing(old)
    const without = takesOut ? subtract(old, oldValue, rec.key, withValue(rec, oldValue)) : old
    return this.whenDone(without, rec, (between) => {
      if (nothing(newValue))
        return this.#put(rec, between, old, takesOut ? Math.max(rec.timestamp, row?.timestamp ?? 0) : rec.timestamp)
      const timestamp = row ? Math.max(rec.timestamp, row.timestamp) : rec.timestamp
      return this.whenDone(this.#add(between, newValue, rec), rec, (aggregate) =>
        this.#put(rec, aggregate, old, timestamp),
      )
    })
  }

  #add(between: unknown, newValue: unknown, rec: Rec): unknown {
    const { init, add } = this.#spec
    if (nothing(between) && init === undefined) return newValue
    const start = nothing(between) ? init?.() : between
    return add(start, newValue, rec.key, withValue(rec, newValue))
  }

  #put(rec: Rec, aggregate: unknown, old: unknown, timestamp: number): Maybe {
    // The functions may have changed the object that was read.
    const stored = isChangeable(old) && this.#spec.sendOldValues ? (this.#rows.get(rec.key, rec)?.value ?? null) : old
    const put = this.#rows.put(rec.key, aggregate, timestamp, rec)
    if (put === 'rejected') return this.drop(rec, 'expired')
    const { key, headers } = rec
    if (this.#emission?.notes(key, 0, 0, aggregate, toldAt(rec, aggregate, timestamp), headers)) return
    const change = new Change(aggregate ?? null, this.#spec.sendOldValues ? stored : null, put === 'latest')
    return forward(this.children, new Rec(key, change, timestamp, headers, rec.origin, rec.keyRange, undefined))
  }
}
