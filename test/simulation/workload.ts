/** What the simulated application does, and what its output must be: folds that tell loss, repetition and disorder. */
import { defineApp } from '../../src/dsl/app.ts'
import { tumbling } from '../../src/dsl/windows.ts'
import { serdes } from '../../src/serde/index.ts'

export const windowMs = 1000
export const graceMs = 200
export const outOfOrdernessMs = 100

export interface Input {
  readonly key: string
  readonly value: number
  readonly timestamp: number
  readonly partition: number
}

/** Delay of the asynchronous function, set by the world. */
export interface Delays {
  next(): Promise<void> | undefined
}

export function application(delays: Delays) {
  return defineApp({
    applicationId: 'sim',
    build(topology) {
      const input = topology.stream('in', {
        key: serdes.string,
        value: serdes.json<number>(),
        watermark: { maxOutOfOrderness: outOfOrdernessMs },
      })
      // Everything seen of a key, in order: loss, repetition and reordering all show in the list.
      input
        .groupByKey()
        .aggregate(
          () => [] as number[],
          (list, value) => [...list, value],
          { store: 'seen' },
        )
        .toStream()
        .to('seen-out')
      // A re-keyed sum: crosses lanes.
      input
        .groupBy((value) => `g${value % 3}`)
        .aggregate(
          () => 0,
          (sum, value) => sum + value,
          { store: 'sums' },
        )
        .toStream()
        .to('sums-out')
      // An asynchronous function with order per key.
      input
        .mapValues((value) => {
          const wait = delays.next()
          return wait ? wait.then(() => value) : value
        })
        .to('echo-out')
      // One final result for each window, behind a change of lanes: nothing may come after it.
      input
        .groupBy((value) => `g${value % 3}`)
        .windowedBy(tumbling(windowMs, { grace: graceMs }))
        .count({ store: 'finals' })
        .suppress({ until: 'window-closes' })
        .toStream()
        .to('finals-out')
      // Updates of windows.
      input
        .groupByKey()
        .windowedBy(tumbling(windowMs, { grace: graceMs }))
        .count({ store: 'windows' })
        .toStream()
        .to('windows-out')
    },
  })
}
