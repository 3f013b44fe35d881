/** Re-keys for a join. With `?filtered` in its address there is one operator more in front, and generated names move. */
import { defineApp, serdes } from 'millrace'

const filtered = new URL(import.meta.url).searchParams.has('filtered')
const numbers = { key: serdes.string, value: serdes.json<number>() }

export default defineApp({
  applicationId: 'moved-repartition',
  build(topology) {
    const names = topology.table('names', { key: serdes.string, value: serdes.json<string>(), store: 'names' })
    const read = topology.stream('numbers', numbers)
    const all = filtered ? read.filter(() => true) : read
    all
      .selectKey((n) => `mod-${n % 3}`)
      .leftJoin(names, (n, name) => `${name ?? 'nobody'} ${n}`, numbers)
      .to('named')
  },
})
