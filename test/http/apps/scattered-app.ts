/** Processors that put one key into the store of every partition that they have records of, and versions. */
import { defineApp, keyValueStore, serdes, versionedStore } from 'millrace'

const scattered = { key: serdes.string, value: serdes.json<string>() }
const shared = keyValueStore<string, string>('shared', scattered)
const numbered = keyValueStore<number, string>('numbered', { ...scattered, key: serdes.number })
const versions = versionedStore<string, string>('versions', { ...scattered, historyRetention: '1h' })

export default defineApp({
  applicationId: 'scattered',
  build(topology) {
    topology.stream('events', { key: serdes.string, value: serdes.json<string>() }).process<string, string>(
      (context) => (value, key, record) => {
        for (const name of ['a', 'hot', 'hot@partition:1', '"hot"@partition:1', 'z'])
          context.store(shared).put(name, `${name} of ${context.partition}`)
        context.store(shared).put(key, value)
        context.store(numbered).put(5, `of ${context.partition}`)
        context.store(versions).put(key, value, record.timestamp)
      },
      { stores: [shared, numbered, versions] },
    )
  },
})
