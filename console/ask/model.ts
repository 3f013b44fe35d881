/**
 * The answers of the endpoints, as far as the console reads them. `docs/http.md` says what they mean, and
 * `test/types/answers.ts` holds them to the schemas.
 */

export interface Place {
  readonly lane?: string
  readonly node?: string
  readonly function?: string
  readonly topic?: string
  readonly partition?: number
  readonly offset?: number
  readonly [more: string]: unknown
}

export interface Stage {
  readonly stage: string
  readonly busy: number
  readonly idle: number
  readonly held: number
  readonly waiting: number
  readonly by?: string
  readonly place?: string
}

export interface Finding {
  readonly code: string
  readonly severity: string
  readonly sentence: string
  readonly since: string
  readonly place: Place
  readonly evidence: ReadonlyArray<{ readonly at: string; readonly field: string; readonly value: unknown }>
  readonly leadsTo: readonly string[]
  readonly next: string
}

export interface Why {
  readonly verdict: string
  readonly status: string
  readonly since: string
  readonly findings: readonly Finding[]
  readonly flow: readonly Stage[]
}

export interface TopicFlow {
  readonly topic: string
  readonly records: number
  readonly bytes: number
  readonly recordsPerSecond: number
}

export type Column = ReadonlyArray<number | null>

export interface History {
  readonly atMs: readonly number[]
  readonly recordsIn: Column
  readonly recordsOut: Column
  readonly lag: Column
  readonly commitMs: Column
  readonly watermarkDelayMs: Column
}

export interface NodeFlow {
  readonly node: string
  readonly type: string
  readonly subtopology: number
  readonly records: number
  readonly recordsPerSecond: number
  readonly byLane: readonly number[]
}

export interface LaneFlow {
  readonly lane: string
  readonly recordsPerSecond: number
  readonly queuedRecords: number
  readonly inFlight: number
  readonly node: string | null
  readonly busy: number
  readonly idle: number
  readonly held: number
  readonly waiting: number
}

export interface Flow {
  readonly timestamp: string
  readonly windowMs: number
  readonly sources: readonly TopicFlow[]
  readonly sinks: readonly TopicFlow[]
  readonly nodes: readonly NodeFlow[]
  readonly lanes: readonly LaneFlow[]
  readonly deadLetters: Readonly<Record<string, number>>
  readonly history: History | null
}

export interface State {
  readonly current: string
  readonly since: string
  readonly history: ReadonlyArray<{ readonly state: string; readonly from: string; readonly at: string }>
  readonly failure?: { readonly code: string; readonly message: string }
  readonly restore?: ReadonlyArray<{
    readonly store: string
    readonly partition: number
    readonly restoredRecords: number
    readonly remainingRecords: number
  }>
}

export interface Health {
  readonly status: string
  /** Why it is DOWN. */
  readonly error?: string
  readonly components: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly details: Readonly<Record<string, unknown>>
  }>
}

export interface Info {
  readonly app: { readonly applicationId: string; readonly lanes: number }
  readonly platform: { readonly version: string; readonly runtime: string }
  readonly broker: { readonly bootstrapServers: string; readonly connected: boolean; readonly fault: string | null }
  readonly uptime: { readonly startTime: string; readonly uptime: string }
  readonly endpoints: readonly string[]
}

export interface PartitionTime {
  readonly watermarkMs: number | null
  readonly idle: boolean
  readonly lastEventTimeMs: number | null
  readonly idlenessTimeoutMs: number
  readonly alignmentGroup: string | null
  readonly alignmentHeld: boolean
  readonly driftFromGroupMinMs: number | null
  readonly previewWatermarkMs?: number
  readonly headHeldSinceMs?: number
}

export interface Watermarks {
  readonly globalMs: number | null
  readonly alignmentGroupMins: Readonly<Record<string, number>>
  readonly alignmentBinding: {
    readonly group: string
    readonly partition: string
    readonly emptyLaggards: readonly string[]
    readonly sinceMs: number
  } | null
  readonly partitions: Readonly<Record<string, PartitionTime>>
}

export interface Offsets {
  readonly totalLag: number
  readonly sources: ReadonlyArray<{
    readonly topic: string
    readonly totalLag: number
    readonly partitions: ReadonlyArray<{
      readonly partition: number
      readonly committedOffset: number
      readonly logEndOffset: number
      readonly lag: number
      readonly withheld: number
    }>
  }>
}

export interface Consumer {
  readonly group: { readonly groupId: string; readonly memberId: string; readonly generationId: number }
  readonly lastCommitMs: number | null
  readonly assignment: Readonly<
    Record<string, { readonly buffered: number; readonly bufferCapacity: number; readonly paused: boolean }>
  >
}

export interface Barriers {
  readonly phase: string
  readonly phaseAgeMs: number
  readonly commitId: string | null
  readonly epoch: number
  readonly trigger: string | null
  readonly ageMs: number | null
  readonly queued: boolean
  readonly outstandingLanes: readonly string[]
  readonly lanes: ReadonlyArray<{
    readonly lane: string
    readonly acked: boolean
    readonly queuedRecords: number
    readonly node: string | null
    readonly at: { readonly topic: string; readonly partition: number; readonly offset: number } | null
  }>
  readonly restarts: {
    readonly used: number
    readonly max: number
    readonly windowMs: number
    readonly causes: readonly string[]
  }
  readonly last: ReadonlyArray<{
    readonly commitId: string
    readonly outcome: string
    readonly atMs: number
    readonly durationsMs: Readonly<Record<string, number>>
  }>
}

export interface Thread {
  readonly name: string
  readonly role: string
  readonly state: string
  readonly currentNode: string | null
  readonly stack: readonly string[]
}

export interface Threads {
  readonly timestamp: string
  readonly engineThreads: readonly Thread[]
  readonly platformThreads: ReadonlyArray<{
    readonly name: string
    readonly tid: number
    readonly state: string
    readonly cpuMs: number
  }>
}

export interface Stores {
  readonly rowsShown: boolean
  readonly stores: ReadonlyArray<{
    readonly store: string
    readonly kind: string
    readonly subtopologies: readonly number[]
    readonly global: boolean
    readonly changelog: boolean
    readonly changelogTopic: string | null
    readonly keySerde: string
    readonly valueSerde: string
    readonly rows: number
    readonly bytes: number
    readonly reads: number
    readonly writes: number
    readonly restore: ReadonlyArray<{
      readonly partition: number
      readonly restoredRecords: number
      readonly remainingRecords: number
    }>
  }>
}

export interface Row {
  readonly key: unknown
  readonly value: unknown
  readonly timestamp?: number
  readonly start?: number
  readonly end?: number
}

export interface StoreRows {
  readonly kind: string
  readonly rows: readonly Row[]
  readonly more: boolean
  readonly next: string | null
}

export interface HaStatus {
  readonly selfPodId: string
  readonly selfRole: string
  readonly selfState: string
  readonly selfRestarting: boolean
  readonly replicationLagRecords: number
  readonly replicationLagMs: number
  readonly readyStandbyCount: number
  readonly desiredStandbys: number
  readonly redundancyBelowDesired: boolean
  readonly tokenEpoch: number
  readonly tokenHolder: string
  readonly restartRequired: string | null
  readonly failoverPaused?: boolean
  readonly peers: ReadonlyArray<{
    readonly podId: string
    readonly role: string
    readonly state: string
    readonly replicationLagRecords: number
    readonly replicationLagMs: number
    readonly freshnessMs: number
    readonly failoverPriority: number
    readonly restarting: boolean
  }>
  readonly commands?: ReadonlyArray<{
    readonly commandOffset: number
    readonly command: string
    readonly target: string | null
    readonly issuer: string
    readonly outcome: string
    readonly reason: string | null
  }>
}

export interface License {
  readonly status: string
  readonly customerName: string | null
  readonly [field: string]: unknown
}

export interface OpenApi {
  readonly paths: Readonly<
    Record<
      string,
      Readonly<
        Record<
          string,
          {
            readonly summary: string
            readonly description: string
            readonly parameters?: ReadonlyArray<{
              readonly name: string
              readonly in: string
              readonly required: boolean
              readonly description: string
              readonly schema: Readonly<Record<string, unknown>>
            }>
          }
        >
      >
    >
  >
}

export interface Letter {
  readonly partition: number
  readonly offset: number
  readonly timestamp: string
  readonly reason: string
  readonly message: string
  readonly source: { readonly topic: string; readonly partition: number; readonly offset: number } | null
  readonly key: unknown
  readonly value: unknown
  readonly headers: ReadonlyArray<readonly [string, string | null]>
  readonly redriven: boolean
}

export interface Letters {
  readonly topic: string
  readonly letters: readonly Letter[]
  readonly seen: number
  readonly byReason: Readonly<Record<string, number>>
}

export interface Redriven {
  readonly matched: number
  readonly redriven: number
  readonly already: number
  readonly gone: number
  readonly more: boolean
  readonly ends: string
}

export interface KsNode {
  readonly name: string
  readonly type: 'source' | 'processor' | 'sink'
  readonly topics?: readonly string[]
  readonly topicPattern?: string
  readonly topic?: string
  readonly stores?: readonly string[]
  readonly successors?: readonly string[]
  readonly predecessors?: readonly string[]
}

export interface KsTopology {
  readonly subtopologies: ReadonlyArray<{ readonly id: number; readonly nodes: readonly KsNode[] }>
  readonly globalStores?: readonly unknown[]
}

export interface Topology {
  readonly split: string
  readonly boundaries: ReadonlyArray<{ readonly topic: string; readonly kind: string }>
}
