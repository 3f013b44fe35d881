import { defineApp, serdes } from 'millrace'

/** Takes 32-bit integers and refuses 13. */
export default defineApp({
  applicationId: 'numbers',
  build(topology) {
    topology
      .stream('numbers', { key: serdes.string, value: serdes.int32 })
      .mapValues((value) => {
        if (value === 13) throw new RangeError('thirteen is refused')
        return value * 2
      })
      .to('doubled', { value: serdes.int32 })
  },
})
