/** Tells once when records wait long for a partition of their task that cannot be fetched: nothing else would say why. */
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { WallClockOffset } from '../../time/watermark-report.ts'
import type { PartitionWait } from '../../time/watermarks.ts'
import type { WatermarkSnapshot } from '../../view/view.ts'
import type { Lead } from './repartition/lead.ts'

const longMs = 10_000

/** `held`: undefined where all of a sub-topology waits for who is behind in `awaited`. */
export type Wait = Pick<PartitionWait, 'awaited' | 'since' | 'byWriters'> & Partial<Pick<PartitionWait, 'held'>>

/** Another process is waited for, whose partition this is. */
export function waitOf(lead: Lead | undefined): Wait | undefined {
  const hold = lead?.longestHold
  return hold && { awaited: hold.awaited.key, since: hold.since, byWriters: true }
}

export class LongWait {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #longest: () => Wait | undefined
  readonly #tell: (message: string) => void
  #cancel: (() => void) | undefined
  #told: Wait | undefined
  readonly #wall = new WallClockOffset()

  constructor(
    { clock, timers }: { readonly clock: Clock; readonly timers: Timers },
    longest: () => Wait | undefined,
    tell: (message: string) => void,
  ) {
    this.#clock = clock
    this.#timers = timers
    this.#longest = longest
    this.#tell = tell
  }

  /** To be called when nothing can be dispatched at the moment. */
  check(): void {
    if (this.#cancel) return
    const wait = this.#longest()
    if (wait) this.#look(wait)
  }

  close(): void {
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Where no head waits for its turn, who is waited for all the same. */
  shown(snapshot: WatermarkSnapshot, lead: Lead | undefined): WatermarkSnapshot {
    const wait = snapshot.orderWait === undefined ? waitOf(lead) : undefined
    if (wait === undefined) return snapshot
    this.#wall.observe(this.#clock.monotonic(), this.#clock.now())
    const { awaited, byWriters } = wait
    return { ...snapshot, orderWait: { held: null, awaited, byWriters, sinceMs: this.#wall.epochMs(wait.since) } }
  }

  #look(wait: Wait): void {
    const leftMs = wait.since + longMs - this.#clock.monotonic()
    if (leftMs <= 0 && this.#told?.awaited !== wait.awaited) {
      this.#told = wait
      const forS = Math.round((longMs - leftMs) / 1000)
      const waited = `${wait.held} has waited for ${forS} s:`
      this.#tell(
        wait.held === undefined
          ? `the process is ahead of others of its group, and has waited for ${forS} s for the one that reads ${wait.awaited}; ` +
              'see whether all processes of the application run and commit, and whether one of them is slow (`millrace why`)'
          : wait.byWriters
            ? `${waited} not all who write to ${wait.awaited} have told that they have come as far; see whether ` +
              'all processes of the application run and commit, and whether one of them is slow (`millrace why`)'
            : `${waited} ${wait.awaited} feeds the same task, and its records could not be fetched, or nobody could say whether there are more; ` +
              'see whether the broker that leads it can be reached',
      )
    }
    this.#cancel = this.#timers.after(Math.max(longMs / 10, leftMs), () => {
      this.#cancel = undefined
      const next = this.#longest()
      if (next) this.#look(next)
      else this.#told = undefined
    })
  }
}
