import type { CountersView } from '../base/counters.ts'
import type { HistogramValue } from '../base/histograms.ts'
import type {
  BarrierSnapshot,
  ConsumerSnapshot,
  EngineView,
  OffsetsSnapshot,
  StateSnapshot,
  WatermarkSnapshot,
} from '../view/view.ts'
import type { Finding, StageTimes } from '../view/diagnosis/finding.ts'
import type { HaMetrics } from '../ha/contract.ts'
import type { HaStatus } from '../ha/shown/view.ts'
import type { CompiledTopology } from '../topology/compiled.ts'

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** What the metrics read of the license; the state that `/license` shows is one. */
export interface LicenseFigures {
  readonly status: string
  readonly expiresAt: string | null
  readonly machinesUsed: number
  readonly machinesAllowed: number
  readonly lastValidatedAt: string | null
  readonly heartbeatLastSuccessAt: string | null
  readonly consecutiveFailures: number
  readonly graceRemainingSeconds: number
  readonly modeOnline: boolean
}

/** What the metrics read of high availability; the state that `/ha/status` shows is one. */
export type HaFigures = Omit<HaStatus, 'selfPodId' | 'tokenHolder' | 'peers'>

export interface HealthFigures {
  report(probe: 'live' | 'ready'): {
    readonly components: ReadonlyArray<{ readonly name: string; readonly status: 'UP' | 'DOWN' }>
  }
}

/** One moment's snapshots: every row of a scrape reads the same. */
export interface Moment {
  readonly nowMs: number
  readonly view: EngineView
  readonly topology: CompiledTopology | null
  readonly state: StateSnapshot
  readonly watermarks: WatermarkSnapshot | null
  readonly offsets: OffsetsSnapshot | null
  readonly consumer: ConsumerSnapshot | null
  readonly barriers: BarrierSnapshot | null
  readonly counters: CountersView | null
  readonly health: HealthFigures
  readonly license: LicenseFigures
  readonly ha: HaFigures | null
  /** Null without high availability. */
  readonly haCounts: HaMetrics | null
  readonly haMode: string
  readonly version: string
  readonly findings: readonly Finding[]
  readonly stageTimes: readonly StageTimes[]
  readonly transitions: readonly Sample[]
}

export interface MetricRow {
  readonly name: string
  readonly type: 'counter' | 'gauge'
  readonly labels: readonly string[]
  readonly help: string
  /** Where the value comes from, for the reference page. */
  readonly source: 'state' | 'snapshot' | 'shared counters' | 'health' | 'diagnosis' | 'license' | 'high availability'
  readonly samples: (moment: Moment) => Iterable<Sample>
}

export interface HistogramSample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: HistogramValue
}

/** A distribution, read from shared counters. */
export interface HistogramRow {
  readonly name: string
  readonly labels: readonly string[]
  readonly help: string
  readonly bounds: readonly number[]
  readonly samples: (counters: CountersView, topology: CompiledTopology | null) => Iterable<HistogramSample>
}

export const noLabels: Readonly<Record<string, string>> = {}
export const single = (value: number): Sample[] => [{ labels: noLabels, value }]
export const flag = (value: boolean): number => (value ? 1 : 0)

/** The partition's topic and number as labels. A topic's name may hold no colon, its number is what follows the last. */
export function partitionLabels(key: string): { topic: string; partition: string } {
  const colon = key.lastIndexOf(':')
  return { topic: key.slice(0, colon), partition: key.slice(colon + 1) }
}
