/** What processors find of their key in stores that forget, where some records wait for a function. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessorContext, defineApp, keyValueStore, serdes, sessionStore, windowStore } from 'millrace'

interface Click {
  readonly n: number
  readonly slow: number
}

interface Found {
  readonly windows: readonly number[]
  readonly sessions: readonly number[]
  /** Of the row that is forgotten some time after its update; 0: there is none. */
  readonly row: number
  /** How far event time had come, itself included. */
  readonly time: number
}

const ever = Number.MAX_SAFE_INTEGER
const asClicks = { key: serdes.string, value: serdes.json<Click>(), watermark: { maxOutOfOrderness: '2s' } } as const
const asFound = { key: serdes.string, value: serdes.json<Found>() }

const waited = (click: Click): Click | Promise<Click> => (click.slow > 0 ? sleep(click.slow).then(() => click) : click)

export default defineApp({
  applicationId: 'looking-back',
  build(topology) {
    const finder = (name: string) => {
      const options = { key: serdes.string, value: serdes.number, retention: '10s' } as const
      const windows = windowStore(`${name}-windows`, options)
      const sessions = sessionStore(`${name}-sessions`, options)
      const rows = keyValueStore(`${name}-rows`, { key: serdes.string, value: serdes.number, ttl: '10s' })
      const find = (context: ProcessorContext<string, string, Found>, n: number, key: string, at: number) => {
        if (n === 0) return
        const [byWindow, bySession] = [context.store(windows), context.store(sessions)]
        const found = {
          windows: [...byWindow.fetchRange(key, 0, ever)].map(([, row]) => row.value),
          sessions: [...bySession.findSessions(key, 0, ever)].map(([, , value]) => value),
          row: context.store(rows).get(key) ?? 0,
          time: context.streamTime(),
        }
        context.store(rows).put(key, n)
        byWindow.put(key, n, at)
        bySession.put(key, at, at, n)
        return context.forward(key, found)
      }
      return { find, stores: [windows, sessions, rows] }
    }
    const clicks = topology.stream('clicks', asClicks)
    const behind = finder('behind')
    const slowed = clicks.mapValues(waited)
    slowed
      .process<string, Found>(
        (context) =>
          ({ n }, key, { timestamp }) =>
            behind.find(context, n, key, timestamp),
        {
          stores: behind.stores,
        },
      )
      .to('behind', asFound)
    const counts = slowed.groupByKey().count({ store: { name: 'counts', ttl: '10s' } })
    slowed
      .leftJoin(counts, (_click, count) => count ?? 0)
      .to('counted', { key: serdes.string, value: serdes.json<number>() })
    const within = finder('within')
    clicks
      .process<string, Found>(
        (context) =>
          async (click, key, { timestamp }) => {
            const { n } = await waited(click)
            await within.find(context, n, key, timestamp)
          },
        { stores: within.stores },
      )
      .to('within', asFound)
  },
})
