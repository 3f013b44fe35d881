/** Reads topics by a pattern: what comes is passed on as it came, counted by group, and, where asked, by key. */
import { defineApp, serdes } from 'millrace'

/** Modules are loaded once a process: the test puts what differs from run to run into the address. */
const asked = new URL(import.meta.url).searchParams
const prefix = asked.get('prefix') ?? 'growing'

export default defineApp({
  applicationId: prefix,
  build(topology) {
    const input = topology.stream(new RegExp(`${prefix}-in-.*`), { key: serdes.string, value: serdes.json<number>() })
    input.mapValues((value, _key, record) => ({ value, topic: record.topic })).to(`${prefix}-echo`)
    input
      .groupBy((value) => `mod-${value % 3}`)
      .count({ store: 'groups' })
      .toStream()
      .to(`${prefix}-groups`)
    if (asked.has('keys')) {
      input.groupByKey().count({ store: 'keys' }).toStream().to(`${prefix}-keys`)
    }
  },
})
