/** Waits until there is nothing left to do: for tests, feeds that end, and the command line's bounded runs. */
import { sleep, type Timers } from '../base/timers.ts'
import { BrokerError } from '../broker/port.ts'
import type { Committer } from './committer.ts'
import type { Flow } from './flow.ts'

export interface IdleHost {
  readonly timers: Timers
  ended(): boolean
  /** The run's parts; undefined while nothing is processed. */
  running(): { readonly flow: Flow; readonly committer: Committer } | undefined
  commits(): number
  /** Stores have rows past their time that the next commit removes. */
  forgetting(): boolean
}

/** Resolves once all input is processed, the windows it closes are emitted, and everything is committed. */
export async function untilIdle(host: IdleHost): Promise<void> {
  let quietRounds = 0
  while (!host.ended() && quietRounds < 2) {
    const parts = host.running()
    if (!parts) {
      await sleep(host.timers, 10)
      continue
    }
    const { flow, committer } = parts
    const { total } = flow.dispatcher
    if (!(await exhausted(flow))) {
      await sleep(host.timers, 5)
      continue
    }
    const before = host.commits()
    await committer.commitNow('idle')
    // What was on its way between sub-topologies may have come out as new input.
    const still = (await exhausted(flow)) && flow.dispatcher.total === total
    // A restart in between makes all of it void: the input is read again.
    const done = still && host.running()?.flow === flow && host.commits() > before
    const quiet = done && !flow.closeInput() && !host.forgetting()
    quietRounds = quiet ? quietRounds + 1 : 0
  }
}

async function exhausted(flow: Flow): Promise<boolean> {
  try {
    return await flow.exhausted()
  } catch (error) {
    if (error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)) return false
    throw error
  }
}
