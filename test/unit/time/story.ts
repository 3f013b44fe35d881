import { noHead, Watermarks, type WatermarksOptions } from '../../../src/time/watermarks.ts'
import type { PartitionWatermarkReport, WatermarkReport } from '../../../src/time/watermark-report.ts'

/** What the wall clock says when a story begins. */
export const epoch = 1_700_000_000_000

/** Time passes, in which nothing came: whoever is asked for before it turns idle is still empty. */
export function passTo(watermarks: Watermarks, now: number): void {
  watermarks.tick(now)
  const asked = watermarks.unproven(now)
  for (const key of asked) {
    const colon = key.lastIndexOf(':')
    const p = watermarks.handle(key.slice(0, colon), Number(key.slice(colon + 1)))
    watermarks.evidence(p, 0, false, now)
  }
  if (asked.length > 0) passTo(watermarks, now)
}

/** Partitions `a`, `b`, … with one record at a time fed, so that a case reads as a story. */
export class Story {
  readonly watermarks: Watermarks
  readonly #queues = new Map<string, number[]>()
  readonly #offsets = new Map<string, number>()
  now = 0

  constructor(options: WatermarksOptions = {}) {
    this.watermarks = new Watermarks({ evidenceTtlMs: 1e12, ...options })
  }

  /** `task`: its input together with others; `lag`: what is known to lie at the broker at that moment. */
  assign(
    name: string,
    timing: { ooo?: number; idle?: number; group?: string; drift?: number; task?: string; lag?: number } = {},
  ): this {
    const { ooo = 0, idle = 0, group, drift = 0, task, lag } = timing
    const alignment = group === undefined ? undefined : { group, maxDriftMs: drift }
    const input = task === undefined ? undefined : { task, lag, at: this.now }
    const bounds = { maxOutOfOrdernessMs: ooo, idlenessMs: idle, alignment }
    this.watermarks.assign({ topic: name, partition: 0 }, bounds, input)
    this.#queues.set(name, [])
    return this
  }

  revoke(name: string): this {
    this.watermarks.revoke({ topic: name, partition: 0 }, this.now)
    return this
  }

  handle(name: string): number {
    return this.watermarks.handle(name, 0)
  }

  /** Records arrive; the last fetch reached the end of the log unless `lag` says otherwise. */
  feed(name: string, timestamps: readonly number[], lag = 0): this {
    const queue = this.#queues.get(name) as number[]
    const empty = this.#head(name) === undefined
    queue.push(...timestamps)
    if (empty && queue.length > 0) this.#arrive(name)
    this.watermarks.evidence(this.handle(name), lag, false, this.now)
    return this
  }

  /** A fetch that found nothing. */
  empty(...names: string[]): this {
    for (const name of names) this.watermarks.evidence(this.handle(name), 0, false, this.now)
    return this
  }

  /** Time passes in which nothing comes. */
  at(now: number): this {
    this.now = now
    passTo(this.watermarks, now)
    return this
  }

  /** Time passes, and nobody has answered yet who is asked whether it is empty still. Answers who that is. */
  unansweredAt(now: number): string[] {
    this.now = now
    this.watermarks.tick(now)
    return this.watermarks.unproven(now)
  }

  /** Dispatches one record; answers `name@timestamp/watermark`, or null when none may go. */
  next(): string | null {
    const p = this.watermarks.pick(this.now)
    if (p < 0) return null
    const name = [...this.#queues.keys()].find((each) => this.handle(each) === p) as string
    const queue = this.#queues.get(name) as number[]
    const timestamp = queue.shift() as number
    const offset = (this.#offsets.get(name) ?? 0) + 1
    this.#offsets.set(name, offset)
    const watermark = this.watermarks.dispatched(p, queue[0] ?? noHead, offset, this.now)
    return `${name}@${timestamp}/${watermark === Number.NEGATIVE_INFINITY ? '-' : watermark}`
  }

  all(): string[] {
    const order: string[] = []
    for (let each = this.next(); each !== null; each = this.next()) order.push(each)
    return order
  }

  snapshot(): WatermarkReport {
    return this.watermarks.snapshot(this.now, epoch + this.now)
  }

  shown(name: string): PartitionWatermarkReport {
    return this.snapshot().partitions[`${name}:0`] as PartitionWatermarkReport
  }

  get global(): number | null {
    return this.snapshot().globalMs
  }

  #head(name: string): number | undefined {
    return this.#queues.get(name)?.[0]
  }

  #arrive(name: string): void {
    this.watermarks.headArrived(this.handle(name), this.#head(name) as number, this.#offsets.get(name) ?? 0, this.now)
  }
}
