/**
 * Earthquakes of one week: swarms of shocks in each region, and how many shocks any hour around has seen.
 *
 * Shocks less than two hours apart belong to one swarm: a session. It is told once, when nothing can join it any more.
 */
import { defineApp, serdes, session, sliding } from 'millrace'

export interface Shock {
  readonly magnitude: number
  readonly place: string
}

export interface Swarm {
  readonly shocks: number
  readonly strongest: number
  readonly place: string
}

/** A swarm has at least so many shocks. */
export const swarmFrom = 5

const none: Swarm = { shocks: 0, strongest: Number.NEGATIVE_INFINITY, place: '' }

function stronger(a: Swarm, b: Swarm): Swarm {
  const { strongest, place } = b.strongest > a.strongest ? b : a
  return { shocks: a.shocks + b.shocks, strongest, place }
}

export default defineApp({
  applicationId: 'earthquakes',
  build(topology) {
    const shocks = topology
      .stream('shocks', {
        key: serdes.string,
        value: serdes.json<Shock>(),
        watermark: { maxOutOfOrderness: '5m' },
      })
      .groupByKey()

    shocks
      .windowedBy(session('2h', { grace: '5m' }), { emit: 'on-close' })
      .aggregate(
        () => none,
        (swarm, { magnitude, place }) => stronger(swarm, { shocks: 1, strongest: magnitude, place }),
        (left, right) => stronger(left, right),
        { store: 'swarms' },
      )
      .toStream()
      .filter((swarm) => swarm !== null && swarm.shocks >= swarmFrom)
      .to('swarms')

    shocks
      .windowedBy(sliding('1h', { grace: '5m' }), { emit: 'on-close' })
      .count({ store: 'shocks-within-an-hour' })
      .toStream()
      .to('shocks-within-an-hour')
  },
})
