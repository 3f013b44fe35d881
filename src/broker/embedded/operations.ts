/** How the cluster performs each call of the broker port. */
import { unpack } from '../calls/packs.ts'
import type { Answer, Arguments, Cancel, OperationName, Reply } from '../calls/protocol.ts'
import { BrokerError, type ProducedPartition } from '../port.ts'
import type { EmbeddedCluster } from './core/cluster.ts'
import { NoRoomError } from './core/storage.ts'

const nothingToCancel: Cancel = () => undefined

/** Calls that may have to wait, and those whose arguments travel in another form. */
type Handled = 'fetch' | 'committedOffsets' | 'joinGroup' | 'syncGroup' | 'produce' | 'produceFed'
type Handler<K extends OperationName> = (
  cluster: EmbeddedCluster,
  args: Arguments<K>,
  reply: Reply<Answer<K>>,
  done: unknown[],
) => Cancel | undefined

const handlers: { readonly [K in Handled]: Handler<K> } = {
  fetch: (cluster, [request], reply) =>
    cluster.fetch(request, (fetched) => {
      reply.done(fetched)
    }),
  committedOffsets: (cluster, args, reply) => {
    cluster.committedOffsets(...args, reply)
    return undefined
  },
  joinGroup: (cluster, args, reply) => {
    cluster.joinGroup(...args, reply)
    return undefined
  },
  syncGroup: (cluster, args, reply) => {
    cluster.syncGroup(...args, reply)
    return undefined
  },
  produce: (cluster, [transactionalId, packs], reply, done) => {
    const produced = done as ProducedPartition[]
    reply.done(baseOffsets(cluster.produce({ transactionalId, batches: unpack(packs) }, produced)))
    return undefined
  },
  produceFed: (cluster, [packs, mark], reply) => {
    reply.done(baseOffsets(cluster.produceFed(unpack(packs), mark)))
    return undefined
  },
}

const baseOffsets = (produced: readonly ProducedPartition[]): Float64Array =>
  Float64Array.from(produced, ({ baseOffset }) => baseOffset)

/**
 * Performs a call; the answer or a `BrokerError` comes through `reply`, at once or later. A call that was refused for want of
 * room may be performed again with the same `done`, where it notes what is stored of it.
 */
export function perform<K extends OperationName>(
  cluster: EmbeddedCluster,
  name: K,
  args: Arguments<K>,
  reply: Reply<Answer<K>>,
  done: unknown[] = [],
): Cancel {
  try {
    if (name in handlers) {
      const handler = handlers[name as K & Handled] as Handler<K>
      return handler(cluster, args, reply, done) ?? nothingToCancel
    }
    const method = cluster[name as Exclude<K, Handled>] as unknown as (...given: Arguments<K>) => Answer<K>
    reply.done(method.apply(cluster, args))
  } catch (error) {
    if (error instanceof NoRoomError) cluster.putOff()
    reply.fail(asBrokerError(error))
  }
  return nothingToCancel
}

/** What is no `BrokerError` is a fault of the broker itself. */
export function asBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return new BrokerError('UNKNOWN_SERVER_ERROR', `The embedded broker failed: ${message}`, undefined, error)
}
