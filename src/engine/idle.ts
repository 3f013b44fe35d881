/** Waits until there is nothing left to do: for tests, feeds that end, and the command line's bounded runs. */
import type { TopicPartition } from '../base/ids.ts'
import { sleep, type Timers } from '../base/timers.ts'
import { BrokerError } from '../broker/port.ts'
import type { Committer } from './commit/committer.ts'
import type { Flow } from './input/flow.ts'

const withheldPauseMs = 100
/** Another process is still at work on what comes to this one. */
const undrainedPauseMs = 20
const heldRoundsToTell = 20

export interface IdleHost {
  readonly timers: Timers
  ended(): boolean
  /** The run's parts; undefined while nothing is processed. */
  running(): { readonly flow: Flow; readonly committer: Committer } | undefined
  commits(): number
  warn(message: string): void
  /** Stores have rows past their time that the next commit removes. */
  forgetting(): boolean
}

/** Resolves once all input is processed, the windows it closes are emitted, and everything is committed; false: it ended before. */
export async function untilIdle(host: IdleHost): Promise<boolean> {
  let quietRounds = 0
  let heldRounds = 0
  while (!host.ended() && quietRounds < 2) {
    const parts = host.running()
    if (!parts) {
      await sleep(host.timers, 10)
      continue
    }
    const { flow, committer } = parts
    const { total } = flow.dispatcher
    if (!(await exhausted(flow))) {
      // What waits for those who write may wait for a commit of this very process.
      if (flow.awaitsWriters) await committer.commitNow('idle')
      await sleep(host.timers, 5)
      continue
    }
    const before = host.commits()
    await committer.commitNow('idle')
    // What was on its way between sub-topologies may have come out as new input.
    const drained = await unlessPassing(() => flow.isDrained(), false)
    const still = drained && (await exhausted(flow)) && flow.dispatcher.total === total
    if (!drained) await sleep(host.timers, undrainedPauseMs)
    // A restart in between makes all of it void: the input is read again.
    const done = still && host.running()?.flow === flow && host.commits() > before
    const held = done ? await unlessPassing(() => flow.withheld(), undefined) : undefined
    if (held !== undefined) {
      // The markers of one's own commit may take a moment to be written.
      if (++heldRounds === heldRoundsToTell) host.warn(heldBy(held))
      quietRounds = 0
      await sleep(host.timers, withheldPauseMs)
      continue
    }
    const ending = done ? await unlessPassing(() => flow.closeInput(), 'waits') : 'waits'
    if (done && ending === 'waits') await sleep(host.timers, undrainedPauseMs)
    quietRounds = ending === 'ended' && !host.forgetting() ? quietRounds + 1 : 0
  }
  return quietRounds >= 2
}

/** What another producer has written and not decided yet is input that is still to come. */
function heldBy({ topic, partition, records }: TopicPartition & { readonly records: number }): string {
  return (
    `all input that can be read is processed, but ${records} records of ${topic}:${partition} lie behind an open transaction ` +
    'of another producer: waiting until it is committed or aborted'
  )
}

const exhausted = (flow: Flow): Promise<boolean> => unlessPassing(() => flow.exhausted(), false)

/** What is asked of the broker; the other value where it cannot be reached, or not now. */
async function unlessPassing<T>(ask: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof BrokerError && ['unreachable', 'retriable'].includes(error.errorClass)) return otherwise
    throw error
  }
}
