/** Stands still in each way that a record tells it to. */
import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, serdes, tumbling } from 'millrace'

interface Work {
  readonly do?: 'loop' | 'wait' | 'exec' | 'pend' | 'throw'
  /** A pipe, for `exec`: it ends when somebody writes there. */
  readonly pipe?: string
  readonly ms?: number
}

const lock = new Int32Array(new SharedArrayBuffer(4))

export function loopForEver(): void {
  for (;;);
}

export function waitForLock(): void {
  Atomics.wait(lock, 0, 0)
}

export function waitForProgram(pipe: string): void {
  execFileSync('cat', [pipe])
}

function takesTime(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

function work(value: Work): Work {
  if (value.do === 'loop') loopForEver()
  if (value.do === 'wait') waitForLock()
  if (value.do === 'exec') waitForProgram(value.pipe ?? '')
  if (value.do === 'throw') throw new RangeError('this record is wrong')
  if (value.ms !== undefined) takesTime(value.ms)
  return value
}

export default defineApp({
  applicationId: 'standing',
  build(topology) {
    const json = { key: serdes.string, value: serdes.json<Work>() }
    topology.stream('works', json).mapValues(work).to('worked')
    topology
      .stream('calls', json)
      .mapValues(async (value) => {
        if (value.do === 'pend') await new Promise(() => undefined)
        await sleep(value.ms ?? 0)
        return value
      })
      .mapValues(work)
      .to('called')
    const timestamp = (value: Work): number => {
      if (value.do === 'loop') loopForEver()
      return 1_700_000_000_000
    }
    topology.stream('stamped', { ...json, timestamp }).to('stamped-out')
    topology
      .stream('events', json)
      .groupByKey()
      .windowedBy(tumbling('10s'))
      .count({ store: 'by-window' })
      .toStream()
      .to('counted')
  },
})
