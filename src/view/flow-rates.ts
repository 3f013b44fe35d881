/**
 * How fast records move, by node, lane and topic: a look at the counters in shared memory every second, of which the
 * last ten seconds are kept, and a line of totals every five seconds for a quarter of an hour.
 */
import {
  countedTopics,
  type CountersView,
  deadLetterSlot,
  dropReasons,
  laneIndex,
  nodeSlot,
  type TopicKind,
} from '../base/counters.ts'
import type { CompiledNode, CompiledTopology } from '../topology/compiled.ts'
import type { FlowStage } from './diagnosis/finding.ts'
import type { EngineView } from './view.ts'

export const rateEveryMs = 1000
const rateWindowMs = 10_000
export const historyEveryMs = 5000
const historyLength = 180

interface Sample {
  readonly atMs: number
  /** By source topic and by sink topic: records. */
  readonly sources: Float64Array
  readonly sinks: Float64Array
  /** By lane, then by node. */
  readonly nodes: readonly Float64Array[]
  readonly finished: Float64Array
}

interface TopicFlow {
  readonly topic: string
  readonly records: number
  readonly bytes: number
  readonly recordsPerSecond: number
}

/** One line every five seconds, oldest first; what was not known is null. */
export interface FlowHistory {
  readonly atMs: readonly number[]
  readonly recordsIn: ReadonlyArray<number | null>
  readonly recordsOut: ReadonlyArray<number | null>
  readonly lag: ReadonlyArray<number | null>
  readonly commitMs: ReadonlyArray<number | null>
  readonly watermarkDelayMs: ReadonlyArray<number | null>
}

export interface FlowReport {
  readonly timestamp: string
  readonly windowMs: number
  readonly sources: readonly TopicFlow[]
  readonly sinks: readonly TopicFlow[]
  readonly nodes: ReadonlyArray<{
    readonly node: string
    readonly type: CompiledNode['type']
    readonly subtopology: number
    readonly records: number
    readonly recordsPerSecond: number
    readonly byLane: readonly number[]
  }>
  readonly lanes: ReadonlyArray<{
    readonly lane: string
    readonly recordsPerSecond: number
    readonly queuedRecords: number
    readonly inFlight: number
    readonly node: string | null
    readonly busy: number
    readonly idle: number
    readonly held: number
    readonly waiting: number
  }>
  readonly stages: readonly FlowStage[]
  readonly deadLetters: Readonly<Record<string, number>>
  readonly history: FlowHistory | null
}

type Line = readonly [atMs: number, ...values: Array<number | null>]

export class FlowRates {
  readonly #view: EngineView
  readonly #samples: Sample[] = []
  readonly #lines: Line[] = []
  #lineBefore: { readonly atMs: number; readonly received: number; readonly sent: number } | null = null

  constructor(view: EngineView) {
    this.#view = view
  }

  /** `atMs` by a clock that only goes forward, `nowMs` by the wall clock. */
  sample(atMs: number, nowMs: number): void {
    const counters = this.#view.counters()
    if (counters === null) return
    const sample = sampleOf(counters, atMs)
    const before = this.#samples.at(-1)
    // A restart in place counts anew.
    if (before !== undefined && isAnew(before, sample)) this.#samples.length = 0
    this.#samples.push(sample)
    while (this.#samples.length > 2 && atMs - (this.#samples[1]?.atMs ?? atMs) >= rateWindowMs) this.#samples.shift()
    this.#line(sample, nowMs)
  }

  #line(sample: Sample, nowMs: number): void {
    const now = { atMs: sample.atMs, received: sum(sample.sources), sent: sum(sample.sinks) }
    const before = this.#lineBefore
    if (before === null) this.#lineBefore = now
    if (before === null || now.atMs - before.atMs < historyEveryMs) return
    this.#lineBefore = now
    const seconds = (now.atMs - before.atMs) / 1000
    const rate = (count: number, last: number): number | null =>
      count < last ? null : rounded((count - last) / seconds)
    const { watermarks, offsets, commitMs } = this.#progress()
    const delay = watermarks === null ? null : nowMs - watermarks
    this.#lines.push([
      nowMs,
      rate(now.received, before.received),
      rate(now.sent, before.sent),
      offsets,
      commitMs,
      delay,
    ])
    if (this.#lines.length > historyLength) this.#lines.shift()
  }

  #progress(): { watermarks: number | null; offsets: number | null; commitMs: number | null } {
    const offsets = this.#view.offsets()
    const last = this.#view.barriers()?.last[0]
    return {
      watermarks: this.#view.watermarks()?.globalMs ?? null,
      offsets: offsets === null ? null : lagOf(offsets),
      commitMs: last === undefined ? null : sum(Object.values(last.durationsMs)),
    }
  }

  report(nowMs: number, stages: readonly FlowStage[], withHistory: boolean): FlowReport {
    const counters = this.#view.counters()
    const topology = this.#view.topology()
    const first = this.#samples[0]
    const last = this.#samples.at(-1)
    const windowMs = first === undefined || last === undefined ? 0 : last.atMs - first.atMs
    const rate = (of: (sample: Sample) => number): number =>
      first === undefined || last === undefined || windowMs === 0
        ? 0
        : rounded(((of(last) - of(first)) * 1000) / windowMs)
    return {
      timestamp: new Date(nowMs).toISOString(),
      windowMs: Math.round(windowMs),
      sources: counters === null ? [] : topicsOf(counters, 'source', rate),
      sinks: counters === null ? [] : topicsOf(counters, 'sink', rate),
      nodes: counters === null || topology === null ? [] : nodesOf(counters, topology, rate),
      lanes: counters === null ? [] : lanesOf(counters, topology, stages, rate),
      stages,
      deadLetters: counters === null ? {} : deadLettersOf(counters),
      history: withHistory ? this.#history() : null,
    }
  }

  #history(): FlowHistory {
    const column = (i: number): Array<number | null> => this.#lines.map((line) => line[i] ?? null)
    return {
      atMs: this.#lines.map(([atMs]) => atMs),
      recordsIn: column(1),
      recordsOut: column(2),
      lag: column(3),
      commitMs: column(4),
      watermarkDelayMs: column(5),
    }
  }
}

type Rate = (of: (sample: Sample) => number) => number

function sampleOf(counters: CountersView, atMs: number): Sample {
  const { layout, engine, lanes } = counters
  const records = (kind: TopicKind): Float64Array =>
    Float64Array.from(countedTopics(counters, kind), ({ slot }) => engine[slot] as number)
  return {
    atMs,
    sources: records('source'),
    sinks: records('sink'),
    nodes: lanes.map((block) => block.slice(nodeSlot(layout, 0), nodeSlot(layout, layout.nodes))),
    finished: Float64Array.from(lanes, (block) => block[laneIndex.finishedRecords] as number),
  }
}

function isAnew(before: Sample, now: Sample): boolean {
  // Topics come to those that are counted.
  const fewer = (a: Float64Array, b: Float64Array): boolean => a.some((n, i) => (b[i] ?? -1) < n)
  return fewer(before.finished, now.finished) || fewer(before.sources, now.sources) || fewer(before.sinks, now.sinks)
}

function topicsOf(counters: CountersView, kind: TopicKind, rate: Rate): TopicFlow[] {
  const { engine } = counters
  const of = kind === 'source' ? 'sources' : 'sinks'
  return countedTopics(counters, kind).map(({ topic, slot }, i) => ({
    topic,
    records: engine[slot] as number,
    bytes: engine[slot + 1] as number,
    recordsPerSecond: rate((sample) => sample[of][i] ?? 0),
  }))
}

function nodesOf({ layout, lanes }: CountersView, topology: CompiledTopology, rate: Rate): FlowReport['nodes'] {
  const subtopologies = new Map(topology.subtopologies.flatMap(({ id, nodes }) => nodes.map((node) => [node, id])))
  return topology.nodes.slice(0, layout.nodes).map(({ name, type, index }) => {
    const byLane = lanes.map((_, lane) => rate(({ nodes }) => nodes[lane]?.[index] as number))
    return {
      node: name,
      type,
      subtopology: subtopologies.get(index) ?? 0,
      records: lanes.reduce((all, block) => all + (block[nodeSlot(layout, index)] as number), 0),
      recordsPerSecond: rounded(sum(byLane)),
      byLane,
    }
  })
}

function lanesOf(
  { lanes }: CountersView,
  topology: CompiledTopology | null,
  stages: readonly FlowStage[],
  rate: Rate,
): FlowReport['lanes'] {
  return lanes.map((block, i) => {
    const lane = `lane-${i}`
    const { busy, idle, held, waiting } = stages.find(({ stage }) => stage === lane) ?? nothing
    return {
      lane,
      recordsPerSecond: rate(({ finished }) => finished[i] as number),
      queuedRecords: Math.max(0, block[laneIndex.queuedRecords] as number),
      inFlight: block[laneIndex.inFlightAsync] as number,
      node: topology?.nodes[block[laneIndex.currentNode] as number]?.name ?? null,
      busy,
      idle,
      held,
      waiting,
    }
  })
}

const nothing = { busy: 0, idle: 0, held: 0, waiting: 0 }

function deadLettersOf({ layout, lanes }: CountersView): Readonly<Record<string, number>> {
  const counts = dropReasons.map((reason, i) => {
    const count = lanes.reduce((all, block) => all + (block[deadLetterSlot(layout, i)] as number), 0)
    return [reason, count] as const
  })
  return Object.fromEntries(counts)
}

function lagOf({ sources }: NonNullable<ReturnType<EngineView['offsets']>>): number {
  const each = sources.flatMap(({ partitions }) =>
    partitions.map(({ committedOffset, logEndOffset }) => Math.max(0, logEndOffset - committedOffset)),
  )
  return sum(each)
}

function sum(numbers: Iterable<number>): number {
  let all = 0
  for (const each of numbers) all += each
  return all
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10
}
