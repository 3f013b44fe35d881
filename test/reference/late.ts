/** Nodes whose functions answer, or fail, behind a promise for some records; and processors that fail. */
import { type Expr, evaluate, FunctionFailed, type Json, jsonOf } from '../../conformance/expr.ts'
import {
  type GlobalTable,
  type GroupedStream,
  keyValueStore,
  type ProcessorContext,
  type SessionWindowedStream,
  type StoreDeclaration,
  type Stream,
  Table,
  type WindowedStream,
  withRetry,
} from '../../src/index.ts'
import type { ProgramNode } from './program.ts'

type S = Stream<Json, Json>
type T = Table<Json, Json>
type From = (index: number) => unknown

const retention = 86_400_000

/** At once for some records, behind a promise for others, after a while for the rest; the same in every run. */
function answer<R>(value: Json, upToMs: number, make: () => R): R | Promise<R> {
  const by = Number((value as { a?: number } | null)?.a ?? 0) % 9
  if (by < 3) return make()
  if (by < 5) return Promise.resolve().then(make)
  return new Promise((resolve) => setTimeout(resolve, (by * upToMs) / 9)).then(make)
}

/** What the options of the operator have of it. */
const callsOf = ({ calls }: ProgramNode): { concurrency?: number } =>
  calls?.concurrency === undefined ? {} : { concurrency: calls.concurrency }

/** The first call for some values fails, the second does not. */
function again<Args extends readonly Json[], R>(
  { calls }: ProgramNode,
  fn: (...args: Args) => R | Promise<R>,
): (...args: Args) => R | Promise<R> {
  if (!calls?.again) return fn
  const tried = new WeakSet<object>()
  return withRetry<Args, R>(
    (...args) => {
      const value = args.find((each): each is { readonly a: number } => typeof each === 'object' && each !== null)
      if (value === undefined || value.a % 4 !== 1 || tried.has(value)) return fn(...args)
      tried.add(value)
      throw new TypeError('no answer')
    },
    { backoff: 1, retryIf: (error) => !(error instanceof FunctionFailed) },
  )
}

const of = (expr: Expr | undefined, env: Record<string, unknown>): Json =>
  evaluate(expr as Expr, Object.fromEntries(Object.entries(env).map(([name, each]) => [name, jsonOf(each)])))

const listOf = (json: Json): readonly Json[] => (Array.isArray(json) ? (json as readonly Json[]) : [])

function onStream(node: ProgramNode, stream: S): unknown {
  const late = node.late ?? 0
  const options = callsOf(node)
  switch (node.op) {
    case 'mapValues':
      return stream.mapValues(
        again(node, (value: Json, key: Json) => answer(value, late, () => of(node.value, { value, key }))),
        options,
      )
    case 'filter':
      return stream.filter(
        again(node, (value: Json, key: Json) => answer(value, late, () => of(node.pred, { value, key }) === true)),
        options,
      )
    case 'filterNot':
      return stream.filterNot(
        again(node, (value: Json, key: Json) => answer(value, late, () => of(node.pred, { value, key }) === true)),
        options,
      )
    case 'selectKey':
      return stream.selectKey(
        again(node, (value: Json, key: Json) => answer(value, late, () => of(node.key, { value, key }))),
        options,
      )
    case 'flatMapValues':
      return stream.flatMapValues(
        again(node, (value: Json, key: Json) => answer(value, late, () => listOf(of(node.list, { value, key })))),
        options,
      )
    case 'map':
      return stream.map(
        again(node, (value: Json, key: Json) =>
          answer(value, late, () => [of(node.key, { value, key }), of(node.value, { value, key })] as const),
        ),
        options,
      )
    case 'flatMap': {
      const pair = (item: Json, key: Json) =>
        [of(node.key, { value: item, key }), of(node.value, { value: item, key })] as const
      return stream.flatMap(
        again(node, (value: Json, key: Json) =>
          answer(value, late, () => listOf(of(node.list, { value, key })).map((item) => pair(item, key))),
        ),
        options,
      )
    }
    default:
      return undefined
  }
}

function onTable(node: ProgramNode, table: T): unknown {
  const late = node.late ?? 0
  const stored = node.store ? { store: node.store.name } : {}
  switch (node.op) {
    case 'mapValues':
      return table.mapValues((value, key) => answer(value, late, () => of(node.value, { value, key })), stored)
    case 'filter':
      return table.filter((value, key) => answer(value, late, () => of(node.pred, { value, key }) === true), stored)
    default:
      return undefined
  }
}

function join(node: ProgramNode, from: From): unknown {
  const [left, right] = [from(0) as S | T, from(1) as S | T | GlobalTable<Json, Json>]
  const joiner = again(node, (l: Json, r: Json) =>
    answer(l, node.late ?? 0, () => of(node.joiner, { left: l, right: r })),
  )
  const op = node.op as 'join' | 'leftJoin' | 'outerJoin'
  if (left instanceof Table) {
    const { foreignKey } = node
    const on = foreignKey && { on: (value: Json, key: Json) => of(foreignKey, { value, key }) }
    const options = { ...on, ...(node.store && { store: node.store.name }) } as object
    return left[op as 'join'](right as T, joiner, options)
  }
  if (right instanceof Table) return left[op as 'join'](right, joiner, callsOf(node))
  if (node.key)
    return left[op as 'join'](right as GlobalTable<Json, Json>, joiner, {
      on: (value, key) => of(node.key, { value, key }),
      ...callsOf(node),
    })
  const { before, after, grace } = node.window as { before: number; after: number; grace?: number }
  return left[op as 'join'](right as S, joiner, {
    within: { before, after },
    ...callsOf(node),
    ...(grace !== undefined && { grace }),
  })
}

function aggregate(node: ProgramNode, from: From, isWindowed: boolean): unknown {
  const stored = { ...callsOf(node), store: isWindowed ? { retention, ...node.store } : { ...node.store } } as object
  const late = node.late ?? 0
  if (node.op === 'reduce') {
    const grouped = from(0) as GroupedStream<Json, Json>
    const reduced = (agg: Json, value: Json) => answer(value, late, () => of(node.reduce, { agg, value }))
    return grouped.reduce(again(node, reduced), stored)
  }
  const fold = again(node, (agg: Json, value: Json, key: Json) =>
    answer(value, late, () => of(node.agg, { agg, value, key })),
  )
  const init = () => of(node.init, {})
  const { merge } = node
  if (merge === undefined) return (from(0) as WindowedStream<Json, Json>).aggregate(init, fold, stored)
  const merging = (l: Json, r: Json, key: Json) => of(merge, { left: l, right: r, key })
  return (from(0) as SessionWindowedStream<Json, Json>).aggregate(init, fold, merging, stored)
}

const told = (n: number): Json => ({ i: n, a: n, g: `g${n % 5}`, h: n % 7 })

/** As those of scenarios and `build.ts`, on records of which some fail. */
function processor(node: ProgramNode, stream: S): unknown {
  const { type, store = '', withinMs = 0, everyMs = 1 } = node.processor ?? { type: '' }
  const kept = keyValueStore<Json, number>(store)
  const { fails } = node
  const check = (value: Json, after: boolean): void => {
    if (fails?.after !== after) return
    const about: Expr = { fn: 'value' }
    of({ fn: 'fail', as: node.id, when: fails.when, about, of: about }, { value })
  }
  const around = (value: Json, put: () => boolean, send: () => unknown): unknown =>
    answer(value, node.late ?? 0, () => {
      check(value, false)
      if (!put()) return undefined
      check(value, true)
      return send()
    })
  const options = { stores: [kept as StoreDeclaration<unknown>] }
  if (type === 'dedupe')
    return stream.process<Json, Json>((context) => {
      const seen = context.store(kept)
      return (value, key, { timestamp }) =>
        around(
          value,
          () => {
            const last = seen.get(key)
            const isNew = key !== null && !(last !== undefined && timestamp - last < withinMs)
            if (isNew) seen.put(key, timestamp)
            return isNew
          },
          () => context.forward(key, value),
        ) as undefined
    }, options)
  if (type === 'countSeen')
    return stream.processValues<Json>((context) => {
      const seen = context.store(kept)
      let n = 0
      return (value, key) =>
        around(
          value,
          () => {
            if (key === null) return false
            n = (seen.get(key) ?? 0) + 1
            seen.put(key, n)
            return true
          },
          () => context.forward({ value, n }),
        ) as undefined
    }, options)
  return stream.process<Json, Json>(
    (context) =>
      timed(
        context,
        kept,
        (value, put) => around(value, put, () => undefined),
        type === 'spans' ? everyMs : undefined,
        withinMs,
      ),
    { timers: true, ...options },
  )
}

/** With `every` a span of time, without it the time since the key's last record. */
function timed(
  context: ProcessorContext<Json, Json, Json>,
  kept: StoreDeclaration<{
    get(key: Json): number | undefined
    put(key: Json, n: number): void
    delete(key: Json): unknown
  }>,
  around: (value: Json, put: () => boolean) => unknown,
  every: number | undefined,
  within: number,
) {
  return {
    process: (value: Json, key: Json, { timestamp }: { readonly timestamp: number }) =>
      around(value, () => {
        if (key === null) return true
        const end = every === undefined ? timestamp + within : timestamp - (timestamp % every) + every
        const id = every === undefined ? key : JSON.stringify([key, end])
        const counts = context.store(kept)
        counts.put(id, (counts.get(id) ?? 0) + 1)
        context.timers.set(id, end)
        return true
      }) as undefined,
    onTimer: (id: Json) => {
      const counts = context.store(kept)
      const n = counts.get(id) ?? 0
      counts.delete(id)
      return context.forward(every === undefined ? id : (JSON.parse(id as string) as [Json])[0], told(n))
    },
  }
}

/** Undefined for a node without such functions. */
export function lateNode(node: ProgramNode, from: From, isWindowed: boolean): unknown {
  if (node.fails !== undefined) return processor(node, from(0) as S)
  if (node.late === undefined) return undefined
  if (node.op === 'aggregate' || node.op === 'reduce') return aggregate(node, from, isWindowed)
  if (node.joiner !== undefined) return join(node, from)
  const parent = from(0)
  return parent instanceof Table ? onTable(node, parent as T) : onStream(node, parent as S)
}
