/** How the stages of the way through spend their time: sampled, so that it also adds up while one of them stands still. */
import { type CountersView, engineIndex, type LaneDoing, laneDoings, laneIndex } from '../../base/counters.ts'
import type { Facts } from './facts.ts'
import type { Finding, FlowStage, StageTimes, stageTimes } from './finding.ts'

type Doing = (typeof stageTimes)[number]
/** Lanes count their own times. */
const countedHere = ['fetch', 'dispatch', 'commit', 'broker'] as const

const inBroker = new Set(['FLUSHING', 'SENDING_OFFSETS', 'IN_TX_COMMIT', 'RESOLVING_OUTCOME', 'ABORTING'])
const inLanes = new Set(['AWAITING_LANE_ACKS', 'APPLYING_STORES'])

export class Flow {
  readonly #samples: Array<ReadonlyMap<string, Doing>> = []
  readonly #keep: number
  #dispatched = 0
  /** By the monotonic clock. */
  #sampledAtMs: number | undefined
  readonly #times = countedHere.map((stage) => ({ stage, ms: { busy: 0, idle: 0, held: 0, waiting: 0 } }))

  /** `keep`: so many samples are told of. */
  constructor(keep: number) {
    this.#keep = keep
  }

  sample(facts: Facts, counters: CountersView | null, now: number): void {
    this.#count(now)
    const lanes = (counters?.lanes ?? []).map((block, i) => [`lane-${i}`, doingOf(block)] as const)
    const dispatched = counters?.engine[engineIndex.recordsDispatched] ?? 0
    const hasDispatched = dispatched !== this.#dispatched
    this.#dispatched = dispatched
    const { partitions, broker, commit, alignment } = facts
    const isBuffered = partitions.some(({ buffered }) => buffered > 0)
    const isFull = partitions.some(({ fullSinceMs }) => fullSinceMs !== null)
    const isPaused = facts.state === 'PAUSED' || facts.state === 'DRAINING'
    const isReading = partitions.some(({ lag, buffered }) => lag > buffered)
    const phase = commit?.phase ?? 'IDLE'
    const held = !broker.connected || isFull || isPaused
    const dispatch: Doing =
      isPaused || alignment !== null ? 'held' : hasDispatched ? 'busy' : isBuffered ? 'held' : 'idle'
    const stages: Array<readonly [stage: string, doing: Doing]> = [
      ['fetch', held ? 'held' : isReading ? 'busy' : 'idle'],
      ['dispatch', dispatch],
      ...lanes,
      ['commit', inLanes.has(phase) ? 'held' : inBroker.has(phase) ? 'busy' : 'idle'],
      ['broker', !broker.connected ? 'held' : inBroker.has(phase) ? 'busy' : 'idle'],
    ]
    // What is known of an engine that has given up is what it was at then.
    const hasFailed = facts.state === 'FAILED'
    this.#samples.push(new Map(stages.map(([stage, doing]) => [stage, hasFailed ? 'held' : doing])))
    if (this.#samples.length > this.#keep) this.#samples.shift()
  }

  /** What a stage was seen at counts until the next look. */
  #count(now: number): void {
    const passedMs = Math.max(0, now - (this.#sampledAtMs ?? now))
    this.#sampledAtMs = now
    for (const { stage, ms } of this.#times) ms[this.#doing(stage)] += passedMs
  }

  #doing(stage: string): Doing {
    return this.#samples.at(-1)?.get(stage) ?? 'idle'
  }

  /** Up to now: also a stage that stands still has all of its time somewhere. */
  times(now: number): StageTimes[] {
    const passedMs = Math.max(0, now - (this.#sampledAtMs ?? now))
    return this.#times.map(({ stage, ms }) => {
      const doing = this.#doing(stage)
      return { stage, ms: { ...ms, [doing]: ms[doing] + passedMs } }
    })
  }

  /** What holds a stage for more than half of the time is the first cause. */
  stages(findings: readonly Finding[]): FlowStage[] {
    const names = [...(this.#samples.at(-1)?.keys() ?? [])]
    const cause = findings.find(({ explained }) => !explained)
    return names.map((stage) => {
      const share = (doing: Doing): number => {
        const count = this.#samples.filter((sample) => sample.get(stage) === doing).length
        return Math.round((count / this.#samples.length) * 100) / 100
      }
      const held = share('held')
      const shares = { stage, busy: share('busy'), idle: share('idle'), held, waiting: share('waiting') }
      return held <= 0.5 || cause === undefined ? shares : { ...shares, by: cause.code, ...placed(cause) }
    })
  }
}

const doingByTime: Readonly<Record<LaneDoing, Doing>> = {
  idleMs: 'idle',
  busyMs: 'busy',
  waitingMs: 'waiting',
  backpressuredMs: 'held',
}

function doingOf(block: Float64Array): Doing {
  return doingByTime[laneDoings[block[laneIndex.doing] as number] as LaneDoing]
}

function placed({ place }: Finding): { readonly place?: string } {
  const { lane, topic, partition, group, pod, store, broker } = place
  const text = lane ?? (topic === undefined ? (group ?? pod ?? store ?? broker) : `${topic}/${partition}`)
  return text === undefined ? {} : { place: text }
}
