/** Operators without state. */
import type { SpecOf, UserFn } from '../topology/operator-spec.ts'
import { type Change, type Downstream, forward, isPromise, type Maybe, Rec } from './contract.ts'
import { inTurn, NodeOperator, type OperatorEnv } from './node-operator.ts'

export function withValue(rec: Rec, value: unknown): Rec {
  return new Rec(rec.key, value, rec.timestamp, rec.headers, rec.origin, rec.keyRange, undefined)
}

export function withKey(rec: Rec, key: unknown): Rec {
  return new Rec(key, rec.value, rec.timestamp, rec.headers, rec.origin, undefined, rec.valueRange)
}

export function withKeyAndValue(rec: Rec, key: unknown, value: unknown): Rec {
  return new Rec(key, value, rec.timestamp, rec.headers, rec.origin, undefined, undefined)
}

export class PassThroughOperator extends NodeOperator {
  process(rec: Rec): Maybe {
    this.enter()
    return forward(this.children, rec)
  }
}

export class FilterOperator extends NodeOperator {
  readonly #predicate: UserFn
  readonly #not: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'filter'>) {
    super(env, children)
    this.#predicate = spec.predicate
    this.#not = spec.not
  }

  process(rec: Rec): Maybe {
    this.enter()
    const passes = this.#predicate(rec.value, rec.key, rec)
    if (isPromise(passes)) return this.later(passes, rec, (result) => this.#decide(result, rec))
    return this.#decide(passes, rec)
  }

  #decide(passes: unknown, rec: Rec): Maybe {
    if (Boolean(passes) !== this.#not) return forward(this.children, rec)
  }
}

/** The common part of operators that call one function and go on with its result. */
abstract class FunctionOperator extends NodeOperator {
  readonly #fn: UserFn

  constructor(env: OperatorEnv, children: Downstream, spec: { readonly fn: UserFn }) {
    super(env, children)
    this.#fn = spec.fn
  }

  process(rec: Rec): Maybe {
    this.enter()
    const result = this.#fn(rec.value, rec.key, rec)
    if (isPromise(result)) return this.later(result, rec, (value) => this.goOn(value, rec))
    return this.goOn(result, rec)
  }

  protected abstract goOn(result: unknown, rec: Rec): Maybe
}

export class MapOperator extends FunctionOperator {
  protected goOn(result: unknown, rec: Rec): Maybe {
    const [key, value] = result as readonly [unknown, unknown]
    return forward(this.children, withKeyAndValue(rec, key, value))
  }
}

export class MapValuesOperator extends FunctionOperator {
  protected goOn(result: unknown, rec: Rec): Maybe {
    return forward(this.children, withValue(rec, result))
  }
}

export class SelectKeyOperator extends FunctionOperator {
  protected goOn(result: unknown, rec: Rec): Maybe {
    return forward(this.children, withKey(rec, result))
  }
}

export class PeekOperator extends FunctionOperator {
  protected goOn(_result: unknown, rec: Rec): Maybe {
    return forward(this.children, rec)
  }
}

export class FlatMapOperator extends FunctionOperator {
  protected goOn(result: unknown, rec: Rec): Maybe {
    const records = [...(result as Iterable<readonly [unknown, unknown]>)]
    return inTurn(records, ([key, value]) => forward(this.children, withKeyAndValue(rec, key, value)))
  }
}

export class FlatMapValuesOperator extends FunctionOperator {
  protected goOn(result: unknown, rec: Rec): Maybe {
    return inTurn([...(result as Iterable<unknown>)], (value) => forward(this.children, withValue(rec, value)))
  }
}

export class BranchOperator extends NodeOperator {
  readonly #predicates: ReadonlyArray<UserFn | undefined>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'branch'>) {
    super(env, children)
    this.#predicates = spec.predicates
  }

  process(rec: Rec): Maybe {
    this.enter()
    return this.#from(0, rec)
  }

  #from(start: number, rec: Rec): Maybe {
    for (let i = start; i < this.#predicates.length; i++) {
      const predicate = this.#predicates[i]
      const holds = predicate === undefined ? true : predicate(rec.value, rec.key, rec)
      if (isPromise(holds))
        return this.later(holds, rec, (result) => (result ? this.children[i]?.process(rec) : this.#from(i + 1, rec)))
      if (holds) return this.children[i]?.process(rec)
    }
  }
}

/** Before a repartition: a record without a key has no partition of its own. */
export class NullKeyFilterOperator extends NodeOperator {
  readonly #drop: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'nullKeyFilter'>) {
    super(env, children)
    this.#drop = spec.drop
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (this.#drop && (rec.key === null || rec.key === undefined)) return this.drop(rec, 'null_key')
    return forward(this.children, rec)
  }
}

export class TableToStreamOperator extends NodeOperator {
  process(rec: Rec): Maybe {
    this.enter()
    return forward(this.children, withValue(rec, (rec.value as Change).newValue))
  }
}
