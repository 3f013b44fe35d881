/** What follows from a seed of the world: what it is like, what goes wrong in it, and the settings of its engine. */
import { Random } from '../../src/base/random.ts'
import type { EngineSettings } from '../../src/engine/settings.ts'
import type { WriteBehindOptions } from '../../src/lanes/stores/store-writer.ts'
import { sinkTopics } from '../../src/runtime/settings.ts'
import { planOf } from '../../src/topology/plan.ts'
import { type SplitMode, splitTopology } from '../../src/topology/split.ts'
import type { DiskFaults } from './failing-disk.ts'
import type { Breaks } from './faulty-broker.ts'
import { type Limits, limitsOf, usualLimits } from './limits.ts'

/** Everything that follows from the seed: printed with a failure, so that a run can be understood from its seed. */
export interface Derived {
  readonly lanes: number
  readonly partitions: number
  readonly records: number
  readonly keys: number
  readonly crashes: number
  readonly messageMs: number
  readonly brokerMs: number
  readonly lostAnswer: number
  readonly lostRequest: number
  readonly asyncShare: number
  readonly slowLane: number
  readonly losesStores: boolean
  readonly pauses: number
  readonly clockJumps: number
  /** Chance that a process which should be dead goes on for a while beside its successor. */
  readonly zombies: number
  readonly split: SplitMode
  /** Chance that a fetch is answered without what lies in a topic between sub-topologies. */
  readonly lateBoundaries: number
  /** Tables tell each changed row once per commit, and a commit comes after so many milliseconds; 0: every update. */
  readonly foldsMs: number
  /** Where the world has tables over topics: these serve as changelogs. */
  readonly optimizes: boolean
  /** When the lanes write their stores to the disk; null: these are kept in memory that outlives the process. */
  readonly disk: WriteBehindOptions | null
  /** Null: the disk does what it is told. */
  readonly diskFaults: DiskFaults | null
  /** What people ask of the engine while it runs. */
  readonly asks: number
  readonly breaks: Breaks | null
  /** How much of everything fits before it goes on to the next part. */
  readonly limits: Limits
}

/** A fifth of the seeds goes through repartition topics. Not drawn by chance: the other draws of a seed stay what they were. */
function splitOf(seed: number): SplitMode {
  return seed % 5 === 4 ? 'repartition-topics' : 'in-process'
}

/** Two seeds of three keep their rows on a disk; half of these write them late, in steps. Not drawn by chance either. */
function diskOf(seed: number): WriteBehindOptions | null {
  if (seed % 3 === 0) return null
  if (seed % 3 === 1) return { bytes: 0, intervalMs: 0, rowsPerStep: Number.POSITIVE_INFINITY }
  const [bytes, intervalMs, rowsPerStep] = [
    [600, 3000, 1e6],
    [40, 200, 1000],
    [1, 3, 50],
  ].map((choices, i) => choices[Math.floor(seed / 3 ** (i + 1)) % 3] as number) as [number, number, number]
  return { bytes, intervalMs, rowsPerStep }
}

/** An eighth. The longer it takes to the next commit, the more is folded, and the further event time has to wait. */
function foldsOf(seed: number): number {
  return seed % 8 === 5 ? ([20, 100, 500][Math.floor(seed / 8) % 3] as number) : 0
}

/** Half of those. Of mistakes in what tells their time nothing shows while they are read as soon as they are written. */
function lateOf(seed: number): number {
  return seed % 10 === 4 ? 0.9 : 0
}

/** A quarter. What is drawn comes from a generator of its own: the other draws of a seed stay what they were. */
function askedOf(seed: number): Pick<Derived, 'asks' | 'breaks'> {
  if (seed % 4 !== 1) return { asks: 0, breaks: null }
  const random = new Random(seed ^ 0xa5c)
  const breaks = { atEnd: random.pick([0.05, 0.2]), again: random.pick([0.2, 0.5]), forMs: random.pick([30, 150]) }
  return { asks: 2 + random.int(8), breaks: random.chance(0.5) ? breaks : null }
}

/** A sixth: half of those seeds that keep their rows on a disk, less those whose engine is asked for something. */
function diskFaultsOf(seed: number): DiskFaults | null {
  if (seed % 4 !== 3 || seed % 3 === 0) return null
  const random = new Random(seed ^ 0xd15c)
  return {
    full: random.pick([0, 0.02, 0.1]),
    fullMs: random.pick([50, 700]),
    fails: random.pick([0, 0.01, 0.03]),
    synced: random.pick([0.05, 0.4]),
    powerCuts: random.pick([0, 0.5, 1]),
    torn: random.pick([0, 0.3]),
  }
}

export function derive(seed: number, random: Random): Derived {
  return {
    lanes: 1 + random.int(3),
    partitions: 1 + random.int(3),
    records: 20 + random.int(100),
    keys: 1 + random.int(6),
    crashes: random.int(4),
    messageMs: random.pick([0.1, 1, 10]),
    brokerMs: random.pick([0.5, 3, 30]),
    lostAnswer: random.pick([0, 0, 0.005, 0.02]),
    lostRequest: random.pick([0, 0, 0.005, 0.02]),
    asyncShare: random.pick([0, 0.2, 1]),
    slowLane: random.int(4) - 1,
    losesStores: random.chance(0.3),
    pauses: random.int(3),
    clockJumps: random.int(3),
    zombies: random.pick([0, 0, 0.5, 1]),
    split: splitOf(seed),
    lateBoundaries: lateOf(seed),
    disk: diskOf(seed),
    foldsMs: foldsOf(seed),
    optimizes: seed % 7 < 3,
    ...askedOf(seed),
    diskFaults: diskFaultsOf(seed),
    limits: limitsOf(seed),
  }
}

export function settingsFor(
  derived: Pick<Derived, 'lanes' | 'partitions'> & { readonly split?: SplitMode },
  topology: Parameters<typeof planOf>[0],
): EngineSettings {
  const split = derived.split ?? 'in-process'
  return {
    applicationId: 'sim',
    instanceId: 'main',
    groupInstanceId: 'sim-main',
    lanes: derived.lanes,
    split,
    guarantee: 'exactly-once',
    durableStores: true,
    lostChangelogs: 'refuse',
    idlenessMs: 0,
    ...usualLimits,
    fetchMaxWaitMs: 100,
    fetchMaxBytes: 1 << 20,
    barrierTimeoutMs: 30_000,
    maxRestarts: 50,
    restartWindowMs: 60_000,
    resolveTimeoutMs: 60_000,
    transactionTimeoutMs: 10_000,
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 10_000,
    heartbeatIntervalMs: 1000,
    metadataMaxAgeMs: 30_000,
    defaultPartitions: derived.partitions,
    offsetsReset: 'earliest',
    sourceReset: 'fail',
    sinkTopics: sinkTopics(topology),
    deadLetterTopic: null,
    // As a runtime has it: through topics there is one level, and a topic is as disordered as what flows into it.
    plan: planOf(splitTopology(topology, split)),
  }
}
