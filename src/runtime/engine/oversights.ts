/** What looks like a slip of the application or of whoever writes its input, told in the log; so is what is dropped. */
import { type CountersView, dropReasons, dropSlot } from '../../base/counters.ts'
import type { WatermarkSnapshot } from '../../view/view.ts'

/** As milliseconds these are days of January 1970, as seconds any time from 2001 to 2128. */
const seconds = { from: 1_000_000_000, to: 5_000_000_000 } as const
/** What a failed function or a decoder's refusal comes to is told as a failure, by its policy. */
const sentences: Readonly<Partial<Record<(typeof dropReasons)[number], readonly [what: string, mend: string]>>> = {
  late: [
    'come too late for their windows or joins',
    'A longer grace of the window, or more `maxOutOfOrderness` of the source, lets them in.',
  ],
  expired: ['are older than what their store keeps', 'A longer retention of the store lets them in.'],
  null_key: ['have no key where one is needed', ''],
  negative_timestamp: ['have a negative timestamp', ''],
}
/** Told again once there are so many times as many. */
const again = 10

export class Oversights {
  readonly #told = new Set<string>()
  /** How many were told of last. */
  readonly #dropped = new Map<string, number>()
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
      for (const [at, reason] of dropReasons.entries()) {
        const [what, mend] = sentences[reason] ?? []
        if (what === undefined) continue
        const slot = dropSlot(layout, sub, at)
        const dropped = lanes.reduce((sum, lane) => sum + (lane[slot] ?? 0), 0)
        const id = `${reason} ${sub}`
        if (dropped === 0 || dropped < again * (this.#dropped.get(id) ?? 0)) continue
        this.#dropped.set(id, dropped)
        const kept = 'engine_records_dropped_total counts them, `errors.dropped: dead-letter` keeps them.'
        this.#warn(
          `records of sub-topology ${sub} ${what} and are dropped (${dropped} so far): ${kept} ${mend}`.trimEnd(),
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
