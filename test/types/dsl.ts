/** Checked by the compiler alone: what types the operators infer, and what they refuse. */
import {
  defineApp,
  type KeyValueStore,
  keyValueStore,
  type Serde,
  session,
  type Stream,
  serdes,
  type Table,
  type Topology,
  tumbling,
  type Windowed,
} from '../../src/index.ts'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <A, B>(_holds: Same<A, B>): void => undefined

interface Flight {
  readonly origin: string
  readonly delay: number
}
interface Airport {
  readonly city: string
}

declare const topology: Topology

const flights = topology.stream('flights', { key: serdes.string, value: serdes.json<Flight>() })
same<typeof flights, Stream<string, Flight>>(true)
same<ReturnType<typeof flights.groupByKey> extends { count(): infer T } ? T : never, Table<string, number, never>>(true)

const withTombstones = topology.stream('flights', { value: serdes.json<Flight>(), tombstones: true })
same<typeof withTombstones, Stream<string, Flight | null>>(true)
const without = withTombstones.filter((flight) => flight !== null)
same<typeof without, Stream<string, Flight>>(true)
// @ts-expect-error: it may be null
withTombstones.mapValues((flight) => flight.delay)
topology.stream('flights', {
  value: serdes.json<Flight>(),
  tombstones: true,
  // @ts-expect-error: so may the value that gives the time
  timestamp: (flight) => flight.delay,
})

const delays = flights.filter((flight) => flight.delay > 15).mapValues((flight) => flight.delay)
same<typeof delays, Stream<string, number>>(true)
const looked = flights.mapValues(async (flight) => ({ ...flight, at: Date.now() }))
same<typeof looked extends Stream<string, infer V> ? V : never, { at: number; origin: string; delay: number }>(true)
const pairs = flights.map((flight) => [flight.delay, flight.origin] as const)
same<typeof pairs, Stream<number, string>>(true)
const many = flights.flatMapValues((flight) => [flight.delay, flight.origin])
same<typeof many, Stream<string, string | number>>(true)
const rekeyed = flights.selectKey((flight) => flight.delay)
same<typeof rekeyed, Stream<number, Flight>>(true)
flights.filter((flight, _key, record, context) => flight.delay > record.partition + context.partition)
const narrowed = many.filter((value): value is number => typeof value === 'number')
same<typeof narrowed, Stream<string, number>>(true)

const counts = flights
  .groupBy((flight) => flight.origin)
  .windowedBy(tumbling('1h'))
  .count({ store: 'counts' })
same<typeof counts, Table<Windowed<string>, number, never>>(true)
const sessions = flights
  .groupByKey()
  .windowedBy(session('5m'))
  .aggregate(
    () => [] as number[],
    (list, flight) => [...list, flight.delay],
    (left, right) => [...left, ...right],
  )
same<typeof sessions, Table<Windowed<string>, number[]>>(true)

const airports = topology.table('airports', { key: serdes.string, value: serdes.json<Airport>() })
const named = flights.join(airports, (flight, airport) => `${flight.origin} ${airport.city}`)
same<typeof named, Stream<string, string>>(true)
const perhaps = flights.leftJoin(airports, (flight, airport) => airport?.city ?? flight.origin)
same<typeof perhaps, Stream<string, string>>(true)
const both = flights.outerJoin(delays, (flight, delay) => [flight?.origin, delay] as const, { within: '5m' })
same<typeof both, Stream<string, readonly [string | undefined, number | null]>>(true)
const cities = airports.groupBy((airport) => [airport.city, 1] as const).count()
same<typeof cities, Table<string, number, never>>(true)

// Updates of a table have null values where its rows may be deleted, and nowhere else.
const updates = airports.toStream()
same<typeof updates, Stream<string, Airport | null>>(true)
updates.to('airports-again', { value: serdes.json<Airport>() })
const perHour = counts.toStream()
same<typeof perHour, Stream<Windowed<string>, number>>(true)
const visits = sessions.toStream()
same<typeof visits, Stream<Windowed<string>, number[] | null>>(true)
const finals = sessions.suppress({ until: 'window-closes' }).toStream()
same<typeof finals, Stream<Windowed<string>, number[]>>(true)
const busy = counts.filter((count) => count > 10).toStream()
same<typeof busy, Stream<Windowed<string>, number | null>>(true)
// @ts-expect-error a deleted row has no city
updates.mapValues((airport) => airport.city)
// No aggregate and no table has them: they are left out there.
const perCity = updates.groupBy((airport) => airport?.city ?? '').reduce((_, airport) => airport)
same<typeof perCity, Table<string, Airport, never>>(true)
same<ReturnType<typeof updates.toTable>, Table<string, Airport>>(true)
const asTable: Table<string, number> = cities
void asTable
const byForeignKey = counts.join(airports, (count, airport) => `${airport.city} ${count}`, {
  on: (_count, window) => window.key,
})
same<typeof byForeignKey, Table<Windowed<string>, string>>(true)
const bySameKeyType = airports.leftJoin(airports, (left, right) => [left.city, right?.city] as const, {
  on: (airport) => airport.city,
})
same<typeof bySameKeyType, Table<string, readonly [string, string | undefined]>>(true)

const { late, rest } = flights.split({ late: (flight) => flight.delay > 15 }, { default: 'rest' })
same<typeof late, Stream<string, Flight>>(true)
same<typeof rest, Stream<string, Flight>>(true)
interface Delayed extends Flight {
  readonly reason: string
}
const isDelayed = (flight: Flight): flight is Delayed => 'reason' in flight
const byReason = flights.split({
  guarded: isDelayed,
  written: (flight): flight is Delayed => isDelayed(flight),
  named: { when: isDelayed, name: 'delayed' },
  both: { when: (flight): flight is Delayed => isDelayed(flight) },
  condition: { when: (flight) => flight.delay > 15, name: 'late' },
  optional: (flight) => (flight as Partial<Delayed>).reason?.startsWith('w'),
})
same<typeof byReason.guarded, Stream<string, Delayed>>(true)
same<typeof byReason.written, Stream<string, Delayed>>(true)
same<typeof byReason.named, Stream<string, Delayed>>(true)
same<typeof byReason.both, Stream<string, Delayed>>(true)
same<typeof byReason.condition, Stream<string, Flight>>(true)
same<typeof byReason.optional, Stream<string, Flight>>(true)
flights.filter((flight) => (flight as Partial<Delayed>).reason?.startsWith('w'))

const seen = keyValueStore<string, number>('seen')
const processed = flights.process<string, number>(
  (context) => {
    const store = context.store(seen)
    same<typeof store, KeyValueStore<string, number>>(true)
    return (flight, key) => {
      store.put(key, flight.delay)
      return context.forward(key, store.get(key) ?? 0)
    }
  },
  { stores: [seen] },
)
same<typeof processed, Stream<string, number>>(true)

const app = defineApp({ applicationId: 'typed', build: (t) => t.stream('in').to('out') })
same<typeof app.applicationId, string>(true)

// What does not fit does not compile.
// @ts-expect-error the value has no such field
flights.filter((flight) => flight.delays > 15)
// @ts-expect-error a map gives a pair of key and value
flights.map((flight) => flight.delay)
// @ts-expect-error the keys differ
rekeyed.join(airports, (flight, airport) => `${flight.origin} ${airport.city}`)
// @ts-expect-error a join of two streams needs a window
flights.join(delays, (flight, delay) => flight.delay + delay)
// @ts-expect-error the right side may be missing
flights.leftJoin(airports, (_flight, airport) => airport.city)
// @ts-expect-error the serde is of another type
flights.to('out', { value: serdes.string })
const inSessions = flights.groupByKey().windowedBy(session('5m'))
const zero = (): number => 0
// @ts-expect-error an aggregate over sessions needs a way to merge two of them
inSessions.aggregate(zero, (sum: number) => sum + 1)
// @ts-expect-error a table is not a stream
airports.selectKey((airport) => airport.city)
// @ts-expect-error the branch was not declared
flights.split({ late: (flight) => flight.delay > 15 }).early
// @ts-expect-error the store holds numbers
flights.process((context) => (_flight, key) => context.store(seen).put(key, 'text'), { stores: [seen] })
// @ts-expect-error a fold keeps the type of its aggregate
flights.groupByKey().aggregate(zero, (sum, flight) => `${sum} ${flight.delay}`)

export type Unused = Serde<unknown>
