/** Asynchronous functions of every kind of operator that has one, each with as many calls at once as it may make. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes, tumbling } from 'millrace'

const concurrency = 2

/** In this lane, by function. */
const out = new Map<string, number>()
/** Calls by record, of functions that fail the first time. */
const made = new Map<number, number>()

/** How many calls of the function are out, this one included; it is one of them for a while. */
async function call(of: string): Promise<number> {
  const now = (out.get(of) ?? 0) + 1
  out.set(of, now)
  await sleep(5)
  out.set(of, (out.get(of) ?? 0) - 1)
  return now
}

interface Seen {
  readonly most: number
  readonly count: number
}

const add = (of: string) => async (seen: Seen) => ({
  most: Math.max(seen.most, await call(of)),
  count: seen.count + 1,
})
const none = (): Seen => ({ most: 0, count: 0 })

export default defineApp({
  applicationId: 'bounded-calls',
  config: { 'engine.lanes.count': 1 },
  build(topology) {
    const calls = topology.stream('calls', { key: serdes.string, value: serdes.json<number>() })
    const partners = topology.table('partners', { key: serdes.string, value: serdes.json<number>() })
    calls
      .process<string, number>((context) => async (_n, key) => context.forward(key, await call('process')), {
        concurrency,
      })
      .to('process')
    calls.groupByKey().aggregate(none, add('aggregate'), { concurrency }).toStream().to('aggregate')
    calls
      .groupByKey()
      .windowedBy(tumbling('1d'))
      .aggregate(none, add('window'), { concurrency })
      .toStream()
      .map((seen, { key }) => [key, seen], { key: serdes.string })
      .to('window')
    calls.leftJoin(partners, () => call('table'), { concurrency }).to('table')
    calls.join(calls, () => call('self'), { within: '0ms', concurrency }).to('self')
    const others = topology.stream('others', { key: serdes.string, value: serdes.json<number>() })
    calls.join(others, () => call('stream'), { within: '1h', concurrency }).to('stream')
    const joined = async (n: number): Promise<number> => {
      const before = made.get(n) ?? 0
      made.set(n, before + 1)
      await sleep(1)
      if (before === 0) throw new Error('not at the first time')
      return n
    }
    calls.leftJoin(partners, joined, { breaker: { after: 50, pause: '1ms' } }).to('again')
  },
})
