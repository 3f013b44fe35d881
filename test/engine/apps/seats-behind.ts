/** A table that forgets, joined again with what follows from it behind a re-key. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

interface Seat {
  readonly n: number
  readonly beside: string
  readonly slow?: number
}

export default defineApp({
  applicationId: 'seats-behind',
  build(topology) {
    const seats = topology.table('seats', {
      key: serdes.string,
      value: serdes.json<Seat>(),
      store: { name: 'seats', ttl: '10s' },
    })
    seats
      .toStream()
      .mapValues((seat) => (seat?.slow ? sleep(seat.slow).then(() => seat) : seat))
      .filter((seat) => seat !== null)
      .selectKey((seat) => seat.beside)
      .leftJoin(seats, (seat, beside) => `${seat.n}:${beside?.n ?? 'nobody'}`)
      .to('pairs', { key: serdes.string, value: serdes.json<string>() })
  },
})
