/** Operators without state. */
import type { SpecOf, UserFn } from '../topology/operator-spec.ts'
import {
  type CallGate,
  type Change,
  type Downstream,
  forward,
  isPromise,
  type Maybe,
  Rec,
  type TaskContext,
} from './contract.ts'
import { CallContext, NodeOperator, type OperatorEnv } from './node-operator.ts'

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
  readonly #function: StreamFunction
  readonly #not: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'filter'>) {
    super(env, children)
    this.#function = new StreamFunction(env, spec.predicate)
    this.#not = spec.not
  }

  process(rec: Rec): Maybe {
    this.enter()
    const passes = this.#function.call(rec)
    if (isPromise(passes)) return this.later(passes, rec, (result) => this.#decide(result, rec))
    return this.#decide(passes, rec)
  }

  #decide(passes: unknown, rec: Rec): Maybe {
    if (Boolean(passes) !== this.#not) return forward(this.children, rec)
  }
}

/** A function of the application, with what it is given and what bounds its calls. */
class StreamFunction {
  readonly #fn: UserFn
  readonly #gate: CallGate | undefined
  readonly #task: TaskContext
  readonly #node: string
  #context: CallContext

  constructor(env: OperatorEnv, fn: UserFn) {
    this.#fn = fn
    this.#task = env.context
    this.#node = env.node.name
    this.#gate = env.context.gate?.(env.node)
    this.#context = new CallContext(this.#task, this.#node)
  }

  /** What it gives for the record; a promise where it is asynchronous, or is to be called later. */
  call(rec: Rec): unknown {
    const fn = this.#fn
    const gate = this.#gate
    if (gate !== undefined && !gate.isFree) return this.#inTurn(gate, rec)
    const context = this.#context
    context.rec = rec
    const result = fn(rec.value, rec.key, rec, context)
    if (!isPromise(result)) return result
    this.#context = new CallContext(this.#task, this.#node)
    return gate === undefined ? result : gate.follow(result)
  }

  /** Apart, so that no scope is made for the closure where nothing has to wait. */
  #inTurn(gate: CallGate, rec: Rec): unknown {
    const fn = this.#fn
    const context = new CallContext(this.#task, this.#node, rec)
    return gate.run(rec.origin, () => fn(rec.value, rec.key, rec, context))
  }
}

/** The common part of operators that call one function and go on with its result. */
abstract class FunctionOperator extends NodeOperator {
  readonly #function: StreamFunction

  constructor(env: OperatorEnv, children: Downstream, spec: { readonly fn: UserFn }) {
    super(env, children)
    this.#function = new StreamFunction(env, spec.fn)
  }

  process(rec: Rec): Maybe {
    this.enter()
    const result = this.#function.call(rec)
    if (isPromise(result)) return this.later(result, rec, (value) => this.resume(value, rec))
    return this.resume(result, rec)
  }

  protected abstract resume(result: unknown, rec: Rec): Maybe
}

export class MapOperator extends FunctionOperator {
  protected resume(result: unknown, rec: Rec): Maybe {
    const [key, value] = result as readonly [unknown, unknown]
    return forward(this.children, withKeyAndValue(rec, key, value))
  }
}

export class MapValuesOperator extends FunctionOperator {
  protected resume(result: unknown, rec: Rec): Maybe {
    return forward(this.children, withValue(rec, result))
  }
}

export class SelectKeyOperator extends FunctionOperator {
  protected resume(result: unknown, rec: Rec): Maybe {
    return forward(this.children, withKey(rec, result))
  }
}

export class PeekOperator extends FunctionOperator {
  protected resume(_result: unknown, rec: Rec): Maybe {
    return forward(this.children, rec)
  }
}

export class FlatMapOperator extends FunctionOperator {
  protected resume(result: unknown, rec: Rec): Maybe {
    const records = [...(result as Iterable<readonly [unknown, unknown]>)]
    return this.inTurn(records, ([key, value]) => forward(this.children, withKeyAndValue(rec, key, value)))
  }
}

export class FlatMapValuesOperator extends FunctionOperator {
  protected resume(result: unknown, rec: Rec): Maybe {
    return this.inTurn([...(result as Iterable<unknown>)], (value) => forward(this.children, withValue(rec, value)))
  }
}

export class BranchOperator extends NodeOperator {
  readonly #predicates: ReadonlyArray<StreamFunction | undefined>

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'branch'>) {
    super(env, children)
    this.#predicates = spec.predicates.map((fn) => fn && new StreamFunction(env, fn))
  }

  process(rec: Rec): Maybe {
    this.enter()
    return this.#from(0, rec)
  }

  #from(start: number, rec: Rec): Maybe {
    for (let i = start; i < this.#predicates.length; i++) {
      const predicate = this.#predicates[i]
      const holds = predicate === undefined ? true : predicate.call(rec)
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
