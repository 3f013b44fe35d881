/**
 * Counts by key, and behind a re-keying by group. Records may end the thread that runs their function, each but once: a
 * file that the test names says whether it has happened, for the next thread knows nothing of the one before it.
 */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { defineApp, serdes } from 'millrace'

interface Event {
  readonly group: string
  /** `later`: as soon as the file is there. The others: unless it is there. */
  readonly dies?: 'later' | 'timer' | 'exit' | 'rejection' | 'always'
  readonly file?: string
}

function isFirst(file: string): boolean {
  if (existsSync(file)) return false
  writeFileSync(file, '')
  return true
}

function die(): never {
  throw new Error('connection terminated unexpectedly')
}

/** A task in the background that nobody waits for. */
async function refresh(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1))
  throw new Error('the token cannot be refreshed')
}

function meet({ dies, file = '' }: Event): void {
  if (dies === 'always') process.exit(5)
  else if (dies === 'exit' && isFirst(file)) process.exit(7)
  else if (dies === 'timer' && isFirst(file)) setTimeout(die, 1)
  else if (dies === 'rejection' && isFirst(file)) void refresh()
  else if (dies === 'later') {
    setInterval(() => {
      if (!existsSync(file)) return
      rmSync(file)
      die()
    }, 10)
  }
}

export default defineApp({
  applicationId: 'dying-lanes',
  build(topology) {
    const events = topology.stream('events', { key: serdes.string, value: serdes.json<Event>() }).mapValues((event) => {
      meet(event)
      return event
    })
    events.groupByKey().count({ store: 'by-key' }).toStream().to('by-key')
    events
      .groupBy((event) => event.group, { key: serdes.string, value: serdes.json<Event>() })
      .count({ store: 'by-group' })
      .toStream()
      .to('by-group')
  },
})
