/** Every kind of store that the DSL makes, and a function that fails when it is told to. */
import { defineApp, serdes, session, tumbling } from 'millrace'

export interface Event {
  readonly amount: number
  readonly fail?: boolean
}

export default defineApp({
  applicationId: 'data',
  build(topology) {
    const events = topology.stream('events', { key: serdes.string, value: serdes.json<Event>() }).mapValues((event) => {
      if (event.fail === true) throw new TypeError(`cannot take ${event.amount}`)
      return event
    })
    events.groupByKey().count({ store: 'counts' }).toStream().to('counted')
    events
      .groupByKey()
      .windowedBy(tumbling('10s', { grace: '1h' }))
      .count({ store: 'by-window' })
    events
      .groupByKey()
      .windowedBy(session('5s', { grace: '1h' }))
      .count({ store: 'by-session' })
    events.groupBy((event) => event.amount, { key: serdes.json<number>() }).count({ store: 'by-amount' })
  },
})
