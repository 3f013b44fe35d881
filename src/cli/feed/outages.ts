/** What a feed does while the broker takes nothing: it waits, as the engine does, and says so for as long as it lasts. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../base/errors.ts'
import { BrokerError } from '../../broker/port.ts'
import { grouped } from '../progress.ts'

const pauseMs = 1000
/** An outage is told again after so long, then each time that it has lasted three times as long. */
const toldAgainMs = 10_000
const growth = 3
/** Long enough for whoever cleans up by a schedule, and short enough for whoever waits for the run to end. */
const diskPatienceMs = 10_000

export interface Patience {
  readonly signal: AbortSignal
  readonly note: (message: string) => void
  readonly warn: (message: string) => void
  /**
   * Whether a full disk ends the feed. That of the embedded broker is this machine's own: it gets no room by waiting, and
   * whoever waits for the run to end would wait for ever.
   */
  readonly endsOnFullDisk: boolean
}

/**
 * A broker that does not answer is asked again until it does; undefined once the signal fires.
 *
 * @throws BrokerError where it answers that there is nothing to wait for
 */
export async function throughOutages<T>(patience: Patience, call: () => Promise<T>): Promise<T | undefined> {
  const { signal, note, endsOnFullDisk } = patience
  let sinceMs: number | undefined
  let nextMs = toldAgainMs
  while (!signal.aborted) {
    try {
      const answer = await call()
      if (sinceMs !== undefined) note('The broker answers again, the feed goes on.')
      return answer
    } catch (error) {
      if (!isPassing(error)) throw error
      // What is under way when a run ends fails as well, and is no news of the broker.
      if (signal.aborted) break
      const nowMs = performance.now()
      if (sinceMs === undefined) {
        // The client is closed when the application ends: the signal follows.
        if (error.code !== 'CLOSED') tellFirst(patience, error)
        sinceMs = nowMs
      }
      const lastsMs = nowMs - sinceMs
      if (endsOnFullDisk && isOfDisk(error) && lastsMs >= diskPatienceMs) throw givenUp(error, lastsMs)
      if (lastsMs >= nextMs) {
        tellAgain(patience, error, lastsMs)
        nextMs = lastsMs * growth
      }
      // An abort during the wait is seen by the loop's condition.
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }
  return undefined
}

function isPassing(error: unknown): error is BrokerError {
  const { errorClass } = error as { errorClass?: string }
  return errorClass === 'unreachable' || errorClass === 'retriable'
}

function isOfDisk({ code }: BrokerError): boolean {
  return code === 'KAFKA_STORAGE_ERROR'
}

/** Brokers go away for moments and come back; a disk does not get room by itself. */
function tellFirst({ note, warn }: Patience, error: BrokerError): void {
  if (isOfDisk(error)) warn(`The feed waits until the broker can store records again: ${messageOf(error)}`)
  else note(`The feed waits for the broker: ${messageOf(error)}`)
}

function tellAgain({ warn }: Patience, error: BrokerError, lastsMs: number): void {
  const what = isOfDisk(error) ? 'until the broker can store records again' : 'for the broker'
  const goesOn = isOfDisk(error) ? 'once there is room' : 'once it answers'
  warn(`The feed has waited ${what} for ${seconds(lastsMs)}, and goes on by itself ${goesOn}: ${messageOf(error)}`)
}

function givenUp(error: BrokerError, lastsMs: number): BrokerError {
  const message = `The feed was given up, because the broker could store nothing for ${seconds(lastsMs)}: ${messageOf(error)}`
  return new BrokerError(error.code, message, 'config', error)
}

function seconds(ms: number): string {
  return `${grouped(Math.floor(ms / 1000))} s`
}
