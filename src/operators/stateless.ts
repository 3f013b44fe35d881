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
    const { only } = this
    return only === undefined ? forward(this.children, rec) : only.process(rec)
  }
}

/** What a function of the application is given, and what bounds its calls. */
class Calling {
  readonly #gate: CallGate | undefined
  readonly #task: TaskContext
  readonly #node: string
  #context: CallContext

  constructor(env: OperatorEnv) {
    this.#task = env.context
    this.#node = env.node.name
    this.#gate = env.context.gate?.(env.node)
    this.#context = new CallContext(this.#task, this.#node)
  }

  /** As many calls are out as may be, or more is bounded than their number. */
  get mustWait(): boolean {
    const gate = this.#gate
    return gate !== undefined && !gate.isFree
  }

  /** For a call at once. */
  context(rec: Rec): CallContext {
    return this.#context.isFor(rec.origin)
  }

  /** The call gave a promise: its context stays with the record. The gate that the call is to leave. */
  entered(): CallGate | undefined {
    this.#context = new CallContext(this.#task, this.#node)
    this.#gate?.entered()
    return this.#gate
  }

  /** Calls the function when it is this record's turn. */
  inTurn(fn: UserFn, rec: Rec): Promise<unknown> {
    const context = new CallContext(this.#task, this.#node).isFor(rec.origin)
    return (this.#gate as CallGate).run(rec.origin, () => fn(rec.value, rec.key, rec, context))
  }
}

/**
 * The common part of operators that call one function and go on with its result. What is rare has methods of its own: a
 * closure beside the usual way would cost a scope for every record.
 */
abstract class FunctionOperator extends NodeOperator {
  protected readonly fn: UserFn
  protected readonly calling: Calling

  constructor(env: OperatorEnv, children: Downstream, fn: UserFn) {
    super(env, children)
    this.fn = fn
    this.calling = new Calling(env)
  }

  process(rec: Rec): Maybe {
    this.enter()
    if (this.calling.mustWait) return this.#resumeAfter(this.calling.inTurn(this.fn, rec), rec)
    const result = this.call(rec)
    if (isPromise(result)) return this.#resumeAfter(result, rec, this.calling.entered())
    return this.resume(result, rec)
  }

  #resumeAfter(promise: PromiseLike<unknown>, rec: Rec, gate?: CallGate): Maybe {
    return this.later(promise, rec, (result) => this.resume(result, rec), gate)
  }

  /** In each class a line of its own: V8 learns of each which functions it calls, and inlines the only one. */
  protected abstract call(rec: Rec): unknown
  protected abstract resume(result: unknown, rec: Rec): Maybe
}

export class FilterOperator extends FunctionOperator {
  readonly #not: boolean

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'filter'>) {
    super(env, children, spec.predicate)
    this.#not = spec.not
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(passes: unknown, rec: Rec): Maybe {
    if (Boolean(passes) === this.#not) return
    const { only } = this
    return only === undefined ? forward(this.children, rec) : only.process(rec)
  }
}

export class MapOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'map'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(result: unknown, rec: Rec): Maybe {
    const [key, value] = result as readonly [unknown, unknown]
    const mapped = withKeyAndValue(rec, key, value)
    const { only } = this
    return only === undefined ? forward(this.children, mapped) : only.process(mapped)
  }
}

export class MapValuesOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'mapValues'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(result: unknown, rec: Rec): Maybe {
    const mapped = withValue(rec, result)
    const { only } = this
    return only === undefined ? forward(this.children, mapped) : only.process(mapped)
  }
}

export class SelectKeyOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'selectKey'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(key: unknown, rec: Rec): Maybe {
    const mapped = withKey(rec, key)
    const { only } = this
    return only === undefined ? forward(this.children, mapped) : only.process(mapped)
  }
}

export class PeekOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'peek'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(_result: unknown, rec: Rec): Maybe {
    return forward(this.children, rec)
  }
}

export class FlatMapOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'flatMap'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(result: unknown, rec: Rec): Maybe {
    const records = [...(result as Iterable<readonly [unknown, unknown]>)]
    return this.inTurn(records, ([key, value]) => forward(this.children, withKeyAndValue(rec, key, value)))
  }
}

export class FlatMapValuesOperator extends FunctionOperator {
  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'flatMapValues'>) {
    super(env, children, spec.fn)
  }

  protected call(rec: Rec): unknown {
    return this.fn(rec.value, rec.key, rec, this.calling.context(rec))
  }

  protected resume(result: unknown, rec: Rec): Maybe {
    return this.inTurn([...(result as Iterable<unknown>)], (value) => forward(this.children, withValue(rec, value)))
  }
}

export class BranchOperator extends NodeOperator {
  readonly #predicates: ReadonlyArray<UserFn | undefined>
  readonly #callings: readonly Calling[]

  constructor(env: OperatorEnv, children: Downstream, spec: SpecOf<'branch'>) {
    super(env, children)
    this.#predicates = spec.predicates
    this.#callings = spec.predicates.map(() => new Calling(env))
  }

  process(rec: Rec): Maybe {
    this.enter()
    return this.#from(0, rec)
  }

  #from(start: number, rec: Rec): Maybe {
    for (let i = start; i < this.#predicates.length; i++) {
      const predicate = this.#predicates[i]
      if (predicate === undefined) return this.children[i]?.process(rec)
      const calling = this.#callings[i] as Calling
      if (calling.mustWait) return this.#resumeAfter(calling.inTurn(predicate, rec), i, rec)
      const holds = predicate(rec.value, rec.key, rec, calling.context(rec))
      if (isPromise(holds)) return this.#resumeAfter(holds, i, rec, calling.entered())
      if (holds) return this.children[i]?.process(rec)
    }
  }

  #resumeAfter(promise: PromiseLike<unknown>, i: number, rec: Rec, gate?: CallGate): Maybe {
    const go = (holds: unknown): Maybe => (holds ? this.children[i]?.process(rec) : this.#from(i + 1, rec))
    return this.later(promise, rec, go, gate)
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
    const told = withValue(rec, (rec.value as Change).newValue)
    const { only } = this
    return only === undefined ? forward(this.children, told) : only.process(told)
  }
}
