/** What looks like a slip of the application or of whoever writes its input, told once in the log. */
import { type CountersView, dropReasons, dropSlot } from '../base/counters.ts'
import type { WatermarkSnapshot } from '../view/view.ts'

/** As milliseconds these are days of January 1970, as seconds any time from 2001 to 2128. */
const seconds = { from: 1_000_000_000, to: 5_000_000_000 } as const
const toldReasons = ['null_key', 'negative_timestamp'] as const
const sentences: Readonly<Record<(typeof toldReasons)[number], string>> = {
  null_key: 'have no key where one is needed and are dropped',
  negative_timestamp: 'have a negative timestamp and are dropped',
}

export class Oversights {
  readonly #told = new Set<string>()
  readonly #warn: (message: string) => void

  constructor(warn: (message: string) => void) {
    this.#warn = warn
  }

  /** To be called with every snapshot. */
  look(watermarks: WatermarkSnapshot | null, { layout, lanes }: CountersView): void {
    for (const [key, { watermarkMs }] of Object.entries(watermarks?.partitions ?? {})) {
      if (watermarkMs === null || watermarkMs < seconds.from || watermarkMs >= seconds.to) continue
      const topic = key.slice(0, key.lastIndexOf(':'))
      const meant = new Date(watermarkMs * 1000).toISOString()
      this.#once(
        `seconds ${topic}`,
        `the timestamps of ${topic} look like seconds: as such their watermark would be ${meant}. Timestamps are milliseconds: ` +
          'multiply them by 1000, or give the source a `timestamp` function that does',
      )
    }
    for (let sub = 0; sub < layout.subtopologies; sub++) {
      for (const reason of toldReasons) {
        const slot = dropSlot(layout, sub, dropReasons.indexOf(reason))
        const dropped = lanes.reduce((sum, lane) => sum + (lane[slot] ?? 0), 0)
        if (dropped === 0) continue
        this.#once(
          `${reason} ${sub}`,
          `records of sub-topology ${sub} ${sentences[reason]} (${dropped} so far): engine_records_dropped_total counts them, ` +
            '`errors.dropped: dead-letter` keeps them',
        )
      }
    }
  }

  #once(id: string, message: string): void {
    if (this.#told.has(id)) return
    this.#told.add(id)
    this.#warn(message)
  }
}
