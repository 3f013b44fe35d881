/** Slow functions of which one record has many called: by what it is made into, or by timers that it brings. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'

/** So many calls, each of which takes so long. */
interface Series {
  readonly by: 'records' | 'timers'
  readonly asynchronous: boolean
  readonly calls: number
  readonly ms: number
}

const now = (): number => performance.timeOrigin + performance.now()

function call({ asynchronous, ms }: Series): number | Promise<number> {
  if (asynchronous) return sleep(ms, ms)
  for (const began = now(); now() < began + ms; );
  return ms
}

export default defineApp({
  applicationId: 'slow-series',
  build(topology) {
    const series = topology.stream('series', { key: serdes.string, value: serdes.json<Series>() })
    series
      .filter(({ by }) => by === 'records')
      .flatMapValues((all) => new Array<Series>(all.calls).fill(all))
      .mapValues(call)
      .to('answers')
    series
      .filter(({ by }) => by === 'timers')
      .process<string, number>(
        ({ timers, forward }) => {
          let last: Series | undefined
          return {
            process(all, key, { timestamp }) {
              last = all
              for (let n = 0; n < all.calls; n++) timers.set(`${key}-${n}`, timestamp + 10 + (n >> 1))
            },
            onTimer(key) {
              const answer = call(last as Series)
              if (typeof answer === 'number') return forward(key as string, answer)
              return answer.then((ms) => forward(key as string, ms))
            },
          }
        },
        { timers: true },
      )
      .to('answers')
  },
})
