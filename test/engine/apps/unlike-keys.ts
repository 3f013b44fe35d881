/** Keys of two sides that are written in different ways, and a timestamp function that does not take every value. */
import { defineApp, serdes } from 'millrace'

const timestamp = (value: number): number => {
  if (value === 13) throw new Error('not this one')
  return 1_700_000_000_000 + value
}

export default defineApp({
  applicationId: 'unlike-keys',
  build(topology) {
    const numbers = topology.stream('numbers', { key: serdes.string, value: serdes.json<number>(), timestamp })
    const mods = numbers.selectKey((value) => value % 3, { key: serdes.int32 })
    const rows = topology.table('rows', { key: serdes.json<number>(), value: serdes.json<number>() })
    mods.join(rows, (value, row) => value + row).to('joined')
    const like = topology.table('like', { key: serdes.int32, value: serdes.json<number>() })
    mods.join(like, (value, row) => value + row).to('joined')
    const texts = topology.stream('texts', { key: serdes.json<string>(), value: serdes.json<number>() })
    const timers = numbers.merge(texts).process<string, number>(
      (context) => ({
        process: (_, key, record) => context.timers.set(key, record.timestamp + 5),
        onTimer: (key) => context.forward(key, 1),
      }),
      { name: 'timed', timers: true },
    )
    timers.to('timed')
  },
})
