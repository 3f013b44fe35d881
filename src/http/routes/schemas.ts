/** JSON Schemas of the answers, as OpenAPI 3.1 takes them. Objects may grow fields; those listed are there. */
import { statuses as whyStatuses } from '../../view/diagnosis/finding.ts'
import { commitPhases } from '../../view/view.ts'
import { fieldDocs } from './field-docs.ts'
import { licenseStatuses } from '../license-seam.ts'
import {
  boolean,
  count,
  type Described,
  duration,
  integer,
  list,
  map,
  nullable,
  number,
  object,
  oneOf,
  type Schema,
  share,
  some,
  state,
  string,
  strings,
  threadState,
  timestamp,
  upDown,
} from './schema-parts.ts'
import { dataSchemas } from './schemas-data.ts'

export type { Schema } from './schema-parts.ts'

const healthReport = object({
  status: upDown,
  components: list(object({ name: string, status: upDown, details: some })),
  'error?': string,
})

const info = object({
  app: object({ applicationId: string, lanes: count }),
  platform: object({ version: string, vendor: string, runtime: string }),
  broker: object({
    bootstrapServers: string,
    applicationId: string,
    connected: boolean,
    since: timestamp,
    fault: nullable(string),
  }),
  uptime: object({ startTime: timestamp, uptime: duration }),
  state: object({ current: state, since: timestamp }),
  endpoints: strings,
  'watermark?': some,
  'offsets?': some,
  'consumer?': some,
  'topology?': some,
})

const license = object({
  status: oneOf(licenseStatuses),
  licenseId: nullable(string),
  tier: nullable(string),
  customerName: nullable(string),
  expiresAt: nullable(timestamp),
  daysRemaining: integer,
  machinesUsed: count,
  machinesAllowed: count,
  lastValidatedAt: nullable(timestamp),
  cachedJwtExpiresAt: nullable(timestamp),
  heartbeatLastSuccessAt: nullable(timestamp),
  consecutiveFailures: count,
  graceRemainingSeconds: count,
  modeOnline: boolean,
})

const stateView = object({
  current: state,
  since: timestamp,
  history: list(object({ state, from: state, at: timestamp })),
  'failure?': object({
    code: string,
    message: string,
    'record?': object({ topic: string, partition: count, offset: count }),
  }),
  'restore?': list(object({ store: string, partition: count, restoredRecords: count, remainingRecords: count })),
})

const topology = object({
  split: oneOf(['in-process', 'repartition-topics']),
  scheduledSources: list(
    object({
      name: string,
      subtopology: count,
      everyMs: nullable(integer),
      every: nullable(string),
      cron: nullable(string),
    }),
  ),
  subtopologies: list(
    object({
      id: count,
      level: count,
      global: boolean,
      sources: list(object({ name: string, kind: string, topics: strings, 'topicPattern?': string })),
      processors: list(object({ name: string, stores: strings })),
      sinks: list(object({ name: string, topic: nullable(string) })),
      stores: strings,
    }),
  ),
  boundaries: list(
    object({
      name: string,
      fromSubtopology: count,
      toSubtopology: count,
      source: string,
      kind: oneOf(['in-process', 'topic']),
      topic: string,
    }),
  ),
  stores: list(object({ name: string, kind: string, changelog: boolean, 'emit?': string })),
})

const describedNode = object({
  name: string,
  type: oneOf(['source', 'processor', 'sink']),
  'topics?': strings,
  'topicPattern?': string,
  'stores?': strings,
  'emit?': string,
  'topic?': string,
  'topicNameExtractor?': string,
  'successors?': strings,
  'predecessors?': strings,
})

const topologyDescription = object({
  subtopologies: list(object({ id: count, nodes: list(describedNode) })),
  'globalStores?': list(object({ source: describedNode, processor: describedNode })),
})

const watermarks = object({
  globalMs: nullable(integer),
  globalIso: nullable(timestamp),
  alignmentGroupMins: map(integer),
  alignmentBinding: nullable(object({ group: string, partition: string, emptyLaggards: strings, sinceMs: integer })),
  partitions: map(
    object({
      watermarkMs: nullable(integer),
      watermarkIso: nullable(timestamp),
      idle: boolean,
      lastEventTimeMs: nullable(integer),
      lastEventTimeIso: nullable(timestamp),
      idlenessTimeoutMs: count,
      alignmentGroup: nullable(string),
      alignmentHeld: boolean,
      driftFromGroupMinMs: nullable(integer),
      'previewWatermarkMs?': integer,
      'previewWatermarkIso?': nullable(timestamp),
      'headHeldSinceMs?': integer,
    }),
  ),
})

const offsets = object({
  totalLag: integer,
  sources: list(
    object({
      topic: string,
      totalLag: integer,
      partitions: list(
        object({ partition: count, committedOffset: integer, logEndOffset: integer, lag: integer, withheld: count }),
      ),
    }),
  ),
  changelogs: list(
    object({ topic: string, store: string, partitions: list(object({ partition: count, committedOffset: integer })) }),
  ),
})

const consumer = object({
  group: object({ groupId: string, memberId: string, generationId: integer, groupInstanceId: nullable(string) }),
  subscription: strings,
  lastCommitMs: nullable(integer),
  lastCommitIso: nullable(timestamp),
  assignment: map(object({ buffered: count, bufferCapacity: count, paused: boolean })),
})

const pauseResult = object({ status: oneOf(['pausing', 'resumed']), state })

const haStatus = object({
  selfPodId: string,
  selfRole: string,
  selfState: string,
  selfRestarting: boolean,
  replicationLagRecords: integer,
  replicationLagMs: integer,
  tailFreshnessMs: integer,
  tailCaughtUp: boolean,
  readyStandbyCount: count,
  desiredStandbys: count,
  redundancyBelowDesired: boolean,
  tokenEpoch: integer,
  tokenHolder: string,
  restartRequired: nullable(string),
  peers: list(
    object({
      podId: string,
      role: string,
      state: string,
      replicationLagRecords: integer,
      replicationLagMs: integer,
      diskFull: boolean,
      commandsRefused: count,
      generation: integer,
      freshnessMs: integer,
      failoverPriority: integer,
      restarting: boolean,
    }),
  ),
  notReady: nullable(string),
  failoverPaused: boolean,
  selfFailoverPriority: count,
  commands: list(
    object({
      commandOffset: count,
      command: string,
      target: nullable(string),
      force: boolean,
      issuer: string,
      outcome: oneOf(['PENDING', 'DONE', 'REJECTED', 'EXPIRED', 'UNKNOWN']),
      reason: string,
    }),
  ),
})

const haHistory = object({
  events: list(
    object({
      at: nullable(timestamp),
      event: oneOf(['TAKEOVER', 'PAUSE', 'RESUME', 'PRIORITY']),
      podId: nullable(string),
      tokenEpoch: count,
      cause: nullable(string),
      why: string,
      commandOffset: nullable(count),
      issuer: nullable(string),
      from: nullable(string),
    }),
  ),
})

const haAcknowledgement = object({
  command: oneOf(['SWITCH', 'PROMOTE', 'DEMOTE', 'PAUSE', 'RESUME', 'PRIORITY']),
  target: nullable(string),
  force: boolean,
  commandOffset: count,
})

const threads = object({
  timestamp,
  engineThreads: list(
    object({ name: string, role: string, state: threadState, currentNode: nullable(string), stack: strings }),
  ),
  platformThreads: list(object({ name: string, tid: integer, state: threadState, cpuMs: number })),
})

const barriers = object({
  phase: oneOf(commitPhases),
  phaseSinceMs: number,
  phaseAgeMs: count,
  commitId: nullable(string),
  epoch: integer,
  trigger: nullable(string),
  startedAtMs: nullable(number),
  ageMs: nullable(count),
  queued: boolean,
  outstandingLanes: strings,
  lanes: list(
    object({
      lane: string,
      acked: boolean,
      queuedRecords: integer,
      lastProgressMs: number,
      progressAgeMs: nullable(count),
      at: nullable(object({ topic: string, partition: count, offset: count })),
      node: nullable(string),
      'pendingRecords?': count,
      'mayPendRecords?': count,
      'recordsPerSecond?': number,
      'slowestCallMs?': number,
    }),
  ),
  aimMs: nullable(count),
  functions: list(object({ node: string, calls: count, waiting: count, limit: count })),
  transaction: nullable(some),
  restarts: object({ used: count, max: count, windowMs: count, causes: strings, 'codes?': strings }),
  last: list(
    object({
      commitId: string,
      outcome: oneOf(['COMMITTED', 'ABORTED']),
      at: timestamp,
      atMs: number,
      durationsMs: object({ align: number, flush: number, offsets: number, endTransaction: number, apply: number }),
    }),
  ),
})

const why = object({
  'application?': string,
  'process?': string,
  verdict: string,
  status: oneOf(whyStatuses),
  since: timestamp,
  findings: list(
    object({
      code: string,
      severity: oneOf(whyStatuses.filter((status) => status !== 'FLOWING')),
      sentence: string,
      place: some,
      since: timestamp,
      evidence: list(object({ at: string, field: string, value: {} })),
      leadsTo: strings,
      next: string,
      help: string,
    }),
  ),
  flow: list(
    object({
      stage: string,
      busy: share,
      idle: share,
      held: share,
      waiting: share,
      'by?': string,
      'place?': string,
    }),
  ),
})

const plain = {
  Error: object({ error: string, 'address?': string }),
  HealthReport: healthReport,
  Info: info,
  License: license,
  Configuration: some,
  ConfigurationSources: object({ sources: map(string) }),
  State: stateView,
  Topology: topology,
  TopologyDescription: topologyDescription,
  CompiledTopology: { type: 'object', description: 'Internal; may change between releases.' },
  Watermarks: watermarks,
  Offsets: offsets,
  Consumer: consumer,
  PauseResult: pauseResult,
  HaStatus: haStatus,
  HaHistory: haHistory,
  HaAcknowledgement: haAcknowledgement,
  Threads: threads,
  Barriers: barriers,
  Why: why,
  ...dataSchemas,
  OpenApi: object({ openapi: string, info: some, paths: some }),
} as const satisfies Readonly<Record<string, Schema>>
export type SchemaName = keyof typeof plain

/** What an endpoint answers with, as its schema says. */
export type Answer<Name extends SchemaName> = Described<(typeof plain)[Name]>

/** Every path of a schema with what stands there, in order: objects, lists (`[]`) and maps (`*`) are walked through. */
export function fieldsOf(schema: Schema, path = ''): Array<{ path: string; schema: Schema; optional: boolean }> {
  const inner = nullableOf(schema)
  const properties = inner.properties as Readonly<Record<string, Schema>> | undefined
  if (properties !== undefined) {
    const required = new Set(inner.required as readonly string[])
    return Object.entries(properties).flatMap(([name, each]) => {
      const found = fieldsOf(each, path === '' ? name : `${path}.${name}`)
      return found.map((field) => ({ ...field, optional: field.optional || !required.has(name) }))
    })
  }
  if (inner.items !== undefined) return fieldsOf(inner.items as Schema, `${path}[]`)
  if (inner.additionalProperties !== undefined) return fieldsOf(inner.additionalProperties as Schema, `${path}.*`)
  return [{ path, schema, optional: false }]
}

function nullableOf(schema: Schema): Schema {
  const [first] = (schema.anyOf ?? [schema]) as readonly Schema[]
  return first ?? schema
}

/** The same schema with the meaning of each field written into it. */
function described(schema: Schema, docs: Readonly<Record<string, string>>, path: string): Schema {
  const doc = docs[path]
  const properties = schema.properties as Readonly<Record<string, Schema>> | undefined
  const entries = Object.entries(properties ?? {}).map(([name, each]) => [
    name,
    described(each, docs, path === '' ? name : `${path}.${name}`),
  ])
  const { anyOf, items, additionalProperties } = schema as Readonly<Record<string, Schema | readonly Schema[]>>
  return {
    ...schema,
    ...(doc === undefined ? {} : { description: doc }),
    ...(properties === undefined ? {} : { properties: Object.fromEntries(entries) }),
    ...(anyOf === undefined ? {} : { anyOf: (anyOf as readonly Schema[]).map((each) => described(each, docs, path)) }),
    ...(items === undefined ? {} : { items: described(items as Schema, docs, `${path}[]`) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: described(additionalProperties as Schema, docs, `${path}.*`) }),
  }
}

/** All schemas by name, with the meaning of their fields. */
export const schemas = Object.fromEntries(
  Object.entries(plain).map(([name, schema]) => [name, described(schema, fieldDocs[name] ?? {}, '')]),
) as Readonly<Record<SchemaName, Schema>>
