import { defineApp, serdes } from '../../../src/index.ts'

export default defineApp({
  applicationId: 'logging',
  config: { 'log.levels': 'app=debug' },
  build: (topology) =>
    topology
      .stream('in', { key: serdes.string, value: serdes.number })
      .mapValues(
        (value, key, _record, { logger }) => {
          logger.debug({ key }, `value ${value}`)
          return value
        },
        { name: 'named' },
      )
      .to('out'),
})
