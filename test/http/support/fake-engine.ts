/** An engine whose every snapshot can be set. It has no life of its own: what a test does not set stays. */
import {
  type CounterLayout,
  type CountersView,
  engineBlockLength,
  laneBlockLength,
  newBlock,
} from '../../../src/base/counters.ts'
import type {
  BarrierSnapshot,
  CommandResult,
  ConsumerSnapshot,
  EngineCommands,
  EngineView,
  LifecycleState,
  OffsetsSnapshot,
  PartitionWatermark,
  StateSnapshot,
  StateTransition,
  ThreadsSnapshot,
  WatermarkSnapshot,
} from '../../../src/view/view.ts'
import type { CompiledTopology } from '../../../src/topology/compiled.ts'
import { sampleTopology } from './sample-topology.ts'

export const epochMs = Date.parse('2026-03-01T12:00:00.000Z')

export const quietPartition: PartitionWatermark = {
  watermarkMs: epochMs - 600_000,
  idle: false,
  idleTotalMs: 0,
  lastEventTimeMs: epochMs,
  idlenessTimeoutMs: 30_000,
  alignmentGroup: null,
  alignmentHeld: false,
  alignmentHeldTotalMs: 0,
  driftFromGroupMinMs: null,
}

/** How each state is reached from CREATED. */
const ways: Readonly<Record<LifecycleState, readonly LifecycleState[]>> = {
  CREATED: [],
  STARTING: ['STARTING'],
  RESTORING: ['STARTING', 'RESTORING'],
  STANDBY: ['STARTING', 'STANDBY'],
  RUNNING: ['STARTING', 'RUNNING'],
  DRAINING: ['STARTING', 'RUNNING', 'DRAINING'],
  PAUSED: ['STARTING', 'RUNNING', 'DRAINING', 'PAUSED'],
  RESTARTING: ['STARTING', 'RUNNING', 'RESTARTING'],
  STOPPING: ['STARTING', 'RUNNING', 'STOPPING'],
  STOPPED: ['STARTING', 'RUNNING', 'STOPPING', 'STOPPED'],
  FAILED: ['STARTING', 'RUNNING', 'FAILED'],
}

export function stateReached(current: LifecycleState): StateSnapshot {
  let from: LifecycleState = 'CREATED'
  const history: StateTransition[] = []
  for (const [i, state] of ways[current].entries()) {
    history.unshift({ state, from, atMs: epochMs + i * 1000 })
    from = state
  }
  const failure =
    current === 'FAILED' ? { code: 'LANE_STUCK', message: 'lane-0 did not come back', restartHelps: true } : null
  const restore =
    current === 'RESTORING' ? [{ store: 'counts', partition: 0, restoredRecords: 40, remainingRecords: 60 }] : []
  return { current, sinceMs: history[0]?.atMs ?? epochMs - 1000, history, failure, restore }
}

export class FakeEngine implements EngineView, EngineCommands {
  readonly applicationId = 'late-flights'
  readonly lanes = 2
  lanesAlive = 2
  split: EngineView['split'] = 'in-process'
  initialized = true
  compiled: CompiledTopology = sampleTopology
  now: StateSnapshot
  watermarkSnapshot: WatermarkSnapshot | null
  offsetsSnapshot: OffsetsSnapshot | null
  consumerSnapshot: ConsumerSnapshot | null
  barrierSnapshot: BarrierSnapshot | null
  threadsSnapshot: ThreadsSnapshot = sampleThreads
  countersView: CountersView | null
  full: string | null = null
  link: ReturnType<EngineView['broker']> = {
    connected: true,
    sinceMs: epochMs,
    fault: null,
    bootstrapServers: 'broker-1:9092',
  }
  silenceMs = 5
  readonly askedDepths: number[] = []
  readonly given: string[] = []
  threadsFail = false

  constructor(state: LifecycleState = 'RUNNING') {
    this.now = stateReached(state)
    const assigned = state !== 'CREATED' && state !== 'STARTING'
    const created = state === 'CREATED'
    this.watermarkSnapshot = assigned ? sampleWatermarks() : { ...sampleWatermarks(), partitions: {} }
    this.offsetsSnapshot = created ? null : sampleOffsets
    this.consumerSnapshot = assigned
      ? sampleConsumer(state === 'RESTORING' || state === 'RESTARTING')
      : { ...sampleConsumer(), assignment: {} }
    this.barrierSnapshot = created ? null : sampleBarriers()
    this.countersView = sampleCounters()
  }

  topology(): CompiledTopology | null {
    return this.initialized ? this.compiled : null
  }
  state(): StateSnapshot {
    return this.now
  }
  watermarks(): WatermarkSnapshot | null {
    return this.initialized ? this.watermarkSnapshot : null
  }
  offsets(): OffsetsSnapshot | null {
    return this.initialized ? this.offsetsSnapshot : null
  }
  consumer(): ConsumerSnapshot | null {
    return this.initialized ? this.consumerSnapshot : null
  }
  barriers(): BarrierSnapshot | null {
    return this.initialized ? this.barrierSnapshot : null
  }
  async threads(options: { depth: number }): Promise<ThreadsSnapshot> {
    this.askedDepths.push(options.depth)
    if (this.threadsFail) throw new Error('the dump failed with password=canary-in-error')
    const engineThreads = this.threadsSnapshot.engineThreads.map((thread) => ({
      ...thread,
      stack: thread.stack.slice(0, options.depth),
    }))
    return { ...this.threadsSnapshot, engineThreads }
  }
  diskFull(): string | null {
    return this.full
  }

  broker(): ReturnType<EngineView['broker']> {
    return this.link
  }
  engineSilenceMs(): number {
    return this.silenceMs
  }
  counters(): CountersView | null {
    return this.initialized ? this.countersView : null
  }
  pause(): CommandResult {
    return this.#move('pause', ['RUNNING'], 'DRAINING')
  }
  unpause(): CommandResult {
    return this.#move('unpause', ['DRAINING', 'PAUSED'], 'RUNNING')
  }

  enter(state: LifecycleState): void {
    const { current, history } = this.now
    const atMs = epochMs + 60_000 + history.length * 1000
    this.now = {
      ...stateReached(state),
      sinceMs: atMs,
      history: [{ state, from: current, atMs }, ...history].slice(0, 20),
    }
  }

  #move(verb: string, allowed: readonly LifecycleState[], to: LifecycleState): CommandResult {
    this.given.push(verb)
    const { current } = this.now
    if (!allowed.includes(current)) {
      return { ok: false, reason: `cannot ${verb}: state is ${current}; states that allow it: ${allowed.join(', ')}` }
    }
    this.enter(to)
    return { ok: true, state: to }
  }
}

export function sampleWatermarks(): WatermarkSnapshot {
  return {
    globalMs: epochMs - 600_000,
    alignmentGroupMins: {},
    alignmentBinding: null,
    partitions: { 'words:0': quietPartition, 'words:1': { ...quietPartition, watermarkMs: epochMs - 500_000 } },
  }
}

const sampleOffsets: OffsetsSnapshot = {
  sources: [
    {
      topic: 'words',
      partitions: [
        { partition: 0, committedOffset: 40, logEndOffset: 100, withheld: 0 },
        { partition: 1, committedOffset: 7, logEndOffset: 7, withheld: 0 },
      ],
    },
  ],
  changelogs: [
    { topic: 'late-flights-counts-changelog', store: 'counts', partitions: [{ partition: 0, committedOffset: 12 }] },
  ],
}

export function sampleConsumer(paused = false): ConsumerSnapshot {
  return {
    groupId: 'late-flights',
    memberId: 'late-flights-1',
    generationId: 3,
    groupInstanceId: null,
    subscription: ['words'],
    lastCommitMs: epochMs,
    assignment: {
      'words:0': { buffered: paused ? 0 : 10, bufferCapacity: 1000, paused },
      'words:1': { buffered: 0, bufferCapacity: 1000, paused },
    },
  }
}

export function sampleBarriers(): BarrierSnapshot {
  return {
    phase: 'AWAITING_LANE_ACKS',
    commitId: '0.17',
    epoch: 17,
    trigger: 'interval',
    startedAtMs: epochMs,
    phaseSinceMs: epochMs,
    queued: false,
    outstandingLanes: ['lane-1'],
    lanes: [
      { lane: 'lane-0', acked: true, queuedRecords: 0, lastProgressMs: epochMs, at: null, node: null },
      {
        lane: 'lane-1',
        acked: false,
        queuedRecords: 12,
        lastProgressMs: epochMs - 4000,
        at: { topic: 'words', partition: 1, offset: 7 },
        node: 'KSTREAM-AGGREGATE-0000000002',
      },
    ],
    transaction: { producerId: '77', producerEpoch: 2, partitions: 3, bytes: 4096, openSinceMs: epochMs },
    restarts: { used: 1, max: 3, windowMs: 300_000, causes: ['TRANSACTION_ABORTED'], codes: ['TRANSACTION_ABORTED'] },
    last: [
      {
        commitId: '0.16',
        outcome: 'COMMITTED',
        atMs: epochMs - 100,
        durationsMs: { align: 2, flush: 3, offsets: 1, endTransaction: 5, apply: 1 },
      },
    ],
  }
}

const sampleThreads: ThreadsSnapshot = {
  timestamp: '2026-03-01T12:00:00.000Z',
  engineThreads: [
    { name: 'control', role: 'control', state: 'RUNNABLE', currentNode: null, stack: ['dump (src/engine/x.ts:1)'] },
    { name: 'engine', role: 'engine', state: 'WAITING', currentNode: null, stack: [] },
    {
      name: 'lane-0',
      role: 'lane',
      state: 'RUNNABLE',
      currentNode: 'KSTREAM-AGGREGATE-0000000002',
      stack: Array.from({ length: 60 }, (_, i) => `frame${i} (app.ts:${i})`),
    },
    { name: 'lane-1', role: 'lane', state: 'BLOCKED', currentNode: null, stack: [] },
  ],
  platformThreads: [
    { name: 'node', tid: process.pid, state: 'RUNNABLE', cpuMs: 12 },
    { name: 'lane-0', tid: 4_000_001, state: 'RUNNABLE', cpuMs: 40 },
    { name: 'libuv-worker', tid: 4_000_002, state: 'WAITING', cpuMs: 1 },
  ],
}

export const sampleLayout: CounterLayout = {
  nodes: sampleTopology.nodes.length,
  subtopologies: 2,
  stores: ['counts'],
  sourceTopics: ['words'],
  sinkTopics: ['totals'],
}

export function sampleCounters(): CountersView {
  return {
    layout: sampleLayout,
    engine: newBlock(engineBlockLength(sampleLayout)),
    lanes: [newBlock(laneBlockLength(sampleLayout)), newBlock(laneBlockLength(sampleLayout))],
  }
}
