/** Airports that fall silent: no departure for two days. A timer of each airport runs out, unless a flight sets it anew. */
import { defineApp, serdes } from 'millrace'
import type { Departure } from '../datasets.ts'

export const silentAfterMs = 2 * 86_400_000

export interface Silence {
  readonly since: number
}

export default defineApp({
  applicationId: 'alerts',
  build(topology) {
    topology
      .stream('departures', { key: serdes.string, value: serdes.json<Departure>() })
      .processValues<Silence>(
        ({ timers, forward }) => ({
          process: (_flight, airport, { timestamp }) => {
            // Event time moves with records: the flight that ends the silence may be the first to pass its time.
            const due = timers.get(airport)
            timers.set(airport, timestamp + silentAfterMs)
            if (due !== undefined && due <= timestamp) return forward({ since: due - silentAfterMs })
          },
          onTimer: (_airport, atMs) => forward({ since: atMs - silentAfterMs }),
        }),
        { timers: true },
      )
      .to('silences')
  },
})
