/** A processor that neither awaits nor returns what `forward` promises, above a function that fails later. */
import { defineApp, serdes } from 'millrace'

export default defineApp({
  applicationId: 'let-go',
  build(topology) {
    topology
      .stream('orders', { key: serdes.string, value: serdes.json<{ n: number }>() })
      .processValues<{ n: number }>((context) => (order) => {
        void context.forward(order)
      })
      .peek(async () => {
        await new Promise((resolve) => setTimeout(resolve, 1))
        throw new Error('the ledger is closed')
      })
      .to('booked')
  },
})
