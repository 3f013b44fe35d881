/** `/topology` and `/topology/compiled`, as JSON and as text for people. `/topology/ks` is the field's own description. */
import { isoDuration } from '../../base/duration.ts'
import type { EngineView } from '../../view/view.ts'
import type { Boundary, CompiledNode, CompiledSource, CompiledTopology } from '../../topology/compiled.ts'

export interface ScheduledSourceView {
  readonly name: string
  readonly subtopology: number
  readonly everyMs: number | null
  readonly every: string | null
  readonly cron: string | null
}

export interface BoundaryView {
  readonly name: string
  readonly fromSubtopology: number
  readonly toSubtopology: number
  readonly source: string
  /** `in-process`: handed to the other lane within the transaction. `topic`: written through the broker. */
  readonly kind: 'in-process' | 'topic'
  readonly topic: string
}

export interface SourceView {
  readonly name: string
  readonly kind: CompiledSource['kind']
  readonly topics: readonly string[]
  readonly topicPattern?: string
  readonly watermark: {
    readonly maxOutOfOrdernessMs: number
    readonly idlenessTimeoutMs: number | null
    readonly alignmentGroup: string | null
    readonly maxDriftMs: number | null
  }
}

export interface SubtopologyView {
  readonly id: number
  readonly level: number
  readonly global: boolean
  readonly sources: readonly SourceView[]
  readonly processors: ReadonlyArray<{ readonly name: string; readonly stores: readonly string[] }>
  readonly sinks: ReadonlyArray<{ readonly name: string; readonly topic: string | null }>
  readonly stores: readonly string[]
}

export interface TopologyView {
  readonly split: EngineView['split']
  readonly scheduledSources: readonly ScheduledSourceView[]
  readonly subtopologies: readonly SubtopologyView[]
  readonly boundaries: readonly BoundaryView[]
  readonly stores: ReadonlyArray<{
    readonly name: string
    readonly kind: string
    readonly changelog: boolean
    /** Its table tells each changed row once per commit. */
    readonly emit?: 'per-commit'
  }>
}

const nodeAt = (topology: CompiledTopology, index: number): CompiledNode => topology.nodes[index] as CompiledNode
const sourceAt = (topology: CompiledTopology, index: number): CompiledSource =>
  topology.sources[index] as CompiledSource

export function viewTopology(topology: CompiledTopology, split: EngineView['split']): TopologyView {
  return {
    split,
    scheduledSources: scheduledSources(topology),
    subtopologies: topology.subtopologies.map(({ id, level, global, nodes, sources, stores }) => {
      const own = nodes.map((index) => nodeAt(topology, index))
      return {
        id,
        level,
        global,
        sources: sources.map((index) => viewSource(topology, sourceAt(topology, index))),
        processors: own
          .filter((node) => node.type === 'processor')
          .map(({ name, stores: used }) => ({ name, stores: used })),
        sinks: own.filter((node) => node.type === 'sink').map((node) => ({ name: node.name, topic: sinkTopic(node) })),
        stores,
      }
    }),
    boundaries: topology.boundaries.map((boundary) => viewBoundary(topology, boundary, split)),
    stores: [...topology.stores.values()].map(({ name, kind, changelog }) => {
      const emit = topology.perCommit.has(name) ? ({ emit: 'per-commit' } as const) : {}
      return { name, kind, changelog, ...emit }
    }),
  }
}

function scheduledSources(topology: CompiledTopology): ScheduledSourceView[] {
  return topology.sources
    .filter((source) => source.kind === 'scheduled')
    .map(({ name, subtopology, schedule }) => ({
      name,
      subtopology,
      everyMs: schedule?.everyMs ?? null,
      every: schedule?.everyMs === undefined ? null : isoDuration(schedule.everyMs),
      cron: schedule?.cron ?? null,
    }))
}

function viewSource(topology: CompiledTopology, source: CompiledSource): SourceView {
  const { name, kind, pattern, watermark } = source
  const boundary = source.boundary === undefined ? undefined : topology.boundaries[source.boundary]
  return {
    name,
    kind,
    topics: boundary === undefined ? source.topics : [boundary.topic],
    ...(pattern === undefined ? {} : { topicPattern: pattern.source }),
    watermark: {
      maxOutOfOrdernessMs: watermark.maxOutOfOrdernessMs,
      idlenessTimeoutMs: watermark.idlenessMs ?? null,
      alignmentGroup: watermark.alignment?.group ?? null,
      maxDriftMs: watermark.alignment?.maxDriftMs ?? null,
    },
  }
}

function viewBoundary(topology: CompiledTopology, boundary: Boundary, split: EngineView['split']): BoundaryView {
  const { name, fromSubtopology, toSubtopology, toSource, topic } = boundary
  const source = sourceAt(topology, toSource).name
  return { name, fromSubtopology, toSubtopology, source, kind: split === 'in-process' ? 'in-process' : 'topic', topic }
}

function sinkTopic(node: CompiledNode): string | null {
  if (node.spec.op === 'handOff') return node.spec.topic
  return node.spec.op === 'sink' && typeof node.spec.topic === 'string' ? node.spec.topic : null
}

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '))

export function topologyText(view: TopologyView): string {
  const lines: string[] = []
  for (const subtopology of view.subtopologies) {
    lines.push(`Sub-topology ${subtopology.id}${subtopology.global ? ' (global)' : ''}, level ${subtopology.level}`)
    for (const source of subtopology.sources)
      lines.push(`  source ${source.name} (${source.kind}): ${sourceText(source)}`)
    for (const { name, stores } of subtopology.processors) {
      lines.push(`  processor ${name}${stores.length === 0 ? '' : `, stores: ${listed(stores)}`}`)
    }
    for (const sink of subtopology.sinks)
      lines.push(`  sink ${sink.name} to ${sink.topic ?? 'a topic chosen per record'}`)
    lines.push(`  stores: ${listed(subtopology.stores)}`, '')
  }
  lines.push('Boundaries')
  for (const { name, fromSubtopology, toSubtopology, source, kind, topic } of view.boundaries) {
    const way = kind === 'in-process' ? 'in process' : `through topic ${topic}`
    lines.push(`  ${name}: sub-topology ${fromSubtopology} to ${toSubtopology} (${source}), ${way}`)
  }
  if (view.boundaries.length === 0) lines.push('  none')
  lines.push('', 'Scheduled sources')
  for (const { name, subtopology, every, cron } of view.scheduledSources) {
    lines.push(`  ${name} (sub-topology ${subtopology}): ${cron === null ? `every ${every}` : `cron ${cron}`}`)
  }
  if (view.scheduledSources.length === 0) lines.push('  none')
  return `${lines.join('\n')}\n`
}

function sourceText(source: SourceView): string {
  const topics = source.topicPattern === undefined ? listed(source.topics) : `/${source.topicPattern}/`
  const { maxOutOfOrdernessMs, alignmentGroup } = source.watermark
  const group = alignmentGroup === null ? '' : `, aligned in ${alignmentGroup}`
  return `${topics}; out of order by up to ${isoDuration(maxOutOfOrdernessMs)}${group}`
}

/** Operators that act when time passes, not only when a record comes. */
const timerOps: ReadonlySet<string> = new Set(['windowAggregate', 'suppress', 'streamJoin', 'streamTableJoin'])

function isTimerAware({ spec }: CompiledNode): boolean {
  return spec.op === 'process' ? spec.timerStore !== undefined : timerOps.has(spec.op)
}

/** Nodes that a record of the source may reach without leaving its sub-topology, nearest first. */
function graphBelow(topology: CompiledTopology, root: number): CompiledNode[] {
  const seen = new Set<number>([root])
  for (const index of seen) for (const child of nodeAt(topology, index).children) seen.add(child)
  return [...seen].map((index) => nodeAt(topology, index))
}

/** The internal form: not a stable contract. */
export function viewCompiled(topology: CompiledTopology, split: EngineView['split']): object {
  const name = (index: number): string => nodeAt(topology, index).name
  return {
    stable: false,
    levels: topology.levels,
    sources: topology.sources.map((source) => ({
      index: source.index,
      ...viewSource(topology, source),
      subtopology: source.subtopology,
      level: source.level,
      keySerde: source.keySerde.name,
      valueSerde: source.valueSerde.name,
      readsValue: source.readsValue,
      graph: graphBelow(topology, source.node).map((node) => ({
        index: node.index,
        name: node.name,
        type: node.type,
        op: node.spec.op,
        children: node.children.map(name),
        stores: node.stores,
      })),
    })),
    subtopologies: topology.subtopologies.map(({ id, level, global, nodes, stores }) => ({
      id,
      level,
      global,
      nodes: nodes.map(name),
      stores,
    })),
    boundaries: topology.boundaries.map((boundary) => ({
      index: boundary.index,
      ...viewBoundary(topology, boundary, split),
      keySerde: boundary.keySerde.name,
      valueSerde: boundary.valueSerde.name,
    })),
    timerAwareProcessors: topology.nodes.filter(isTimerAware).map((node) => node.name),
    scheduledSources: scheduledSources(topology),
    globalStores: Object.fromEntries(
      [...topology.globalStores].map(([store, source]) => [store, sourceAt(topology, source).name]),
    ),
  }
}

export function compiledText(topology: CompiledTopology, split: EngineView['split']): string {
  const lines = [`Compiled topology: ${topology.nodes.length} nodes, ${topology.levels} levels`, '']
  for (const source of topology.sources) {
    const serdes = `key ${source.keySerde.name}, value ${source.valueSerde.name}${source.readsValue ? '' : ' (never decoded)'}`
    lines.push(
      `Source ${source.index} ${source.name}, sub-topology ${source.subtopology}, level ${source.level}: ${serdes}`,
    )
    for (const node of graphBelow(topology, source.node)) {
      const children = listed(node.children.map((index) => nodeAt(topology, index).name))
      lines.push(`  ${node.index} ${node.name} [${node.spec.op}] --> ${children}`)
    }
    lines.push('')
  }
  lines.push('Boundaries')
  for (const boundary of topology.boundaries) {
    const { name, fromSubtopology, toSubtopology, kind } = viewBoundary(topology, boundary, split)
    lines.push(`  ${boundary.index} ${name}: ${fromSubtopology} --> ${toSubtopology}, ${kind}`)
  }
  if (topology.boundaries.length === 0) lines.push('  none')
  const timers = topology.nodes.filter(isTimerAware).map((node) => node.name)
  lines.push('', `Timer-aware processors: ${listed(timers)}`)
  lines.push(`Scheduled sources: ${listed(scheduledSources(topology).map((source) => source.name))}`)
  return `${lines.join('\n')}\n`
}
