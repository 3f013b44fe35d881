/** A program as an application: what scenarios know by their builder, asynchronous functions and timers besides. */
import { type Expr, evaluate, type Json, jsonOf } from '../../conformance/expr.ts'
import { ScenarioBuilder, type SpecialNodes } from '../../conformance/build.ts'
import type { ScenarioNode } from '../../conformance/scenario.ts'
import {
  keyValueStore,
  type ProcessorContext,
  type StoreDeclaration,
  type StoreSettings,
  type Stream,
  type Table,
  type Topology,
} from '../../src/index.ts'
import { lateNode } from './late.ts'
import { disorderOf, outOfOrdernessMs, type Program, type ProgramNode } from './program.ts'

type S = Stream<Json, Json>

/** How long a function takes is waited for with this. */
export type Wait = (ms: number) => Promise<unknown>

const byTheClock: Wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** A different delay for each value, and none for many; the same in every run. */
async function slowly<T>(answer: T, value: Json, upToMs: number, wait: Wait): Promise<T> {
  const by = Number((value as { i?: number } | null)?.i ?? 0) % 7
  if (by > 2) await wait((by * upToMs) / 7)
  return answer
}

const expressed = (expr: Expr | undefined, value: Json, key: Json): Json =>
  evaluate(expr as Expr, { value: jsonOf(value), key: jsonOf(key) })

function slowNode(node: ProgramNode, from: (index: number) => unknown, wait: Wait): unknown {
  const stream = from(0) as S
  const slow = node.slow ?? 0
  switch (node.op) {
    case 'mapValues':
      return stream.mapValues((value, key) => slowly(expressed(node.value, value, key), value, slow, wait))
    case 'filter':
      return stream.filter((value, key) => slowly(expressed(node.pred, value, key) === true, value, slow, wait))
    case 'selectKey':
      return stream.selectKey((value, key) => slowly(expressed(node.key, value, key), value, slow, wait))
    default:
      return undefined
  }
}

const told = (n: number): Json => ({ i: n, a: n, g: `g${n % 5}`, h: n % 7 })

/** The processors with timers; `processors.ts` of the model has the same. */
function timed(node: ProgramNode, from: (index: number) => unknown): unknown {
  const { type, everyMs = 1, withinMs = 0, store = '' } = node.processor ?? { type: '' }
  const stream = from(0) as S
  const counts = keyValueStore<Json, number>(store)
  const count = (context: ProcessorContext<Json, Json, Json>, id: Json): void => {
    const kept = context.store(counts)
    kept.put(id, (kept.get(id) ?? 0) + 1)
  }
  const take = (context: ProcessorContext<Json, Json, Json>, id: Json): number => {
    const kept = context.store(counts)
    const n = kept.get(id) ?? 0
    kept.delete(id)
    return n
  }
  const options = { timers: true, stores: [counts as StoreDeclaration<unknown>] }
  if (type === 'spans') {
    return stream.process<Json, Json>(
      (context) => ({
        process: (_value, key, { timestamp }) => {
          if (key === null) return
          const end = timestamp - (timestamp % everyMs) + everyMs
          const id = JSON.stringify([key, end])
          count(context, id)
          context.timers.set(id, end)
        },
        onTimer: (id) => context.forward((JSON.parse(id as string) as [Json])[0], told(take(context, id))),
      }),
      options,
    )
  }
  return stream.process<Json, Json>(
    (context) => ({
      process: (_value, key, { timestamp }) => {
        if (key === null) return
        count(context, key)
        context.timers.set(key, timestamp + withinMs)
      },
      onTimer: (key) => context.forward(key, told(take(context, key))),
    }),
    options,
  )
}

const timeOf = ({ timed: by }: Program, topics: string | readonly string[]): object =>
  by?.includes(String(topics)) ? { timestamp: (value: Json) => (value as { t?: number } | null)?.t } : {}

function special(program: Program, wait: Wait): SpecialNodes {
  const windowed = new Set(program.nodes.flatMap(({ id, op }) => (op === 'windowedBy' ? [id] : [])))
  const nulls = program.nulls === undefined ? {} : ({ tombstones: true } as const)
  return (topology: Topology, plain: ScenarioNode, from) => {
    const node = plain as ProgramNode
    const watermark = { maxOutOfOrderness: outOfOrdernessMs(disorderOf(program, node.topic ?? '')) }
    if (node.op === 'stream') {
      const topics = node.topics ?? node.topic ?? ''
      return topology.stream<Json, Json>(topics as string, { watermark, ...nulls, ...timeOf(program, topics) }) as S
    }
    if (node.op === 'table') {
      const { name, type, historyRetentionMs: historyRetention } = node.store ?? {}
      const versions = type === undefined ? {} : { type, historyRetention }
      const store = name === undefined ? {} : { store: { name, ...versions } as StoreSettings<Json, Json> }
      const tells = node.tells ? { emit: node.tells } : {}
      return topology.table<Json, Json>(node.topic ?? '', { watermark, ...store, ...tells }) satisfies Table<Json, Json>
    }
    const late = lateNode(node, from, windowed.has(String(node.from)))
    if (late !== undefined) return late
    if (node.slow !== undefined) return slowNode(node, from, wait)
    if (node.processor?.type === 'spans' || node.processor?.type === 'quiet') return timed(node, from)
    return undefined
  }
}

export function buildProgram(program: Program, topology: Topology, wait = byTheClock): void {
  const scenario = { name: `seed ${program.seed}`, topology: { nodes: program.nodes } }
  new ScenarioBuilder(scenario, special(program, wait)).build(topology)
}
