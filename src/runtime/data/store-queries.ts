/** The caller's part of interactive queries: asks every lane for the rows of committed state that it holds. */
import type { Worker } from 'node:worker_threads'
import { EngineError, fromWireError } from '../../base/errors.ts'
import type { LaneAnswer, LaneQuery } from '../../lanes/protocol.ts'
import type { StoreQuery, StoreRow } from '../../lanes/stores/store-query.ts'
import { whenKnown } from '../../serde/when-known.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { StoreEntry, StoreReader } from '../contract.ts'

const answerWithinMs = 10_000
const defaultLimit = 10_000

interface Question {
  readonly store: string
  readonly rows: StoreRow[]
  readonly waiting: Set<number>
  count: number
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** Asks the lanes and puts their answers together. */
export class LaneQueries {
  readonly #lanes: readonly Worker[]
  readonly #questions = new Map<number, Question>()
  /** Lanes whose thread has ended. */
  readonly #gone = new Set<number>()
  #id = 0

  /** `lanes`: those that there are, when they are asked. */
  constructor(lanes: readonly Worker[]) {
    this.#lanes = lanes
  }

  /** The rows that its thread had in memory are gone, and nobody answers for them until there is another one. */
  laneEnded(lane: number): void {
    this.#gone.add(lane)
    for (const { store, waiting, reject } of this.#questions.values()) if (waiting.has(lane)) reject(ended(store, lane))
  }

  laneMade(lane: number): void {
    this.#gone.delete(lane)
  }

  async ask(store: string, query: StoreQuery, limit: number): Promise<{ rows: StoreRow[]; count: number }> {
    for (const lane of this.#gone) throw ended(store, lane)
    const id = ++this.#id
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiting = new Set(this.#lanes.keys())
    const question: Question = { store, rows: [], waiting, count: 0, resolve, reject }
    this.#questions.set(id, question)
    const timer = setTimeout(() => reject(silent(store, [...waiting])), answerWithinMs)
    const message: LaneQuery = { type: 'query', id, store, query, limit }
    for (const worker of this.#lanes) worker.postMessage(message)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      this.#questions.delete(id)
    }
    return { rows: question.rows, count: question.count }
  }

  answered(lane: number, { id, rows, count, error }: LaneAnswer): void {
    const question = this.#questions.get(id)
    if (!question?.waiting.delete(lane)) return
    if (error !== undefined) {
      question.reject(fromWireError(error))
      return
    }
    question.rows.push(...rows)
    question.count += count
    if (question.waiting.size === 0) question.resolve()
  }
}

function ended(store: string, lane: number): EngineError {
  const why = `the thread of lane-${lane} has ended, and the engine restarts in place: ask again when it runs`
  return new EngineError('STORE_UNAVAILABLE', `the store ${store} cannot be read: ${why}`)
}

function silent(store: string, lanes: readonly number[]): EngineError {
  const names = lanes.map((lane) => `lane-${lane}`).join(', ')
  return new EngineError(
    'STORE_UNAVAILABLE',
    `${names} did not answer a query of the store ${store} within ${answerWithinMs} ms: a function of the application may be at work`,
  )
}

/** An entry with the partition it lies in. */
export type PlacedEntry = StoreEntry<unknown, unknown> & { readonly partition: number }

/** What people are shown page by page: a key may have a row in each partition. */
export interface StorePages extends StoreReader<unknown, unknown> {
  /** As `range`, of the first key those rows alone that lie in `partition` or a later one. */
  pageFrom(from: unknown, partition: number, to: unknown, limit: number): Promise<PlacedEntry[]>
  /** As `get`, with all that the store knows of it. */
  entriesOf(key: unknown, limit: number): Promise<Array<StoreEntry<unknown, unknown>>>
}

export class StoreQueries<K, V> implements StoreReader<K, V> {
  readonly #spec: StoreSpec
  readonly #ask: (query: StoreQuery, limit: number) => Promise<{ rows: StoreRow[]; count: number }>

  constructor(
    spec: StoreSpec,
    ask: (query: StoreQuery, limit: number) => Promise<{ rows: StoreRow[]; count: number }>,
  ) {
    this.#spec = spec
    this.#ask = ask
  }

  async get(key: K): Promise<V | undefined> {
    const [entry] = await this.#entries({ kind: 'get', key: this.#key(key) }, 1)
    return entry?.value
  }

  range(from?: K, to?: K, limit = defaultLimit): Promise<Array<StoreEntry<K, V>>> {
    const bound = (key: K | undefined): Uint8Array | null => (key === undefined ? null : this.#key(key))
    return this.#entries({ kind: 'range', from: bound(from), to: bound(to) }, limit)
  }

  all(limit = defaultLimit): Promise<Array<StoreEntry<K, V>>> {
    return this.#entries({ kind: 'range', from: null, to: null }, limit)
  }

  async pageFrom(from: K | undefined, partition: number, to: K | undefined, limit: number): Promise<PlacedEntry[]> {
    const [first, last] = [from, to].map((key) => (key === undefined ? null : this.#key(key))) as [
      Uint8Array | null,
      Uint8Array | null,
    ]
    // Each partition may have one row more than are taken of it: that of the first key.
    const rows = await this.#rows({ kind: 'range', from: first, to: last }, limit + 1)
    const isShown = (row: StoreRow): boolean =>
      row.partition >= partition || first === null || Buffer.compare(row.key, first) !== 0
    const page = rows.filter(isShown).slice(0, limit)
    return whenKnown(() => page.map((row) => ({ ...this.#entry(row), partition: row.partition })))
  }

  entriesOf(key: K, limit: number): Promise<Array<StoreEntry<K, V>>> {
    return this.#entries({ kind: 'get', key: this.#key(key) }, limit)
  }

  fetch(key: K, from: number, to: number, limit = defaultLimit): Promise<Array<StoreEntry<K, V>>> {
    return this.#entries({ kind: 'fetch', key: this.#key(key), from, to }, limit)
  }

  fetchAll(from: number, to: number, limit = defaultLimit): Promise<Array<StoreEntry<K, V>>> {
    return this.#entries({ kind: 'fetch', key: null, from, to }, limit)
  }

  async approximateEntries(): Promise<number> {
    return (await this.#ask({ kind: 'count' }, 0)).count
  }

  #key(key: K): Uint8Array {
    return this.#spec.keySerde.serialize(key)
  }

  async #entries(query: StoreQuery, limit: number): Promise<Array<StoreEntry<K, V>>> {
    const rows = await this.#rows(query, limit)
    return whenKnown(() => rows.slice(0, limit).map((row) => this.#entry(row)))
  }

  /** In the order of the bytes of their keys, then of time, as one store would return them; then of their partitions. */
  async #rows(query: StoreQuery, limit: number): Promise<StoreRow[]> {
    const { rows } = await this.#ask(query, limit)
    return rows.sort(
      (a, b) => Buffer.compare(a.key, b.key) || (a.start ?? 0) - (b.start ?? 0) || a.partition - b.partition,
    )
  }

  #entry({ key, value, partition: _, ...times }: StoreRow): StoreEntry<K, V> {
    const { keySerde, valueSerde } = this.#spec
    return { key: keySerde.deserialize(key) as K, value: valueSerde.deserialize(value) as V, ...times }
  }
}
