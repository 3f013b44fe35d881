import { defineApp, type Logger, serdes } from '../../../src/index.ts'

/** What nobody checks the types of. */
interface Untyped {
  warn(...words: readonly unknown[]): void
}

export default defineApp({
  applicationId: 'logging-oddly',
  build: (topology) =>
    topology.stream('in', { key: serdes.string, value: serdes.string }).foreach((value, _key, _record, { logger }) => {
      const untyped: Logger & Untyped = logger
      if (value === 'error as sentence') untyped.warn({ step: 1 }, new Error('no room left'))
      else if (value === 'number alone') untyped.warn(42)
      else if (value === 'nothing') untyped.warn(null, undefined)
      else logger.error({ given: { text: value } }, 'a secret')
      if (value.includes('@')) logger.error(new Error(`cannot reach ${value}`))
    }),
})
