/** Tells of the watermarks what is in force at a moment. */
import type { PartitionKey } from '../base/ids.ts'
import type { Heads, HeadWait } from './heads.ts'
import type { Holds } from './holds.ts'
import type { IdleClocks } from './idleness.ts'
import { type PartitionWatermarks, unknown } from './partition-watermarks.ts'
import type { PartitionNames } from './partition-names.ts'
import {
  type AlignmentBindingReport,
  type OrderWaitReport,
  type PartitionWatermarkReport,
  saturatingDifference,
  WallClockOffset,
  type WatermarkReport,
} from './watermark-report.ts'

export interface WatermarkParts {
  readonly names: PartitionNames
  readonly heads: Heads
  readonly marks: PartitionWatermarks
  readonly holds: Holds
  readonly idle: IdleClocks
}

export class WatermarkSnapshots {
  readonly #parts: WatermarkParts
  readonly #wall = new WallClockOffset()

  constructor(parts: WatermarkParts) {
    this.#parts = parts
  }

  /** `binding`: the partition whose hold stops all dispatch, -1 for none. */
  take(binding: number, now: number, wallNow: number): WatermarkReport {
    this.#wall.observe(now, wallNow)
    const { names, heads, holds, marks } = this.#parts
    const wait = heads.longestWait(names.slots)
    const partitions: Record<PartitionKey, PartitionWatermarkReport> = {}
    const alignmentGroupMins: Record<string, number> = {}
    for (const p of names.slots) {
      const group = holds.groupName(p)
      let groupMin: number | undefined
      if (group !== null) {
        groupMin = alignmentGroupMins[group] ?? holds.groupMin(p)
        if (groupMin !== undefined) alignmentGroupMins[group] = groupMin
      }
      partitions[names.key(p)] = this.#partition(p, groupMin, now)
    }
    return {
      globalMs: marks.undecided ? null : marks.global,
      ...(wait && { orderWait: this.#orderWait(wait) }),
      alignmentGroupMins,
      alignmentBinding: this.#binding(binding),
      partitions,
    }
  }

  #orderWait({ held, awaited, byWriters, since }: HeadWait): OrderWaitReport {
    const { names } = this.#parts
    return { held: names.key(held), awaited: names.key(awaited), byWriters, sinceMs: this.#wall.epochMs(since) }
  }

  #partition(p: number, groupMin: number | undefined, now: number): PartitionWatermarkReport {
    const { heads, holds, marks, idle } = this.#parts
    const watermark = marks.watermark(p)
    const lastEvent = holds.lastEvent(p)
    const known = watermark !== unknown
    const report: PartitionWatermarkReport = {
      watermarkMs: known ? watermark : null,
      idle: idle.isIdle(p),
      idleTotalMs: idle.idleMs(p, now),
      lastEventTimeMs: Number.isNaN(lastEvent) ? null : this.#wall.epochMs(lastEvent),
      idlenessTimeoutMs: idle.timeoutMs(p),
      alignmentGroup: holds.groupName(p),
      alignmentHeld: heads.has(p) && holds.isHeld(p),
      alignmentHeldTotalMs: holds.heldMs(p, now),
      driftFromGroupMinMs: known && groupMin !== undefined ? saturatingDifference(watermark, groupMin) : null,
    }
    const behindSince = heads.behindSince(p)
    if (!Number.isNaN(behindSince)) {
      const counted = marks.counted(p)
      if (counted > watermark) report.previewWatermarkMs = counted
      report.headHeldSinceMs = this.#wall.epochMs(behindSince)
    }
    if (marks.hasCeiling(p)) report.isAnnounced = true
    const ahead = marks.ahead(p)
    if (ahead !== undefined) {
      const { offset, timestampMs, at } = ahead
      report.ahead = { offset, timestampMs, sinceMs: this.#wall.epochMs(at) }
    }
    return report
  }

  #binding(p: number): AlignmentBindingReport | null {
    const { names, holds } = this.#parts
    const group = p < 0 ? null : holds.groupName(p)
    if (group === null) return null
    const laggards = holds.laggards(p).sort((a, b) => names.compare(a, b))
    return {
      group,
      partition: names.key(p),
      emptyLaggards: laggards.map((q) => names.key(q)),
      sinceMs: this.#wall.epochMs(holds.heldSince(p)),
    }
  }
}
