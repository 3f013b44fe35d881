/** The rows of all stores, as the test driver has them and as a running engine answers, in one form. */
import { setTimeout as sleep } from 'node:timers/promises'
import { canonical, type Json } from '../../../conformance/expr.ts'
import type { Runtime } from '../../../src/runtime/index.ts'
import type { AnyStore, StoreSpec, ValueAndTimestamp } from '../../../src/state/contract.ts'
import type { TopologyTestDriver } from '../../../src/testing/index.ts'

/** By store, sorted: which partition a row lies in follows from its key. */
export type StoreRows = Record<string, string[]>

interface Row {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp?: number | undefined
  readonly start?: number | undefined
  readonly end?: number | undefined
  readonly validTo?: number | undefined
}

const shown = ({ key, value, timestamp, start, end, validTo }: Row): string =>
  canonical(JSON.parse(JSON.stringify({ key, value, timestamp, start, end, validTo })) as Json)

function* rowsOf(spec: StoreSpec, store: AnyStore): Iterable<Row> {
  const size = spec.windowSizeMs ?? 0
  // Each kind of store tells its rows as tuples of its own.
  for (const tuple of store.all() as Iterable<readonly unknown[]>) {
    const [key, second, third, fourth] = tuple
    if (spec.kind === 'session') yield { key, start: second as number, end: third as number, value: fourth }
    else if (spec.kind === 'window') {
      const start = second as number
      const { value, timestamp } = third as ValueAndTimestamp<unknown>
      yield { key, value, start, end: start + size, ...(spec.timestamped && { timestamp }) }
    } else if (spec.kind === 'versioned') {
      const { value, validFrom, validTo } = second as { value: unknown; validFrom: number; validTo?: number }
      yield { key, value, timestamp: validFrom, validTo }
    } else if (spec.timestamped) yield { key, ...(second as ValueAndTimestamp<unknown>) }
    else yield { key, value: second }
  }
}

export function rowsOfDriver(driver: TopologyTestDriver, partitions: number): StoreRows {
  const result: StoreRows = {}
  for (const [name, spec] of driver.topology.stores) {
    const count = driver.topology.globalStores.has(name) ? 1 : partitions
    const rows: string[] = []
    for (let partition = 0; partition < count; partition++)
      for (const row of rowsOf(spec, driver.store(name, partition))) rows.push(shown(row))
    result[name] = rows.sort()
  }
  return result
}

const mostTries = 30

/** Asked again while lanes do not answer: on a busy machine one may wait long for its disk. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if ((error as { code?: string }).code !== 'STORE_UNAVAILABLE' || tries === mostTries) throw error
      await sleep(1000)
    }
  }
}

export async function rowsOfEngine(runtime: Runtime, names: Iterable<string>): Promise<StoreRows> {
  const result: StoreRows = {}
  for (const name of names) {
    const rows = await patiently(() => runtime.store<unknown, unknown>(name).all(Number.MAX_SAFE_INTEGER))
    result[name] = rows.map(shown).sort()
  }
  return result
}
