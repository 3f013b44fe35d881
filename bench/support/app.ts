/**
 * The workloads, chosen by `BENCH_WORKLOAD`; topics come from `BENCH_IN`, `BENCH_TABLE` and `BENCH_OUT`, so that every
 * thread that loads this module builds the same topology.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, keyValueStore, serdes, type Topology, tumbling } from '../../src/index.ts'
import type { Event, User } from './events.ts'
import { eventSerdes, type Format, type SlowEvent } from './formats.ts'

const workload = process.env.BENCH_WORKLOAD ?? 'map'
const input = process.env.BENCH_IN ?? 'ev'
const table = process.env.BENCH_TABLE ?? 'users'
const output = process.env.BENCH_OUT ?? 'out'
const callMs = Number(process.env.BENCH_IO_MS ?? 5)
const storeCount = Number(process.env.BENCH_STORES ?? 1)

/** Cuts the sum of a user's windows every ten seconds of event time. */
const windowSize = '10s'

const text = { key: serdes.string }
const format = (process.env.BENCH_FORMAT ?? 'json') as Format
const { event, slow } = eventSerdes(format)
const events = { ...text, value: event }
/** A message of Protobuf says of which type it is: its copy must not. */
const slowEvent: (event: Event) => SlowEvent =
  format === 'protobuf'
    ? ({ user, page, ms, ts, ok }) => ({ user, page, ms, ts, ok, slow: ms > 2500 })
    : (event) => ({ ...event, slow: event.ms > 2500 })
const raw = { ...text, value: serdes.bytes }

const builders: Record<string, (topology: Topology) => void> = {
  map: (topology) =>
    topology
      .stream(input, events)
      .mapValues((event) => slowEvent(event))
      .filter((event) => event.ok)
      .to(output, { value: slow }),
  count: (topology) =>
    topology
      .stream(input, raw)
      .groupByKey()
      .count({ store: { name: 'counts', value: serdes.count } })
      .toStream()
      .to(output),
  'rekey-count': (topology) =>
    topology
      .stream(input, events)
      .groupBy((event) => event.page, text)
      .count({ store: { name: 'counts', value: serdes.count } })
      .toStream()
      .to(output),
  window: (topology) =>
    topology
      .stream(input, events)
      .groupByKey()
      .windowedBy(tumbling(windowSize), { emit: 'on-close' })
      .aggregate(
        () => 0,
        (sum, event) => sum + event.ms,
        { store: { name: 'sums', value: serdes.count } },
      )
      .toStream()
      .map((sum, window): readonly [string, unknown] => [window.key, { user: window.key, start: window.start, sum }])
      .to(output, { key: serdes.string, value: serdes.json<unknown>() }),
  join: (topology) => {
    const users = topology.table(table, { ...text, value: serdes.json<User>(), store: 'users' })
    topology
      .stream(input, events)
      .join(users, (event, { tier, country }) => ({ ...event, tier, country }))
      .to(output)
  },
  /** By page, and then joined with a table of pages: the two meet behind a change of lanes, in the order of event time. */
  'rekey-join': (topology) => {
    const pages = topology.table(table, { ...text, value: serdes.json<User>(), store: 'pages' })
    topology
      .stream(input, events)
      .selectKey((event) => event.page)
      .join(pages, (event, { tier, country }) => ({ ...event, tier, country }), text)
      .to(output)
  },
  /** Each record changes one store of many, by its key. */
  stores: (topology) => {
    const stores = Array.from({ length: storeCount }, (_, i) =>
      keyValueStore<string, number>(`counts-${i}`, { key: serdes.string, value: serdes.count }),
    )
    topology
      .stream(input, raw)
      .process<string, number>(
        (context) => {
          const open = stores.map((store) => context.store(store))
          return (_, key) => {
            const store = open[Number(key.slice(1)) % open.length] as (typeof open)[number]
            const count = (store.get(key) ?? 0) + 1
            store.put(key, count)
            return context.forward(key, count)
          }
        },
        { stores, key: serdes.string, value: serdes.count },
      )
      .to(output)
  },
  'slow-io': (topology) =>
    topology
      .stream(input, raw)
      .mapValues(async (value) => {
        await sleep(callMs)
        return value
      })
      .to(output, raw),
}
builders.latency = builders['rekey-count'] as (topology: Topology) => void

export const workloads = Object.keys(builders)

export default defineApp({
  applicationId: process.env.BENCH_APPLICATION ?? 'bench',
  build: builders[workload] ?? (builders.map as (topology: Topology) => void),
})
