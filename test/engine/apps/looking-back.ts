/** What processors find of their key in stores that forget, where some records wait for a function. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProcessorContext, defineApp, serdes, sessionStore, windowStore } from 'millrace'

interface Click {
  readonly n: number
  readonly slow: number
}

interface Found {
  readonly windows: readonly number[]
  readonly sessions: readonly number[]
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
      const find = (context: ProcessorContext<string, string, Found>, n: number, key: string, at: number) => {
        if (n === 0) return
        const [byWindow, bySession] = [context.store(windows), context.store(sessions)]
        const found = {
          windows: [...byWindow.fetchRange(key, 0, ever)].map(([, row]) => row.value),
          sessions: [...bySession.findSessions(key, 0, ever)].map(([, , value]) => value),
        }
        byWindow.put(key, n, at)
        bySession.put(key, at, at, n)
        return context.forward(key, found)
      }
      return { find, stores: [windows, sessions] }
    }
    const clicks = topology.stream('clicks', asClicks)
    const behind = finder('behind')
    clicks
      .mapValues(waited)
      .process<string, Found>(
        (context) =>
          ({ n }, key, { timestamp }) =>
            behind.find(context, n, key, timestamp),
        {
          stores: behind.stores,
        },
      )
      .to('behind', asFound)
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
