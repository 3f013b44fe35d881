/** What the diagnosis answers with; JSON-ready. */
export const statuses = ['FLOWING', 'SLOW', 'STANDING', 'NOT_MEANT_TO_RUN', 'FAILED'] as const
export type Status = (typeof statuses)[number]
export type Severity = Exclude<Status, 'FLOWING'>

export interface Place {
  readonly lane?: string
  readonly node?: string
  readonly function?: string
  readonly topic?: string
  readonly partition?: number
  readonly offset?: number
  readonly keyHash?: string
  readonly store?: string
  readonly group?: string
  readonly broker?: string
  readonly pod?: string
}

export interface Evidence {
  /** Path of the endpoint that shows it. */
  readonly at: string
  readonly field: string
  readonly value: unknown
}

/** What a row of the table has found. */
export interface Found {
  readonly sentence: string
  readonly sinceMs: number
  readonly place: Place
  readonly evidence: readonly Evidence[]
  /** Where more is known than the row's own advice. */
  readonly next?: string
  readonly severity?: Severity
}

export interface Finding extends Found {
  readonly code: string
  readonly severity: Severity
  readonly next: string
  /** Codes of the findings that this one explains. */
  readonly leadsTo: readonly string[]
  /** Another finding explains it. */
  readonly explained: boolean
  readonly help: string
}

/** A share of the last ten seconds for each, together 1. */
export interface FlowStage {
  readonly stage: string
  readonly busy: number
  readonly idle: number
  /** By what is behind it. */
  readonly held: number
  /** For asynchronous functions. */
  readonly waiting: number
  /** Code of the finding that holds it, and its place. */
  readonly by?: string
  readonly place?: string
}

export const stageTimes = ['busy', 'idle', 'held', 'waiting'] as const

/** What a stage has spent its time with since the process began, together the wall clock. Lanes count their own. */
export interface StageTimes {
  readonly stage: string
  readonly ms: Readonly<Record<(typeof stageTimes)[number], number>>
}

export interface Verdict {
  /** Who speaks. */
  readonly application?: string
  readonly process?: string
  readonly verdict: string
  readonly status: Status
  /** When the cause began; without one, when the state was entered. */
  readonly sinceMs: number
  readonly findings: readonly Finding[]
  readonly flow: readonly FlowStage[]
  readonly times?: readonly StageTimes[]
}
