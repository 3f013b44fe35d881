/** Asks that change their key and then meet the row of a table, and one topic deeper the list of a group. */
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'

interface Ask {
  readonly n: number
  readonly product: string
}

const asksAs = { key: serdes.string, value: serdes.json<Ask>() }
const rowsAs = { key: serdes.string, value: serdes.json<number>() }
/** An ask is of the group of its number. */
export const groups = 3

/** `wait`: what an ask waits for before it is read; undefined: nothing. */
export function pricedAsks(wait: () => Promise<void> | undefined): Application {
  return defineApp({
    applicationId: 'sim',
    build(topology) {
      const rows = topology.table('rows', rowsAs)
      const priced = topology
        .stream('asks', asksAs)
        .mapValues((ask) => wait()?.then(() => ask) ?? ask)
        .selectKey((ask) => ask.product)
        .leftJoin(rows, (ask, row) => [ask.n, row ?? null] as [number, number | null], asksAs)
      priced.to('priced-out')
      priced
        .groupBy(([n]) => `g${n % groups}`, { key: serdes.string, value: serdes.json<[number, number | null]>() })
        .aggregate(
          () => [] as number[],
          (list, [n]) => [...list, n],
          { store: 'seen' },
        )
        .toStream()
        .to('seen-out')
    },
  })
}
