/**
 * A function that is slow in the way that `BACKLOG_KIND` says, and what follows from it: of each key how many answers
 * there were and in which order, and of some groups across lanes how many.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes } from 'millrace'
import { first, seenOf } from '../support/backlog/seen.ts'

interface Call {
  readonly n: number
  readonly ms: number
}

const { BACKLOG_NAME: name = 'backlog', BACKLOG_KIND: kind = 'waits', BACKLOG_URL: url = '' } = process.env

const nobody = new Int32Array(new SharedArrayBuffer(4))

/** The lane's thread does nothing else meanwhile. */
function waits({ n, ms }: Call): number {
  if (ms > 0) Atomics.wait(nobody, 0, 0, ms)
  return n
}

/** As `waits`, and on a busy machine it takes longer. */
function computes({ n, ms }: Call): number {
  const used = (): number => process.threadCpuUsage().user / 1000
  for (const began = used(); used() < began + ms; );
  return n
}

async function answersLater({ n, ms }: Call): Promise<number> {
  if (ms > 0) await sleep(ms)
  return n
}

async function asks({ n }: Call): Promise<number> {
  const response = await fetch(`${url}/${n}`)
  if (!response.ok) throw new Error(`the service answered ${response.status}`)
  return Number(await response.text())
}

export default defineApp({
  applicationId: name,
  build(topology) {
    const calls = topology.stream(`${name}-calls`, { key: serdes.string, value: serdes.json<Call>() })
    const answers =
      kind === 'asks'
        ? calls.mapValues(asks, { timeout: '2s', breaker: { pause: '200ms' } })
        : calls.mapValues(kind === 'waits' ? waits : kind === 'computes' ? computes : answersLater)
    answers
      .groupByKey()
      .aggregate(() => first, seenOf, { store: 'seen' })
      .toStream()
      .to(`${name}-seen`)
    answers
      .groupBy((n) => `g${n % 5}`)
      .aggregate(() => first, seenOf, { store: 'groups' })
      .toStream()
      .to(`${name}-groups`)
  },
})
