/** The other side of a `PortLink`: performs the calls that come over a message port. */
import type { MessagePort } from 'node:worker_threads'
import type { Answer, Cancel, CancelRequest, OperationName, Performer, Request, Response } from './protocol.ts'
import { toWireCause } from './wire-cause.ts'

export interface PortEvents {
  /** A message was handled; its call may still be under way. */
  readonly handled?: () => void
  readonly closed: () => void
}

export function servePort(port: MessagePort, perform: Performer, { handled, closed }: PortEvents): void {
  const cancels = new Map<number, Cancel>()
  port.on('message', (message: Request | CancelRequest) => {
    if ('cancel' in message) cancels.get(message.cancel)?.()
    else answerTo(port, perform, cancels, message)
    handled?.()
  })
  port.on('close', () => {
    for (const cancel of cancels.values()) cancel()
    cancels.clear()
    closed()
  })
}

function answerTo<K extends OperationName>(
  port: MessagePort,
  perform: Performer,
  cancels: Map<number, Cancel>,
  { id, name, args }: Request<K>,
): void {
  let settled = false
  const settle = (response: Response, transfer: readonly ArrayBuffer[]): void => {
    settled = true
    cancels.delete(id)
    port.postMessage(response, transfer)
  }
  const cancel = perform(name, args, {
    done: (answer: Answer<K>) => {
      settle({ id, answer }, name === 'fetch' ? recordBuffers(answer) : [])
    },
    fail: (error) => {
      const { code, message, errorClass } = error
      const cause = toWireCause(error.cause)
      settle({ id, code, message, errorClass, ...(cause !== undefined && { cause }) }, [])
    },
  })
  if (!settled) cancels.set(id, cancel)
}

/** Fetched records are made for their receiver: they change hands without a copy. */
function recordBuffers(answer: unknown): ArrayBuffer[] {
  const fetched = answer as ReadonlyArray<{ readonly records: Uint8Array<ArrayBuffer> }>
  return fetched.flatMap(({ records }) => (records.length === 0 ? [] : [records.buffer]))
}
