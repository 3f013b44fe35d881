/** What the simulated application does, and what its output must be: folds that tell loss, repetition and disorder. */
import { defineApp } from '../../src/dsl/app.ts'
import type { Table } from '../../src/dsl/table.ts'
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

/** Delay of the asynchronous function, set by the world. `value`: which record it is called for. */
export interface Delays {
  next(value?: number): Promise<void> | undefined
}

/** `folds`: each changed row of a table is told once per commit, also to deeper levels and to windows. */
export function application(delays: Delays, folds = false) {
  return defineApp({
    applicationId: 'sim',
    build(topology) {
      const input = topology.stream('in', {
        key: serdes.string,
        value: serdes.json<number>(),
        watermark: { maxOutOfOrderness: outOfOrdernessMs },
      })
      // Everything seen of a key, in order: loss, repetition and reordering all show in the list.
      const seen = input.groupByKey().aggregate(
        () => [] as number[],
        (list, value) => [...list, value],
        { store: 'seen' },
      )
      seen.toStream().to('seen-out')
      if (folds) addBelow(seen)
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
          const wait = delays.next(value)
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

/** What lies below a table that is told once per commit: another table, behind a change of lanes, and windows of its updates. */
function addBelow(seen: Table<string, number[]>): void {
  // Out of the old row, into the new one: an old value that was never told shows in the total.
  seen
    .groupBy((list, key) => [totalOf(key), list.length] as const)
    .aggregate(
      () => 0,
      (total, count) => total + count,
      (total, count) => total - count,
      { store: 'totals' },
    )
    .toStream()
    .to('totals-out')
  // No update comes late, neither here nor behind a change of lanes.
  const told = seen.toStream()
  const windows = tumbling(100)
  told.groupByKey().windowedBy(windows, { emit: 'on-close' }).count({ store: 'told' }).toStream().to('told-out')
  told
    .groupBy((list) => `g${(list?.length ?? 0) % 3}`)
    .windowedBy(windows, { emit: 'on-close' })
    .count({ store: 'told-elsewhere' })
    .toStream()
    .to('told-out')
}

/** The group of a key. */
export const totalOf = (key: string): string => `t${key.charCodeAt(key.length - 1) % 2}`
