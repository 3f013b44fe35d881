/** A start reads on until it has seen all: what it left out would be missing without a word. */
import { sleep, type Timers } from '../../base/timers.ts'
import type { BrokerPort } from '../../broker/port.ts'
import type { AskAgain } from '../../broker/read-up-to.ts'
import type { EngineFact } from '../protocol.ts'
import { RunOver } from '../run.ts'

const pauseMs = 100
/** So many times in vain, some seconds, before that is told. */
const vainUntilTold = 30

export interface AskingParts {
  readonly broker: BrokerPort
  readonly timers: Timers
  readonly fact: (fact: EngineFact) => void
}

/** @throws RunOver once the run, or the engine, has ended. */
export function askAgain({ broker, timers, fact }: AskingParts, over: () => boolean): AskAgain {
  return async ({ topic, partition }, vain) => {
    if (vain === vainUntilTold) {
      const message = `${topic}:${partition} has more than the broker shows: the start waits until its leader is back`
      fact({ type: 'log', level: 'info', message })
    }
    await sleep(timers, pauseMs)
    if (over()) throw new RunOver('the run has ended')
    // One that has lost records has no more than it says now.
    const [end] = await broker.listOffsets([{ topic, partition }], 'stable')
    return end?.offset
  }
}
