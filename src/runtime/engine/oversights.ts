/** What looks like a slip of the application or of whoever writes its input, told in the log; so is what is dropped. */
import { type CountersView, deadLetterSlot, dropReasons, dropSlot } from '../../base/counters.ts'
import type { WatermarkSnapshot } from '../../view/view.ts'

/** As milliseconds these are days of January 1970, as seconds any time from 2001 to 2128. */
const seconds = { from: 1_000_000_000, to: 5_000_000_000 } as const
const letIn = 'A longer grace of the window, or more `maxOutOfOrderness` of the source, lets them in.'
const sentences: Readonly<Partial<Record<(typeof dropReasons)[number], readonly [what: string, mend: string]>>> = {
  late: ['come too late for their windows or joins', letIn],
  expired: ['are older than what their store keeps', 'A longer retention of the store lets them in.'],
  null_key: ['have no key where one is needed', ''],
  negative_timestamp: ['have a negative timestamp', ''],
}
/** What went wrong with records that a policy lets go no further, and the policies that keep them. */
const failures: Readonly<Partial<Record<(typeof dropReasons)[number], readonly [what: string, policies: string]>>> = {
  deserialize: ['could not be decoded', '`errors.decoding: dead-letter`'],
  handler: [
    'failed in a function, or could not be written,',
    '`dead-letter` for `errors.processing` and `errors.producing`',
  ],
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
        const inAll = (slot: number): number => lanes.reduce((sum, lane) => sum + (lane[slot] ?? 0), 0)
        const dropped = inAll(dropSlot(layout, sub, at))
        const id = `${reason} ${sub}`
        if (dropped === 0 || dropped < again * (this.#dropped.get(id) ?? 0)) continue
        this.#dropped.set(id, dropped)
        const sentence = sentenceOf(reason, dropped, inAll(deadLetterSlot(layout, at)) > 0)
        if (sentence !== undefined) this.#warn(`records of sub-topology ${sub} ${sentence}`)
      }
    }
  }

  #once(id: string, message: string): void {
    if (this.#told.has(id)) return
    this.#told.add(id)
    this.#warn(message)
  }
}

function sentenceOf(reason: (typeof dropReasons)[number], count: number, areLetters: boolean): string | undefined {
  const counted = 'engine_records_dropped_total counts them'
  const failed = failures[reason]
  if (failed !== undefined) {
    const [what, policies] = failed
    const kept = areLetters
      ? '`millrace dlq list` shows those that are dead letters, with their reasons.'
      : `${policies} keeps those of streams and tables with their reasons; those of global tables and schedules become no dead letters.`
    return `${what} and go no further (${count} so far): ${counted}, ${kept}`
  }
  if (reason === 'late_window')
    return `come too late for some of their windows and are in the others alone (${count} so far): ${counted}. ${letIn}`
  const [what, mend = ''] = sentences[reason] ?? []
  if (what === undefined) return undefined
  const kept = '`errors.dropped: dead-letter` keeps them.'
  return `${what} and are dropped (${count} so far): ${counted}, ${kept} ${mend}`.trimEnd()
}
