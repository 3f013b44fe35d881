/** Aggregates of a grouped stream without windows. */
import type { SpecOf } from '../topology/operator-spec.ts'
import { type Emission, toldAt } from './emission.ts'
import { type CallGate, Change, type Downstream, forward, isPromise, type Maybe, Rec } from './contract.ts'
import { NodeOperator, type OperatorEnv } from './node-operator.ts'
import { forEachCall, isChangeable, RowStore } from './rows.ts'

export class StreamAggregateOperator extends NodeOperator {
  readonly #spec: SpecOf<'streamAggregate'>
  readonly #rows: RowStore
  readonly #emission: Emission | undefined

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'streamAggregate'>) {
    super(env, children)
    this.#spec = spec
    this.#rows = new RowStore(env.context, spec.store ?? { name: '', kind: 'key-value' })
    this.#emission = this.emissionOf(env, spec)
  }

  process(rec: Rec): Maybe {
    this.enter()
    const { key, value } = rec
    if (key === null || key === undefined) return this.drop(rec, 'null_key')
    if (value === null || (value === undefined && this.#spec.readsValue)) return this.drop(rec, 'null_value')
    const row = this.#rows.get(key, rec)
    const { init, fold } = this.#spec
    const old = row === undefined ? null : row.value
    const timestamp = row === undefined ? rec.timestamp : Math.max(rec.timestamp, row.timestamp)
    if (this.gate !== undefined && (row !== undefined || init !== undefined))
      return this.#inTurn(this.gate, rec, row === undefined ? init : undefined, old, timestamp)
    const aggregate =
      row === undefined ? (init === undefined ? value : fold(init(), value, key, rec)) : fold(old, value, key, rec)
    if (isPromise(aggregate)) return this.#putLater(aggregate, rec, old, timestamp)
    return this.#put(rec, aggregate, old, timestamp)
  }

  // Apart, so that no scope is made for the closures where the function answers at once.

  #inTurn(gate: CallGate, rec: Rec, init: (() => unknown) | undefined, old: unknown, timestamp: number): Maybe {
    const { fold } = this.#spec
    const start = init ?? forEachCall(old, () => this.#stored(rec, old))
    const folded = gate.run(rec.origin, () => fold(start(), rec.value, rec.key, rec))
    return this.#putLater(folded, rec, old, timestamp)
  }

  #putLater(aggregate: PromiseLike<unknown>, rec: Rec, old: unknown, timestamp: number): Maybe {
    return this.later(aggregate, rec, (result) => this.#put(rec, result, old, timestamp))
  }

  /** What it was before the fold, which may have changed the object. */
  #stored(rec: Rec, old: unknown): unknown {
    return isChangeable(old) ? (this.#rows.get(rec.key, rec)?.value ?? null) : old
  }

  #put(rec: Rec, aggregate: unknown, old: unknown, timestamp: number): Maybe {
    const before = this.#spec.sendOldValues ? this.#stored(rec, old) : null
    const put = this.#rows.put(rec.key, aggregate, timestamp, rec)
    if (put === 'rejected') return this.drop(rec, 'expired')
    const { key, headers } = rec
    if (this.#emission?.notes(key, 0, 0, aggregate, toldAt(rec, aggregate, timestamp), headers)) return
    const change = new Change(aggregate ?? null, before, put === 'latest')
    const told = new Rec(key, change, timestamp, headers, rec.origin, rec.keyRange, undefined)
    const { only } = this
    return only === undefined ? forward(this.children, told) : only.process(told)
  }
}
