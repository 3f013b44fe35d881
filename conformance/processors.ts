/** The processors that scenarios name. */
import {
  type KeyValueStore,
  keyValueStore,
  type ProcessorContext,
  type ProcessorFactory,
  type ProcessOptions,
  type StoreDeclaration,
  type TimestampedKeyValueStore,
  type ValueProcessorContext,
  type ValueProcessorFactory,
  type WindowStore,
  windowStore,
} from '../src/index.ts'
import { type Json, jsonOf } from './expr.ts'
import type { ProcessorNode } from './scenario.ts'

export type Factory = ProcessorFactory<Json, Json, Json, Json>
export type ValueFactory = ValueProcessorFactory<Json, Json, Json>
type Context = ProcessorContext<Json, Json, Json>
type ValueContext = ValueProcessorContext<Json, Json>
type Values = KeyValueStore<Json, Json>

export interface StoreUse {
  readonly kind: 'key-value' | 'history'
  readonly retentionMs: number
}

/** Stores of processors, made once a name: nodes that name the same one share it. */
export class ProcessorStores {
  readonly #made = new Map<string, StoreDeclaration<unknown>>()
  readonly uses = new Map<string, StoreUse>()

  keyValue(name: string): StoreDeclaration<Values> {
    return this.#once(name, { kind: 'key-value', retentionMs: 0 }, () => keyValueStore<Json, Json>(name))
  }

  history(name: string, withinMs: number): StoreDeclaration<WindowStore<Json, Json>> {
    const day = 86_400_000
    return this.#once(name, { kind: 'history', retentionMs: withinMs }, () =>
      windowStore<Json, Json>(name, { retention: Math.max(day, withinMs), windowSize: Math.max(1, withinMs) }),
    )
  }

  #once<S>(name: string, use: StoreUse, make: () => StoreDeclaration<S>): StoreDeclaration<S> {
    const known = this.#made.get(name)
    if (known) return known as StoreDeclaration<S>
    const made = make()
    this.#made.set(name, made)
    this.uses.set(name, use)
    return made
  }
}

function dedupe(context: Context, node: ProcessorNode, name: string): ReturnType<Factory> {
  const store = context.store<Values>(name)
  return (value, key, record) => {
    if (key === null) return
    const last = store.get(key)
    if (typeof last === 'number' && record.timestamp - last < (node.withinMs ?? 0)) return
    store.put(key, record.timestamp)
    return context.forward(key, value)
  }
}

function snapshot(context: Context, node: ProcessorNode, name: string): ReturnType<Factory> {
  const store = context.store<Values>(name)
  const clock = node.clock === 'wall' ? 'wall-clock' : 'event-time'
  context.schedule(node.everyMs ?? 1, clock, async (at) => {
    for (const [key, value] of [...store.all()]) {
      await context.forward(key, { at, value }, { timestamp: at })
      if (node.clear) store.delete(key)
    }
  })
  return (value, key) => {
    if (key !== null) store.put(key, value)
  }
}

function expire(context: Context, node: ProcessorNode, name: string): ReturnType<Factory> {
  const store = context.store<Values>(name)
  context.schedule(node.everyMs ?? 1, 'event-time', async (at) => {
    for (const [key, stored] of [...store.all()]) {
      if ((stored as number) + (node.ttlMs ?? 0) > at) continue
      store.delete(key)
      await context.forward(key, null, { timestamp: at })
    }
  })
  return (value, key, record) => {
    if (key === null) return
    store.put(key, record.timestamp)
    return context.forward(key, value)
  }
}

function countdown(context: Context, node: ProcessorNode): ReturnType<Factory> {
  let fired = 0
  const schedule = context.schedule(node.everyMs ?? 1, node.clock === 'wall' ? 'wall-clock' : 'event-time', (at) => {
    fired++
    if (fired >= (node.times ?? 0)) schedule.cancel()
    return context.forward('tick', fired, { timestamp: at })
  })
  return (value, key) => context.forward(key, value)
}

function fanOut(context: Context, node: ProcessorNode): ReturnType<Factory> {
  return async (value, key, record) => {
    for (let i = 0; i < (node.n ?? 0); i++)
      await context.forward(key, { i, value }, { timestamp: record.timestamp + i })
  }
}

function meta(context: Context): ReturnType<Factory> {
  return (_value, key, { topic, partition, offset }) =>
    context.forward(key, { topic, partition, offset, streamTime: context.streamTime(), wallClock: context.wallClock() })
}

/** `timestamped` tells of a store by name whether its rows carry timestamps. */
function lookup(context: Context, name: string, timestamped: (store: string) => boolean): ReturnType<Factory> {
  const find = (key: Json): Json => {
    if (key === null) return null
    if (!timestamped(name)) return context.store<Values>(name).get(key) ?? null
    return context.store<TimestampedKeyValueStore<Json, Json>>(name).get(key)?.value ?? null
  }
  return (value, key) => context.forward(key, { value, found: find(key) })
}

function countSeen(context: ValueContext, name: string): ReturnType<ValueFactory> {
  const store = context.store<Values>(name)
  return (value, key) => {
    if (key === null) return
    const n = ((store.get(key) as number | undefined) ?? 0) + 1
    store.put(key, n)
    return context.forward({ value, n })
  }
}

function history(context: ValueContext, node: ProcessorNode, name: string): ReturnType<ValueFactory> {
  const store = context.store<WindowStore<Json, Json>>(name)
  return (value, key, { timestamp }) => {
    if (key === null) return
    store.put(key, value, timestamp)
    const kept = [...store.fetchRange(key, Math.max(0, timestamp - (node.withinMs ?? 0)), timestamp)]
    return context.forward(kept.map(([at, row]) => [at, jsonOf(row.value)]))
  }
}

export function processorOf(node: ProcessorNode, timestamped: (store: string) => boolean): Factory {
  const name = node.store ?? ''
  return (context) => {
    switch (node.type) {
      case 'dedupe':
        return dedupe(context, node, name)
      case 'snapshot':
        return snapshot(context, node, name)
      case 'expire':
        return expire(context, node, name)
      case 'countdown':
        return countdown(context, node)
      case 'fanOut':
        return fanOut(context, node)
      case 'meta':
        return meta(context)
      default:
        return lookup(context, name, timestamped)
    }
  }
}

export function valueProcessorOf(node: ProcessorNode): ValueFactory {
  const name = node.store ?? ''
  return (context) => (node.type === 'history' ? history(context, node, name) : countSeen(context, name))
}

export function processOptions(
  node: ProcessorNode,
  stores: ProcessorStores,
  name: string | undefined,
): ProcessOptions<Json, Json> {
  // Kafka Streams repartitions nothing before a processor.
  const named = { repartition: false, ...(name !== undefined && { name }) }
  if (node.store === undefined) return named
  if (node.type === 'lookup')
    return node.global ? { ...named, globalStores: [node.store] } : { ...named, stores: [node.store] }
  if (node.type === 'history')
    return { ...named, stores: [stores.history(node.store, node.withinMs ?? 0) as StoreDeclaration<unknown>] }
  return { ...named, stores: [stores.keyValue(node.store) as StoreDeclaration<unknown>] }
}
