/** Global tables: every lane keeps all rows, filled from the whole topic before processing begins and ever after. */
import { assert } from '../base/assert.ts'
import { ByteRange } from '../base/byte-range.ts'
import { EngineError, messageOf } from '../base/errors.ts'
import { type DropReason, originAt, Rec } from '../operators/contract.ts'
import { decodeRecord } from '../operators/decode.ts'
import { Task, type TaskHost } from '../operators/task.ts'
import type { AnyStore, StoreLifecycle } from '../state/contract.ts'
import { MemoryBackend } from '../state/backends/memory-backend.ts'
import { SerdeWaits } from '../serde/serde.ts'
import { openStore } from '../state/open-store.ts'
import type { CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import { noHeaders } from '../broker/wire/headers.ts'
import { decodeHeaders } from '../broker/wire/record-batch.ts'
import { RecordCursor } from '../broker/wire/record-batch.ts'
import { extractAgain } from './extraction.ts'
import type { LaneCounters } from './lane-counters.ts'
import type { LaneOptions } from './lane-options.ts'
import type { ToLane } from './protocol.ts'
import { policyFor } from './tasks/error-policy.ts'

type GlobalMessage = Extract<ToLane, { type: 'global' }>

interface GlobalLoad {
  readonly message: GlobalMessage
  readonly loaded: () => void
  readonly failed: (error: unknown) => void
}

export class GlobalState {
  readonly #options: LaneOptions
  readonly #counters: LaneCounters
  readonly #topology: CompiledTopology
  readonly stores = new Map<string, AnyStore>()
  readonly #tasks = new Map<number, Task>()
  #waiting: GlobalLoad[] = []

  constructor(options: LaneOptions, counters: LaneCounters) {
    this.#options = options
    this.#counters = counters
    this.#topology = options.topology
    this.reset()
  }

  /** Begins anew with empty stores: the engine sends the topics again from their start. */
  reset(): void {
    const topology = this.#topology
    this.#waiting = []
    this.#tasks.clear()
    this.stores.clear()
    for (const name of topology.globalStores.keys()) {
      const spec = topology.stores.get(name)
      assert(spec !== undefined, `there is no global store ${name}`)
      const streamTime = (): number => Number.NEGATIVE_INFINITY
      // What is no longer history by the newest version may go: there is no other time.
      const removableTo = (): number => Number.POSITIVE_INFINITY
      const times = spec.kind === 'versioned' ? { streamTime, removableTo } : { streamTime }
      this.stores.set(name, openStore(spec, new MemoryBackend(), 0, times))
    }
    for (const subtopology of topology.subtopologies) {
      if (!subtopology.global) continue
      const refuse = (): never => assert(false, 'a global table writes to no topic') as never
      const host = {
        emit: refuse,
        handOff: refuse,
        dropped: () => undefined,
        wallClock: () => this.#options.clock.now(),
        requestCommit: () => undefined,
      } as unknown as TaskHost
      const task = new Task({
        topology,
        applicationId: this.#options.applicationId,
        subtopology: subtopology.id,
        partition: 0,
        stores: this.stores as Map<string, AnyStore & StoreLifecycle>,
        globalStores: this.stores,
        host,
      })
      task.init()
      this.#tasks.set(subtopology.id, task)
    }
  }

  /**
   * Takes records in, in the order of their messages; `loaded` is called behind them. Where a serde waits for something,
   * they wait, and what follows them.
   */
  take(message: GlobalMessage, loaded: () => void, failed: (error: unknown) => void): void {
    this.#waiting.push({ message, loaded, failed })
    if (this.#waiting.length === 1) this.#work(this.#waiting)
  }

  #work(waiting: GlobalLoad[]): void {
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      try {
        this.#load(next.message)
      } catch (error) {
        if (!(error instanceof SerdeWaits)) {
          waiting.length = 0
          next.failed(error)
          return
        }
        void error.ready.then(() => {
          if (waiting === this.#waiting) this.#work(waiting)
        })
        return
      }
      waiting.shift()
      next.loaded()
    }
  }

  #load(message: GlobalMessage): void {
    const source = this.#topology.sources[message.source] as CompiledSource
    const task = this.#tasks.get(source.subtopology)
    assert(task !== undefined, `no global task for source ${message.source}`)
    const cursor = new RecordCursor()
    cursor.reset(message.records, message.fromOffset, message.aborted, 'read_committed')
    while (cursor.next()) {
      const rec = this.#read(source, message, cursor)
      if (rec === undefined) continue
      const pending = task.process(message.source, rec)
      assert(pending === undefined, 'functions of global tables cannot be asynchronous')
    }
    // Nothing of a global store is ever uncommitted: its topic is its truth.
    for (const store of this.stores.values()) {
      const lifecycle = store as AnyStore & StoreLifecycle
      lifecycle.seal(0)
      lifecycle.applied(0, { changelogOffset: 0, commitId: '', topicId: '' })
    }
  }

  /** Undefined: the table goes without it. */
  #read(source: CompiledSource, { topic, partition }: GlobalMessage, cursor: RecordCursor): Rec | undefined {
    const { bytes, offset, keyStart, keyEnd, valueStart, valueEnd, headersStart, headersEnd } = cursor
    const origin = originAt(topic, partition, offset, Number.NEGATIVE_INFINITY, 0)
    const key = keyStart < 0 ? null : ByteRange.of(bytes.slice(keyStart, keyEnd))
    const value = valueStart < 0 ? null : ByteRange.of(bytes.slice(valueStart, valueEnd))
    const headers = headersEnd > headersStart ? decodeHeaders(bytes, headersStart, headersEnd) : noHeaders
    try {
      const rec = decodeRecord(source, key, value, cursor.timestamp, headers, origin)
      if (source.timestampExtractor === undefined) return rec
      const time = extractAgain(source, rec)
      if (time >= 0) return new Rec(rec.key, rec.value, time, headers, origin, key, value)
      this.#count(source, 'negative_timestamp')
    } catch (error) {
      this.#passOver(source, error)
    }
  }

  /**
   * Every lane reads it, at every start: so it becomes no dead letter.
   *
   * @throws the error where the policy is to fail, or what is missing has still to come.
   */
  #passOver(source: CompiledSource, error: unknown): void {
    const { policies, lane, toEngine } = this.#options
    if (error instanceof SerdeWaits || policyFor(error, policies) === 'fail') throw error
    const isDecoding = EngineError.is(error) && error.code === 'DECODE_FAILED'
    this.#count(source, isDecoding ? 'deserialize' : 'handler')
    const message =
      `${messageOf(error)} By \`errors.${isDecoding ? 'decoding' : 'processing'}\` the global table of ${source.name} goes ` +
      'without it, and without others like it: correct the producer, and have the rows written again'
    toEngine({ type: 'notice', lane, message, about: `global ${source.name}` }, [])
  }

  /** One lane counts for all. */
  #count({ subtopology }: CompiledSource, reason: DropReason): void {
    if (this.#options.lane === 0) this.#counters.dropped(subtopology, reason)
  }
}
