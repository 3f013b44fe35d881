/** Loads where it is looked at, and in no thread that is to run it. */
import { isMainThread } from 'node:worker_threads'
import { defineApp, serdes } from 'millrace'

if (!isMainThread) throw new Error('a module is there by half')

export default defineApp({
  applicationId: 'not-in-threads',
  build(topology) {
    const settings = { key: serdes.string, value: serdes.json<number>() }
    topology.stream('times', { ...settings, timestamp: (at) => at }).to('told')
  },
})
