/** The rows of a program's stores at the end of two runs: what of them is the same in every run. */
import { canonical, type Json } from '../../conformance/expr.ts'
import type { TopologyTestDriver } from '../../src/testing/index.ts'
import type { StoreRows } from '../engine/support/store-rows.ts'
import type { Order } from './growth.ts'

interface Row {
  readonly key: Json
  readonly value: { readonly values?: readonly Json[] } | null
  readonly timestamp?: number
}

/** By store, the node of the program that it belongs to. */
export function ownersOf(driver: TopologyTestDriver): Map<string, string> {
  const owners = new Map<string, string>()
  for (const { name, stores } of driver.topology.nodes)
    for (const store of stores) if (!owners.has(store)) owners.set(store, name.replace(/-cogroup-agg-\d+$/, ''))
  return owners
}

/** A row without what depends on the run; nothing where the whole row does. */
function promisedOf(text: string, store: string, order: Order | undefined): string[] {
  const row = JSON.parse(text) as Row
  // What was told to have no partner is remembered until its task next comes to it.
  if (store.includes('SHARED')) return row.value?.values?.length === 0 ? [] : [text]
  // What waits for its time lies in the order in which it came to its task, by the last bytes of its key.
  if (store.endsWith('-Buffer')) {
    const bytes = Object.values(row.key as Record<string, number>)
    return [canonical({ ...row, key: bytes.slice(0, -placeBytes) } as unknown as Json)]
  }
  if (order !== 'last') return [text]
  const { timestamp: _, ...rest } = row
  return row.value === null ? [] : [canonical(rest as unknown as Json)]
}

const placeBytes = 8

/** One line a store that differs: how much is there, the first rows that are missing or too many. */
export function storeDifferences(
  orders: Readonly<Record<string, Order>>,
  owners: ReadonlyMap<string, string>,
  expected: StoreRows,
  found: StoreRows,
): string[] {
  const lines: string[] = []
  for (const store of new Set([...Object.keys(expected), ...Object.keys(found)])) {
    const owner = owners.get(store) ?? ''
    const rowsOf = (rows: readonly string[] = []): string[] =>
      rows.flatMap((row) => promisedOf(row, store, orders[owner])).sort()
    const [want, got] = [rowsOf(expected[store]), rowsOf(found[store])]
    const at = want.findIndex((row, i) => row !== got[i])
    if (at < 0 && want.length === got.length) continue
    const missing = want.find((row) => !got.includes(row))
    const surplus = got.find((row) => !want.includes(row))
    lines.push(
      `store ${store} of ${owner} (${orders[owner]}): ${want.length} rows expected, ${got.length} found; ` +
        `missing ${missing}, too many ${surplus}`,
    )
  }
  return lines
}
