/** The rules of watermarks written down as they are told, with no thought of speed: what the real ones must agree with. */
import type { PartitionTiming } from '../../../src/time/partition-watermarks.ts'

export interface NaivePartition {
  readonly name: string
  readonly timing: PartitionTiming
  /** Partitions of one task wait for one another. */
  task: number | undefined
  /** What lies at the broker and was not fetched; undefined: nobody has looked. */
  lag: number | undefined
  maxTs: number
  head: { timestamp: number; offset: number } | null
  seenEmpty: boolean
  idle: boolean
  /** Idle time gathered, and since when more gathers; undefined while the clock stands. */
  accrued: number
  since: number | undefined
}

const numberOf = (name: string): number => Number(name.split(':')[1])

export class NaiveWatermarks {
  readonly partitions: NaivePartition[] = []
  global = Number.NEGATIVE_INFINITY
  paused = false
  holds = new Map<string, { offset: number; since: number }>()

  wm(p: NaivePartition): number {
    return p.maxTs - p.timing.maxOutOfOrdernessMs
  }

  /** Whether its head waits for a partition of its task. */
  waits(p: NaivePartition): boolean {
    if (p.task === undefined) return false
    return this.partitions.some((q) => q.task === p.task && q.head === null && q.lag !== 0)
  }

  oldest(): NaivePartition | undefined {
    const order = (a: NaivePartition, b: NaivePartition): number =>
      (a.head?.timestamp ?? 0) - (b.head?.timestamp ?? 0) || numberOf(a.name) - numberOf(b.name)
    return this.partitions.filter((p) => p.head !== null && !this.waits(p)).sort(order)[0]
  }

  eff(p: NaivePartition): number {
    if (p.head === null || p === this.oldest()) return this.wm(p)
    return Math.max(this.wm(p), p.head.timestamp - p.timing.maxOutOfOrdernessMs)
  }

  advance(): void {
    const counted = this.partitions.filter((p) => !p.idle).map((p) => this.eff(p))
    if (counted.length === 0 || counted.includes(Number.NEGATIVE_INFINITY)) return
    this.global = Math.max(this.global, Math.min(...counted))
  }

  laggards(p: NaivePartition): NaivePartition[] {
    const { alignment } = p.timing
    if (!alignment || p.head === null) return []
    const candidate = Math.max(this.wm(p), p.head.timestamp - p.timing.maxOutOfOrdernessMs)
    return this.partitions.filter(
      (q) =>
        q !== p &&
        q.timing.alignment?.group === alignment.group &&
        !q.idle &&
        (q.head === null ? !(q.maxTs === Number.NEGATIVE_INFINITY && q.seenEmpty) : this.waits(q)) &&
        this.eff(q) < candidate - alignment.maxDriftMs,
    )
  }

  pick(now: number): NaivePartition | undefined {
    this.advance()
    const c = this.oldest()
    if (this.paused || !c) return undefined
    for (const [name, hold] of this.holds) {
      const p = this.partitions.find((each) => each.name === name)
      if (!p || p.head?.offset !== hold.offset || this.laggards(p).length === 0) this.holds.delete(name)
    }
    if (this.laggards(c).length === 0) return c
    if (!this.holds.has(c.name)) this.holds.set(c.name, { offset: c.head?.offset ?? -1, since: now })
    return undefined
  }

  dispatch(p: NaivePartition, next: { timestamp: number; offset: number } | null, now: number): number {
    p.maxTs = Math.max(p.maxTs, p.head?.timestamp ?? 0)
    this.advance()
    p.head = next
    p.accrued = 0
    p.since = undefined
    this.clock(p, now)
    return this.global
  }

  arrive(p: NaivePartition, head: { timestamp: number; offset: number }, now: number): void {
    p.head = head
    p.idle = false
    this.clock(p, now)
  }

  evidence(p: NaivePartition, lag: number, now: number): void {
    p.seenEmpty = lag === 0
    p.lag = lag
    this.clock(p, now)
  }

  setPaused(paused: boolean, now: number): void {
    this.paused = paused
    for (const p of this.partitions) this.clock(p, now)
  }

  tick(now: number): void {
    const due = this.partitions.filter((p) => p.since !== undefined && p.accrued + now - p.since >= p.timing.idlenessMs)
    const isSilent = (p: NaivePartition): boolean => p.maxTs === Number.NEGATIVE_INFINITY
    // Those without a record first: what the others have reached counts, be they idle at the same moment.
    for (const step of [due.filter(isSilent), due.filter((p) => !isSilent(p))]) {
      for (const p of step) {
        p.idle = true
        p.since = undefined
      }
      this.advance()
    }
  }

  binding(): { partition: string; emptyLaggards: string[]; since: number } | null {
    const c = this.oldest()
    const hold = c && this.holds.get(c.name)
    if (!c || !hold || this.paused || hold.offset !== c.head?.offset) return null
    const emptyLaggards = this.laggards(c).map((q) => q.name)
    return emptyLaggards.length === 0
      ? null
      : { partition: c.name, emptyLaggards: emptyLaggards.sort((a, b) => numberOf(a) - numberOf(b)), since: hold.since }
  }

  /** Lets the idle clock run or stand, as the partition's state says. */
  private clock(p: NaivePartition, now: number): void {
    const runs = p.timing.idlenessMs > 0 && p.head === null && p.seenEmpty && !this.paused && !p.idle
    if (runs && p.since === undefined) p.since = now
    if (!runs && p.since !== undefined) {
      p.accrued += now - p.since
      p.since = undefined
    }
  }
}
