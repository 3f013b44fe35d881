/**
 * Takes what the engine shows and makes the facts of it: what it remembers from one look to the next are the times since
 * when something has been so, and what was usual before. It asks nobody and waits for nothing.
 */
import { type CountersView, dropReasons, dropSlot, engineIndex } from '../../base/counters.ts'
import { type PartitionKey, partitionKey, type TopicPartition } from '../../base/ids.ts'
import { clockToleranceMs } from '../../time/watermark-report.ts'
import type { OperatorSpec } from '../../topology/operator-spec.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { BrokerNode } from '../../broker/port.ts'
import type { BarrierSnapshot, EngineView } from '../view.ts'
import type { CommitFacts, EarlierFailure, Facts, PartitionFacts, SettingsFacts, TransactionHolder } from './facts.ts'
import { owingFor } from './owing.ts'
import { LaneLook, type LaneSample, type SeenFunction } from './lane-look.ts'

/** What is known beside the engine; filled by who composes the process. */
export interface Around {
  readonly view: EngineView
  readonly license: () => Omit<Facts['license'], 'sinceMs'>
  readonly ha: () => Facts['ha']
  /** Left out where no schema registry is used. */
  readonly schemas?: () => Facts['schemas']
  /** Left out where no other process can take the identity. */
  readonly identity?: () => Facts['identity']
  readonly commitIntervalMs: number
  /** Null where the engine does not write in transactions. */
  readonly transactionalId?: string | null
  /** Which process this is, for whoever asks the wrong one. */
  readonly process?: string
  readonly settings?: SettingsFacts
  /** Whose open transaction has held a partition back since then; null while that is not known. */
  readonly holder?: (at: TopicPartition, sinceMs: number) => TransactionHolder | null
  readonly earlier: () => readonly EarlierFailure[]
  /** Takes secrets out of free text. */
  readonly mask: (text: string) => string
}

export type KeptFromRunning = Pick<Facts, 'missedMs' | 'lateMs' | 'wokeMs'>
const neverKept: KeptFromRunning = { missedMs: 0, lateMs: 0 }

interface PartitionMemory {
  /** Grows with every record. */
  mark: number
  quietSinceMs: number
  longestQuietMs: number
  doneSinceMs: number
  fullSinceMs: number | null
  withheldSinceMs: number | null
  /** Up to where the open transactions of others let it be read. */
  readableTo: number
}

/** Operators that wait for event time, or drop what comes behind it. */
const inEventTime = new Set(['windowAggregate', 'suppress', 'joinWindow', 'streamJoin', 'selfJoin'])

export function usesEventTime(topology: CompiledTopology | null, timersPending: number): boolean {
  if (timersPending > 0) return true
  return topology?.nodes.some(({ spec }) => inEventTime.has(spec.op)) ?? false
}

/** What the application calls the function that a node runs: a name that its developers know. */
function functionOfNode(spec: OperatorSpec): string | null {
  const given = 'fn' in spec ? spec.fn : 'predicate' in spec ? spec.predicate : 'joiner' in spec ? spec.joiner : null
  const name = spec.op === 'process' ? spec.factory.name : (given?.name ?? '')
  return name === '' ? null : name
}

/** Whoever looks does so about once a second. */
const oneLookMs = 2000

const lateReasons = [dropReasons.indexOf('late'), dropReasons.indexOf('late_window')]

export class Look {
  readonly #o: Around
  readonly #lanes = new Map<number, LaneLook>()
  readonly #partitions = new Map<PartitionKey, PartitionMemory>()
  #restartsSinceMs: number | null = null
  /** A fetch that was owed while the connection was up, and when it was last seen so. */
  #owedFetch = { sinceMs: Number.POSITIVE_INFINITY, seenMs: Number.NEGATIVE_INFINITY }
  #owed: CommitFacts['owed'] = {}
  #restore: { readonly atMs: number; readonly done: number } | null = null
  #license = { status: '', sinceMs: 0 }
  #fullSinceMs: number | null = null
  #troubleSinceMs: number | null = null
  #noneActiveSinceMs: number | null = null
  #refusedSinceMs: number | null = null
  #dispatch = { records: -1, atMs: 0 }
  /** Late records when the watermark was first seen ahead of the clock. */
  #lateBefore: number | null = null

  constructor(around: Around) {
    this.#o = around
  }

  /** A broker that stands still is so from the fetch on that it owes, not from when that was given up. */
  #brokerSince(now: number, { connected, sinceMs, nodes = [] }: ReturnType<EngineView['broker']>): number {
    if (!connected && sinceMs - this.#owedFetch.seenMs <= oneLookMs) return Math.min(sinceMs, this.#owedFetch.sinceMs)
    const fetches = nodes.flatMap((node) => node.calls.filter(({ kind }) => kind === 'fetch'))
    const oldest = Math.min(...fetches.map((call) => call.sinceMs))
    const dueMs = oneLookMs + (this.#o.settings?.fetchMaxWaitMs ?? 0)
    if (connected && now - oldest >= dueMs) this.#owedFetch = { sinceMs: oldest, seenMs: now }
    return sinceMs
  }

  /** `functions`: what lanes were last seen in, by their names. `kept`: whoever looks, from looking. */
  take(now: number, functions: ReadonlyMap<string, SeenFunction>, kept = neverKept): Facts {
    const { view, mask } = this.#o
    const state = view.state()
    const counters = view.counters()
    const barriers = view.barriers()
    const topology = view.topology()
    const watermarks = view.watermarks()
    const lanes = this.#takeLanes(now, counters, barriers, topology, functions)
    const { failure } = state
    const broker = view.broker()
    return {
      applicationId: view.applicationId,
      ...(typeof this.#o.transactionalId === 'string' && { transactionalId: this.#o.transactionalId }),
      ...(this.#o.process !== undefined && { process: this.#o.process }),
      ...(this.#o.settings !== undefined && { settings: this.#o.settings }),
      state: state.current,
      stateSinceMs: state.sinceMs,
      failure: failure === null ? null : { ...failure, message: mask(failure.message) },
      earlier: this.#o.earlier(),
      pausedBy: state.pause ?? null,
      restore: state.restore,
      restoreRate: this.#restoreRate(now, state),
      broker: {
        connected: broker.connected,
        sinceMs: this.#brokerSince(now, broker),
        address: broker.bootstrapServers,
        lastError: broker.fault === null ? null : mask(broker.fault),
        trouble: this.#takeTrouble(now, broker),
        nodes: (broker.nodes ?? []).map((node) => maskedNode(node, mask)),
      },
      engineSilentMs: view.engineSilenceMs(),
      ...kept,
      dispatchedAtMs: this.#dispatched(now, counters),
      diskFull: this.#takeDiskFull(now),
      lanes: lanes.map(({ facts }) => facts),
      partitions: this.#takePartitions(now),
      usesEventTime: usesEventTime(
        topology,
        lanes.reduce((sum, { timersPending }) => sum + timersPending, 0),
      ),
      globalWatermarkMs: watermarks?.globalMs ?? null,
      orderWait: watermarks?.orderWait ?? null,
      alignment: watermarks?.alignmentBinding ?? null,
      lateRecords: this.#late(now, watermarks?.globalMs ?? null, counters),
      commit: barriers === null ? null : this.#commit(now, barriers, broker.nodes ?? []),
      groupChanges: view.consumer()?.changes ?? [],
      identity: this.#o.identity?.() ?? null,
      license: this.#takeLicense(now),
      ha: this.#takeHa(now),
      schemas: this.#o.schemas?.() ?? null,
    }
  }

  #takeLanes(
    now: number,
    counters: CountersView | null,
    barriers: BarrierSnapshot | null,
    topology: CompiledTopology | null,
    functions: ReadonlyMap<string, SeenFunction>,
  ): LaneSample[] {
    if (counters === null) return []
    const topics = barriers?.originTopics ?? []
    const nodeName = (node: number): string | null => topology?.nodes[node]?.name ?? null
    const functionName = (node: number): string | null => {
      const compiled = topology?.nodes[node]
      return compiled === undefined ? null : functionOfNode(compiled.spec)
    }
    const restarts = counters.engine[engineIndex.restarts] as number
    return counters.lanes.map((block, lane) => {
      const memory = this.#lanes.get(lane) ?? new LaneLook(lane, block, counters.layout)
      this.#lanes.set(lane, memory)
      return memory.take(now, topics, nodeName, functions.get(`lane-${lane}`), functionName, restarts)
    })
  }

  #takePartitions(now: number): PartitionFacts[] {
    const { view } = this.#o
    const watermarks = view.watermarks()?.partitions ?? {}
    const assignment = view.consumer()?.assignment ?? {}
    const facts: PartitionFacts[] = []
    const seen = new Set<PartitionKey>()
    for (const { topic, partitions } of view.offsets()?.sources ?? []) {
      for (const { partition, committedOffset, logEndOffset, withheld } of partitions) {
        const key = partitionKey(topic, partition)
        const marks = watermarks[key]
        const buffer = assignment[key]
        if (marks === undefined && buffer === undefined) continue
        seen.add(key)
        const isFull = buffer?.paused === true && buffer.buffered >= buffer.bufferCapacity
        const memory = this.#remember(key, logEndOffset, isFull, now)
        if (logEndOffset > committedOffset) memory.doneSinceMs = now
        const readableTo = logEndOffset - withheld
        // One transaction may follow another without a gap: each that ends lets more be read.
        const isSame = withheld > 0 && readableTo === memory.readableTo
        memory.withheldSinceMs = withheld === 0 ? null : isSame ? (memory.withheldSinceMs ?? now) : now
        memory.readableTo = readableTo
        facts.push({
          topic,
          partition,
          lag: Math.max(0, logEndOffset - committedOffset),
          committedOffset,
          buffered: (buffer?.buffered ?? 0) + (buffer?.sorted ?? 0),
          bufferCapacity: buffer?.bufferCapacity ?? 0,
          withheld,
          withheldSinceMs: memory.withheldSinceMs,
          withheldBy: this.#holder({ topic, partition }, memory.withheldSinceMs),
          fullSinceMs: memory.fullSinceMs,
          watermarkMs: marks?.watermarkMs ?? null,
          idle: marks?.idle ?? false,
          idlenessTimeoutMs: marks?.idlenessTimeoutMs ?? 0,
          isAnnounced: marks?.isAnnounced === true,
          quietSinceMs: memory.quietSinceMs,
          longestQuietMs: memory.longestQuietMs,
          doneSinceMs: memory.doneSinceMs,
          ahead: marks?.ahead ?? null,
        })
      }
    }
    for (const key of this.#partitions.keys()) if (!seen.has(key)) this.#partitions.delete(key)
    return facts
  }

  #holder(at: TopicPartition, sinceMs: number | null): TransactionHolder | null {
    return sinceMs === null ? null : (this.#o.holder?.(at, sinceMs) ?? null)
  }

  #remember(key: PartitionKey, mark: number, isFull: boolean, now: number): PartitionMemory {
    const memory = this.#partitions.get(key) ?? {
      mark,
      quietSinceMs: now,
      longestQuietMs: 0,
      doneSinceMs: now,
      fullSinceMs: null,
      withheldSinceMs: null,
      readableTo: -1,
    }
    this.#partitions.set(key, memory)
    if (mark !== memory.mark) {
      memory.longestQuietMs = Math.max(memory.longestQuietMs, now - memory.quietSinceMs)
      memory.mark = mark
      memory.quietSinceMs = now
    }
    memory.fullSinceMs = isFull ? (memory.fullSinceMs ?? now) : null
    return memory
  }

  #commit(now: number, barriers: BarrierSnapshot, nodes: readonly BrokerNode[]): CommitFacts {
    const { phase, phaseSinceMs, outstandingLanes, last, restarts } = barriers
    this.#restartsSinceMs = restarts.used === 0 ? null : (this.#restartsSinceMs ?? now)
    const { commitIntervalMs: intervalMs } = this.#o
    const owing = owingFor(phase, nodes)
    if (owing !== undefined) this.#owed = { ...this.#owed, [phase]: owing }
    const since = { phaseSinceMs, restartsSinceMs: this.#restartsSinceMs }
    return { intervalMs, phase, ...since, outstandingLanes, owed: this.#owed, last, restarts }
  }

  #restoreRate(now: number, { current, restore }: ReturnType<EngineView['state']>): number | null {
    const done = restore.reduce((sum, { restoredRecords }) => sum + restoredRecords, 0)
    if (current !== 'RESTORING') {
      this.#restore = null
      return null
    }
    this.#restore ??= { atMs: now, done }
    const spentMs = now - this.#restore.atMs
    return spentMs < 1000 ? null : ((done - this.#restore.done) * 1000) / spentMs
  }

  #late(now: number, globalMs: number | null, counters: CountersView | null): number {
    if (counters === null) return 0
    let late = 0
    for (const block of counters.lanes) {
      for (let sub = 0; sub < counters.layout.subtopologies; sub++) {
        for (const reason of lateReasons) late += block[dropSlot(counters.layout, sub, reason)] as number
      }
    }
    // What was late before the jump has another reason.
    if (globalMs === null || globalMs <= now + clockToleranceMs) this.#lateBefore = late
    return late - (this.#lateBefore ?? 0)
  }

  #dispatched(now: number, counters: CountersView | null): number {
    const records = counters?.engine[engineIndex.recordsDispatched] ?? 0
    if (records !== this.#dispatch.records) this.#dispatch = { records, atMs: now }
    return this.#dispatch.atMs
  }

  #takeDiskFull(now: number): Facts['diskFull'] {
    const sentence = this.#o.view.diskFull()
    this.#fullSinceMs = sentence === null ? null : (this.#fullSinceMs ?? now)
    return sentence === null ? null : { sentence: this.#o.mask(sentence), sinceMs: this.#fullSinceMs as number }
  }

  #takeTrouble(
    now: number,
    { trouble = null }: ReturnType<EngineView['broker']>,
  ): NonNullable<Facts['broker']['trouble']> | null {
    this.#troubleSinceMs = trouble === null ? null : (this.#troubleSinceMs ?? now)
    if (trouble === null) return null
    return { ...trouble, sentence: this.#o.mask(trouble.sentence), sinceMs: this.#troubleSinceMs as number }
  }

  #takeLicense(now: number): Facts['license'] {
    const { reason, ...license } = this.#o.license()
    const { status } = license
    if (status !== this.#license.status) this.#license = { status, sinceMs: now }
    const { sinceMs } = this.#license
    return { ...license, sinceMs, ...(reason !== undefined && { reason: this.#o.mask(reason) }) }
  }

  #takeHa(now: number): Facts['ha'] {
    const ha = this.#o.ha()
    const isNone = ha !== null && ha.active === null && ha.role !== 'ACTIVE'
    this.#noneActiveSinceMs = isNone ? (this.#noneActiveSinceMs ?? now) : null
    this.#refusedSinceMs = ha?.refused === undefined ? null : (this.#refusedSinceMs ?? now)
    return (
      ha && {
        ...ha,
        ...(this.#noneActiveSinceMs !== null && { noneSinceMs: this.#noneActiveSinceMs }),
        ...(ha.refused !== undefined && { refused: { ...ha.refused, sinceMs: this.#refusedSinceMs ?? now } }),
      }
    )
  }
}

/** What a broker said may hold what was configured. */
function maskedNode(node: BrokerNode, mask: (text: string) => string): BrokerNode {
  return node.lastError === null ? node : { ...node, lastError: mask(node.lastError) }
}
