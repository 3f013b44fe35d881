/** Records tell by themselves how they want to be processed: at once, late, blocking the lane, or never. */
import { defineApp, serdes } from 'millrace'

export interface Order {
  readonly slowMs?: number
  readonly blockMs?: number
  readonly loop?: boolean
  /** Loops without end, so many calls deep. */
  readonly deep?: number
  /** Ends the thread of its lane. */
  readonly exit?: boolean
  /** Text of the error to throw. */
  readonly fail?: string
}

/** Its name is what the thread view must show. */
function loopWithoutEnd(): void {
  for (let turns = 0; ; turns++) if (turns < 0) return
}

function deeper(calls: number): number {
  if (calls > 0) return deeper(calls - 1) + 1
  loopWithoutEnd()
  return 0
}

async function obey(order: Order): Promise<Order> {
  if (order.fail !== undefined) throw new Error(order.fail)
  if (order.loop === true) loopWithoutEnd()
  if (order.deep !== undefined) deeper(order.deep)
  if (order.exit === true) process.exit(1)
  if (order.blockMs !== undefined) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.blockMs)
  if (order.slowMs !== undefined) await new Promise((resolve) => setTimeout(resolve, order.slowMs))
  return order
}

export default defineApp({
  applicationId: 'scenario',
  build(topology) {
    topology.stream('orders', { key: serdes.string, value: serdes.json<Order>() }).mapValues(obey).to('done')
  },
})
