/** Tables that are told late, or by window, joined by a foreign key. */
import { defineApp, serdes, session, type Table, tumbling, type Windowed } from 'millrace'

export interface Visit {
  readonly i: number
}

export default defineApp({
  applicationId: 'held-references',
  build(topology) {
    const rows = { key: serdes.string, value: serdes.json<Visit>() }
    const text = { key: serdes.string, value: serdes.json<number>() }
    const visits = topology.stream('visits', rows)
    const names = topology.table('names', rows)
    const on = (n: number): string => `r${n % 3}`
    const tell = (name: string, counts: Table<Windowed<string>, number>): void => {
      const key = (_: unknown, { key: inner, start, end }: Windowed<string>): string => `${inner}@${start}-${end}`
      counts.toStream().selectKey(key).to(`${name}-told`, text)
      const joined = counts.leftJoin(names, (n) => n, { on })
      joined.toStream().selectKey(key).to(`${name}-joined`, text)
    }
    const counted = visits.groupByKey()
    tell('windows', counted.windowedBy(tumbling('1s')).count())
    tell('final', counted.windowedBy(tumbling('1s'), { emit: 'on-close' }).count())
    tell('sessions', counted.windowedBy(session('200ms')).count())
    const held = visits.toTable().suppress({ until: '300ms' })
    held
      .mapValues(({ i }) => i)
      .toStream()
      .to('held-told', text)
    held
      .leftJoin(names, ({ i }) => i, { on: ({ i }) => on(i) })
      .toStream()
      .to('held-joined', text)
    // The same, and nothing hangs on it.
    visits
      .toTable()
      .suppress({ until: '300ms' })
      .toStream()
      .mapValues((visit) => visit?.i ?? -1)
      .to('alone-told', text)
  },
})
