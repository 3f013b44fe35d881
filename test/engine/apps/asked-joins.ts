/** Joins by an asynchronous function that never answers for a value `pend`. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp } from 'millrace'

interface Asked {
  readonly pend?: boolean
}

async function ask(left: Asked | null, right: Asked | null): Promise<string> {
  if (left?.pend === true && right !== null) await new Promise(() => undefined)
  await sleep(1)
  return 'joined'
}

export default defineApp({
  applicationId: 'asked-joins',
  build: (topology) => {
    const left = topology.stream<string, Asked>('left')
    const right = topology.stream<string, Asked>('right')
    left.outerJoin(right, ask, { within: '1h', grace: 0 }).to('joined')
  },
})
