/** Asks that change their key and then meet the row of a table, and one topic deeper the list of a group. */
import type { EmbeddedCluster } from '../../src/broker/embedded/core/cluster.ts'
import { type Application, defineApp } from '../../src/dsl/app.ts'
import { serdes } from '../../src/serde/index.ts'
import { byKey, committed } from './checkers.ts'

interface Ask {
  readonly n: number
  readonly product: string
}

const asksAs = { key: serdes.string, value: serdes.json<Ask>() }
const rowsAs = { key: serdes.string, value: serdes.json<number>() }
/** An ask is of the group of its number. */
const groups = 3

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

/** What must come of the asks, each of which meets the row that was there at its time. */
export class PricedAnswers {
  readonly #rows = new Map<string, number>()
  readonly #expected = new Map<string, string[]>()

  row(product: string, n: number): void {
    this.#rows.set(product, n)
  }

  ask(product: string, n: number): void {
    this.#expect(`priced-out ${product}`, JSON.stringify([n, this.#rows.get(product) ?? null]))
    this.#expect(`seen-out g${n % groups}`, String(n))
  }

  #expect(name: string, result: string): void {
    const known = this.#expected.get(name)
    if (known) known.push(result)
    else this.#expected.set(name, [result])
  }

  /** By topic and key, where the topics say something else. */
  async differences(cluster: EmbeddedCluster): Promise<string[]> {
    const differences: string[] = []
    for (const [name, expected] of this.#expected) {
      const [topic, key] = name.split(' ') as [string, string]
      const records = byKey(await committed(cluster, topic), (record) => record.key.toString()).get(key) ?? []
      const values = records.map((record) => String(record.value))
      const actual = topic === 'seen-out' ? (JSON.parse(values.at(-1) ?? '[]') as number[]).map(String) : values
      const at = expected.findIndex((each, i) => each !== actual[i])
      if (at < 0 && actual.length === expected.length) continue
      const found = `found ${actual[at]} of ${actual.length}`
      differences.push(`${name}: at ${at} of ${expected.length} expected ${expected[at]}, ${found}`)
    }
    return differences
  }
}
