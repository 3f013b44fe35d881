/**
 * A thread's way to the one place of the process that talks to the schema registry. Lanes never wait for it: a record
 * whose schema is unknown is put aside. The engine's thread, which has to know a record's time before it knows what is
 * next, waits for a short while.
 */
import { performance } from 'node:perf_hooks'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { fromWireError, type WireError } from '../base/errors.ts'
import { type SchemaAnswer, SchemaStore } from '../serde/registry/schema-store.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { connectSerdes } from '../operators/schema-needs.ts'

/** What the control thread says. Its first message is one of `prepared` and `refused`. */
export type ToSchemaPort = SchemaAnswer | { readonly type: 'refused'; readonly error: WireError }

/** What is asked of it. `bell` is rung once the answer is under way. */
export interface SchemaQuestion {
  readonly id: number
  readonly bell?: Int32Array
}

const longestBlockMs = 3000

/**
 * Connects the serdes of a thread. Resolves when they may be used; `port` is null where none of them uses a registry.
 *
 * @throws EngineError `SCHEMA_REFUSED` where the registry does not have what the application needs.
 */
export function connectSchemas(topology: CompiledTopology, port: MessagePort | null, blocks = false): Promise<void> {
  if (port === null) return Promise.resolve()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const ask = (id: number): void => {
    if (blocks) take(askNow(port, id))
    else port.postMessage({ id } satisfies SchemaQuestion)
  }
  const store = new SchemaStore(ask, () => performance.now())
  const take = (message: ToSchemaPort | undefined): void => {
    if (message === undefined) return
    if (message.type === 'refused') {
      reject(fromWireError(message.error))
      return
    }
    store.take(message)
    if (message.type !== 'prepared') return
    connectSerdes(topology, store)
    resolve()
  }
  port.on('message', take)
  return promise
}

/** Undefined where the answer does not come soon enough: it comes as a message then. */
function askNow(port: MessagePort, id: number): ToSchemaPort | undefined {
  const bell = new Int32Array(new SharedArrayBuffer(4))
  port.postMessage({ id, bell } satisfies SchemaQuestion)
  if (Atomics.wait(bell, 0, 0, longestBlockMs) === 'timed-out') return undefined
  return (receiveMessageOnPort(port) as { message: ToSchemaPort } | undefined)?.message
}
