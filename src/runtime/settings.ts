/** Makes the settings of the threads from the configuration. */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { memoryBytes } from './engine/memory.ts'
import { join } from 'node:path'
import type { CounterLayout } from '../base/counters.ts'
import type { Config } from '../config/config.ts'
import type { EngineSettings } from '../engine/settings.ts'
import { haEngineSettings } from './ha.ts'
import type { ErrorPolicies } from '../lanes/tasks/error-policy.ts'
import type { WriteBehindOptions } from '../lanes/stores/store-writer.ts'
import type { CompiledTopology } from '../topology/compiled.ts'
import { planOf } from '../topology/plan.ts'

export function laneCount(config: Config): number {
  return config.get('engine.lanes.count') ?? Math.max(2, availableParallelism())
}

export function policiesOf(config: Config, applicationId: string): ErrorPolicies {
  return {
    decoding: config.get('errors.decoding'),
    processing: config.get('errors.processing'),
    producing: config.get('errors.producing'),
    dropped: config.get('errors.dropped'),
    deadLetterTopic: config.get('errors.dead-letter-topic') ?? `${applicationId}-dead-letters`,
  }
}

/** What trickles in is fetched so often between two commits, as every request wakes the broker, the engine and a lane. */
const requestsPerIdleCommit = 5
const requestsPerCommit = 2

/** Where nothing is configured, the write buffer takes at most one in this many bytes of the memory. */
const partOfMemory = 4

/** How much state each lane may hold that is committed and not written. */
export function writeBehindOf(config: Config): WriteBehindOptions {
  const key = 'engine.state.write-buffer-bytes'
  const asked = config.get(key)
  const most = config.isSet(key) ? asked : Math.min(asked, memoryBytes() / partOfMemory)
  const bytes = Math.floor(most / laneCount(config))
  return { bytes, intervalMs: config.get('engine.state.write-interval-ms'), rowsPerStep: 8192 }
}

export function isDurable(config: Config): boolean {
  return config.get('engine.state.store') === 'lmdb'
}

/** The topics that sinks name. Those that a function chooses become known as records come. */
export function sinkTopics(topology: CompiledTopology): string[] {
  const topics = new Set<string>()
  for (const { spec } of topology.nodes)
    if (spec.op === 'sink' && typeof spec.topic === 'string') topics.add(spec.topic)
  return [...topics].sort()
}

export function counterLayout(topology: CompiledTopology): CounterLayout {
  const sources = topology.sources.filter((source) => source.kind === 'topics')
  return {
    nodes: topology.nodes.length,
    subtopologies: topology.subtopologies.length,
    stores: [...topology.stores.keys()],
    sourceTopics: [...new Set(sources.flatMap((source) => source.topics))].sort(),
    sinkTopics: sinkTopics(topology),
  }
}

/**
 * The identity under which a restarted process takes over from its predecessor at once. Where none is configured and
 * stores are durable, it is kept in the state folder; otherwise a process has a fresh one every time.
 */
export function instanceId(config: Config, applicationId: string): string {
  const configured = config.get('engine.instance-id')
  if (configured !== null) return configured
  if (!isDurable(config)) return 'main'
  const folder = join(config.get('engine.state.dir'), applicationId)
  const file = join(folder, 'instance-id')
  try {
    const known = readFileSync(file, 'utf8').trim()
    // One that is none of ours was damaged: another one costs a wait for the old one's time-outs, no record.
    if (/^[A-Za-z0-9._-]{1,249}$/.test(known)) return known
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const made = randomUUID()
  writeFileSync(file, `${made}\n`)
  return made
}

export function engineSettings(config: Config, applicationId: string, topology: CompiledTopology): EngineSettings {
  const policies = policiesOf(config, applicationId)
  const usesDeadLetters = [policies.decoding, policies.processing, policies.producing, policies.dropped].includes(
    'dead-letter',
  )
  const sinks = sinkTopics(topology)
  const split = config.get('topology.sub-topology-split')
  const ha = haEngineSettings(config)
  const advertised = config.get('runtime.http.advertised-address')
  const instance = ha?.podId ?? instanceId(config, applicationId)
  // Where sub-topologies hand over in the process, one process has all partitions: the application's name is enough.
  const named = split === 'in-process' || config.get('engine.instance-id') !== null || isDurable(config)
  return {
    applicationId,
    instanceId: named ? instance : randomUUID(),
    // All pods of a hot standby take turns in one place of the group.
    groupInstanceId: ha ? `${applicationId}-active` : named ? `${applicationId}-${instance}` : null,
    hostName: hostname(),
    clientId: config.get('broker.client-id') ?? applicationId,
    ...(advertised !== null && { advertisedAddress: advertised.replace(/\/$/, '') }),
    lanes: laneCount(config),
    split,
    guarantee: config.get('engine.processing.guarantee'),
    durableStores: isDurable(config),
    lostChangelogs: config.get('engine.state.lost-changelogs'),
    idlenessMs: config.get('watermark.idleness-timeout'),
    maxTaskIdleMs: config.get('engine.processing.max-task-idle-ms'),
    bufferedRecordsPerPartition: config.get('engine.processing.buffered-records-per-partition'),
    bufferedMaxBytes: config.get('engine.processing.buffered-max-bytes'),
    maxPollRecords: config.get('consumer.max.poll.records'),
    fetchMaxWaitMs: config.get('consumer.fetch.max.wait.ms'),
    // What comes waits for the next commit: a part of the shortest wait for that is hardly seen.
    fetchPaceMs: Math.min(
      config.get('commit-barrier.idle-interval-ms') / requestsPerIdleCommit,
      config.get('commit-barrier.interval-ms') / requestsPerCommit,
    ),
    fetchMaxBytes: config.get('consumer.fetch.max.bytes'),
    partitionFetchMaxBytes: config.get('consumer.max.partition.fetch.bytes'),
    laneQueueBytes: config.get('lane.queue-bytes'),
    uncommittedMaxBytes: config.get('lane.uncommitted-max-bytes'),
    maxDirtyRows: config.get('engine.emit.max-dirty-rows'),
    commitIntervalMs: config.get('commit-barrier.interval-ms'),
    commitIdleIntervalMs: config.get('commit-barrier.idle-interval-ms'),
    barrierTimeoutMs: config.get('commit-barrier.timeout-ms'),
    maxRestarts: config.get('commit-barrier.max-engine-restarts'),
    restartWindowMs: config.get('commit-barrier.restart-window-ms'),
    resolveTimeoutMs: config.get('commit-barrier.resolve-timeout-ms'),
    transactionTimeoutMs: config.get('producer.transaction.timeout.ms'),
    sessionTimeoutMs: config.get('consumer.session.timeout.ms'),
    rebalanceTimeoutMs: config.get('consumer.rebalance.timeout.ms'),
    heartbeatIntervalMs: config.get('consumer.heartbeat.interval.ms'),
    metadataMaxAgeMs: config.get('consumer.metadata.max.age.ms'),
    defaultPartitions: config.get('broker.embedded.partitions'),
    offsetsReset: config.get('offsets.reset'),
    sourceReset: config.get('source.reset'),
    sinkTopics: usesDeadLetters ? [...sinks, policies.deadLetterTopic] : sinks,
    deadLetterTopic: usesDeadLetters ? policies.deadLetterTopic : null,
    plan: planOf(topology),
    ...(ha && { ha }),
  }
}
