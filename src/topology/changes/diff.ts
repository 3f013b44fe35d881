/** Whether a changed application can go on with the state of the running one: compares their stores and sources. */
import type { CompiledSource, CompiledTopology } from '../compiled.ts'
import { generatedName, surroundingsOf } from './surroundings.ts'

/** What decides whether the rows of a store can still be read. */
export interface StoreState {
  readonly name: string
  readonly kind: string
  readonly keySerde: string
  readonly valueSerde: string
  readonly timestamped: boolean
  /** What an aggregate's values begin with (`number`, `object`, …), where the serde takes any; absent where nobody knows. */
  readonly holds?: string
  /** Size of the windows, or gap of the sessions, in milliseconds. */
  readonly windowSizeMs?: number
  /** How far apart the windows of an aggregate begin; 0 where they go by their records. Absent where nobody knows. */
  readonly windowAdvanceMs?: number
  readonly retentionMs?: number
  readonly ttlMs?: number
  /** The source topic that serves as changelog, where one does. */
  readonly changelogTopic?: string
  /** The topic whose newest values are its rows. */
  readonly sourceTopic?: string
  /** See `surroundingsOf`: of a store whose name is generated. */
  readonly around?: string
  readonly subtopology: number
}

export interface SourceState {
  readonly topics: readonly string[]
  readonly pattern?: string
  readonly keySerde: string
  readonly valueSerde: string
  readonly subtopology: number
}

/** The part of a topology that has to do with state; also a part of `millrace topology --format json`. */
export interface TopologyState {
  readonly stores: readonly StoreState[]
  readonly sources: readonly SourceState[]
  /** Topics (or hand-overs) between sub-topologies, without the application's prefix. */
  readonly repartitions: readonly string[]
}

export interface Difference {
  /** `breaks`: state would be lost or misread. `check`: it depends on something that no topology shows. `note`: harmless. */
  readonly level: 'breaks' | 'check' | 'note'
  readonly what: string
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export function topologyState(topology: CompiledTopology): TopologyState {
  const stores: StoreState[] = []
  const beginnings = beginningsOf(topology)
  const surroundings = surroundingsOf(topology)
  for (const { id, stores: names } of topology.subtopologies) {
    for (const name of names) {
      const spec = topology.stores.get(name)
      if (!spec?.changelog) continue
      const { kind, timestamped, windowSizeMs, windowAdvanceMs, retentionMs, ttlMs, changelogTopic, sourceTopic } = spec
      stores.push({
        name,
        kind,
        keySerde: spec.keySerde.name,
        valueSerde: spec.valueSerde.name,
        timestamped,
        ...(beginnings.has(name) && { holds: beginnings.get(name) as string }),
        ...(windowSizeMs !== undefined && { windowSizeMs }),
        ...(windowAdvanceMs !== undefined && { windowAdvanceMs }),
        ...(retentionMs !== undefined && { retentionMs }),
        ...(ttlMs !== undefined && { ttlMs }),
        ...(changelogTopic !== undefined && { changelogTopic }),
        ...(sourceTopic !== undefined && { sourceTopic }),
        ...(surroundings.has(name) && { around: surroundings.get(name) as string }),
        subtopology: id,
      })
    }
  }
  const sources = topology.sources.filter((source) => source.kind === 'topics').map(sourceState)
  return {
    stores: stores.sort((a, b) => byText(a.name, b.name)),
    sources: sources.sort((a, b) => byText(sourceId(a), sourceId(b))),
    repartitions: topology.boundaries.map((boundary) => boundary.topic).sort(byText),
  }
}

/** By store of JSON: what the first value of its aggregate is. A count and an object have the same serde. */
export function beginningsOf({ nodes, stores }: CompiledTopology): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { spec } of nodes) {
    if (!('init' in spec) || spec.init === undefined || !('store' in spec) || spec.store === undefined) continue
    const { name } = spec.store
    if (stores.get(name)?.valueSerde.name !== 'json') continue
    const type = typeOfFirst(spec.init)
    if (type !== undefined) found.set(name, type)
  }
  return found
}

function typeOfFirst(init: () => unknown): string | undefined {
  try {
    const first = init()
    if (first === null || first === undefined) return undefined
    return Array.isArray(first) ? 'array' : typeof first
  } catch {
    // It will say so by itself when a record comes.
    return undefined
  }
}

function sourceState({ topics, pattern, keySerde, valueSerde, subtopology }: CompiledSource): SourceState {
  return {
    topics: [...topics].sort(byText),
    ...(pattern && { pattern: pattern.source }),
    keySerde: keySerde.name,
    valueSerde: valueSerde.name,
    subtopology,
  }
}

/** Breaking differences first. Empty: nothing that has to do with state has changed. */
export function diffTopologies(before: TopologyState, after: TopologyState): Difference[] {
  const differences = [
    ...storeDifferences(before, after),
    ...sourceDifferences(before, after),
    ...repartitionDifferences(before, after),
  ]
  const rank = { breaks: 0, check: 1, note: 2 }
  return differences.sort((a, b) => rank[a.level] - rank[b.level])
}

function storeDifferences(before: TopologyState, after: TopologyState): Difference[] {
  const old = new Map(before.stores.map((store) => [store.name, store]))
  const now = new Map(after.stores.map((store) => [store.name, store]))
  const gone = before.stores.filter((store) => !now.has(store.name))
  const added = after.stores.filter((store) => !old.has(store.name))
  const result: Difference[] = []
  const renamed = new Set<string>()
  for (const store of gone) {
    const successor = added.find((other) => !renamed.has(other.name) && isSameShape(store, other))
    if (successor) {
      renamed.add(successor.name)
      result.push({ level: 'breaks', what: renamedSentence(store.name, successor.name) })
    } else {
      result.push({ level: 'note', what: `the store ${store.name} is gone; its changelog topic stays, unused` })
    }
  }
  const read = new Set(before.sources.flatMap(({ topics }) => topics))
  for (const { name, sourceTopic, changelogTopic } of added) {
    if (renamed.has(name)) continue
    if (sourceTopic !== undefined && changelogTopic === undefined && read.has(sourceTopic)) {
      result.push({ level: 'breaks', what: keptOnlyNow(name, sourceTopic) })
    } else {
      const what = `the store ${name} is new and begins empty: records that were read before do not come again`
      result.push({ level: 'check', what })
    }
  }
  for (const store of before.stores) {
    const successor = now.get(store.name)
    if (successor) result.push(...changesOf(store, successor, before, after))
  }
  return result
}

/** Of a table's store where nobody kept the rows before. */
export function keptOnlyNow(store: string, topic: string): string {
  return `the table of ${topic} keeps its rows only now, in the store ${store}: it would begin empty, since records of ${topic} that were read before do not come again`
}

/** Of a table whose topic served as its changelog and does so no more: by the setting, or by what the table is now. */
function keptApartNow(store: string, topic: string | undefined): string {
  return (
    `the store ${store} had the topic ${topic} for its changelog and has one of its own now (with \`topology.optimization: all\` ` +
    'versioned tables and those with a `timestamp` function have), which would begin empty: begin anew, with another ' +
    'applicationId or the group and its changelogs deleted'
  )
}

function renamedSentence(old: string, now: string): string {
  const advice = generatedName.test(old)
    ? `its name is generated and goes by its position; give the store the name ${old} explicitly to keep its rows`
    : `keep the name ${old}, or the new store begins empty`
  return `the store ${old} seems to have become ${now}: ${advice}`
}

function isSameShape(a: StoreState, b: StoreState): boolean {
  const base = (name: string): string => name.replace(/\d{10}/g, '#')
  if (generatedName.test(a.name) && generatedName.test(b.name) && base(a.name) !== base(b.name)) return false
  return (
    a.kind === b.kind &&
    a.keySerde === b.keySerde &&
    a.valueSerde === b.valueSerde &&
    a.timestamped === b.timestamped &&
    a.windowSizeMs === b.windowSizeMs
  )
}

/** What makes existing rows unreadable, or lets them be read as something else. */
const form = [
  ['kind', 'kind'],
  ['keySerde', 'key serde'],
  ['valueSerde', 'value serde'],
  ['timestamped', 'keeping of timestamps'],
  ['windowSizeMs', 'window size or gap'],
  ['changelogTopic', 'changelog topic'],
] as const

/** What must not change while a store keeps its name. */
export function formOf(store: StoreState): Array<string | number | boolean | null> {
  const fields = form.map(([field]) => store[field] ?? null)
  const { windowSizeMs, windowAdvanceMs = windowSizeMs } = store
  return windowAdvanceMs === windowSizeMs ? fields : [...fields, windowAdvanceMs ?? null]
}

function changesOf(old: StoreState, now: StoreState, before: TopologyState, after: TopologyState): Difference[] {
  const result: Difference[] = []
  const { name } = old
  if (old.holds !== undefined && now.holds !== undefined && old.holds !== now.holds) {
    const what = `the values of the store ${name} change from ${old.holds} to ${now.holds}: give it a new name`
    result.push({ level: 'breaks', what })
  }
  for (const [field, what] of form) {
    if (old[field] === now[field]) continue
    if (field === 'changelogTopic' && now.changelogTopic === undefined) {
      result.push({ level: 'breaks', what: keptApartNow(name, old.changelogTopic) })
      continue
    }
    const change = `${shown(old[field])} to ${shown(now[field])}`
    result.push({
      level: 'breaks',
      what: `the ${what} of the store ${name} changes from ${change}: give it a new name`,
    })
  }
  const advances = [old.windowAdvanceMs, now.windowAdvanceMs] as const
  if (old.windowSizeMs === now.windowSizeMs && !advances.includes(undefined) && advances[0] !== advances[1]) {
    const what = `the windows of the store ${name} began ${apart(advances[0])} and would begin ${apart(advances[1])}: give it a new name`
    result.push({ level: 'breaks', what })
  }
  for (const [field, what] of [
    ['retentionMs', 'retention'],
    ['ttlMs', 'ttl'],
  ] as const) {
    if (old[field] === now[field]) continue
    const effect = isLess(now[field], old[field]) ? 'older rows are forgotten' : 'what is forgotten already stays so'
    const change = `${shown(old[field])} to ${shown(now[field])} ms`
    result.push({ level: 'note', what: `the ${what} of the store ${name} changes from ${change}; ${effect}` })
  }
  result.push(...changesAround(old, now, before))
  const [was, is] = [topicsAround(before, old.subtopology), topicsAround(after, now.subtopology)]
  if (was !== is) {
    const what = `the store ${name} now goes with the topics ${is} instead of ${was}: the largest of them must have as many partitions as the changelog`
    result.push({ level: 'check', what })
  }
  if (old.subtopology !== now.subtopology) {
    const what = `the store ${name} moves from sub-topology ${old.subtopology} to ${now.subtopology}; its rows move with it`
    result.push({ level: 'note', what })
  }
  return result
}

function shown(value: string | number | boolean | undefined): string {
  return value === undefined ? 'none' : String(value)
}

/** Of a generated name that may have become another operator's. */
function changesAround(old: StoreState, now: StoreState, { stores }: TopologyState): Difference[] {
  const { name } = old
  if (old.around === undefined || now.around === undefined || old.around === now.around) return []
  const generated = `the name of the store ${name} is generated`
  const other = stores.find((each) => each.name !== name && each.around === now.around && isSameShape(each, now))
  if (other) {
    const what = `${generated}, and is now that of what was ${other.name}: it would go on with the rows of another one; name your stores, or keep their order`
    return [{ level: 'breaks', what }]
  }
  const what = `${generated}, and what is around it changes from ${old.around} to ${now.around}`
  return [{ level: 'check', what: `${what}: another operator would go on with the rows of this one; name your stores` }]
}

/** What windows of one size differ by. */
function apart(advanceMs: number | undefined): string {
  return advanceMs === 0 ? 'at their records' : `every ${advanceMs} ms`
}

function isLess(now: number | undefined, old: number | undefined): boolean {
  return (now ?? Number.POSITIVE_INFINITY) < (old ?? Number.POSITIVE_INFINITY)
}

/** The topics that decide on the number of a store's partitions. */
function topicsAround({ sources }: TopologyState, subtopology: number): string {
  const around = sources.filter((source) => source.subtopology === subtopology).map(sourceId)
  return around.length === 0 ? '(handed over)' : around.join(', ')
}

/** What tells a source from others. */
export function sourceId(source: Pick<SourceState, 'topics' | 'pattern'>): string {
  return source.pattern === undefined ? source.topics.join('+') : `/${source.pattern}/`
}

function sourceDifferences(before: TopologyState, after: TopologyState): Difference[] {
  const old = new Map(before.sources.map((source) => [sourceId(source), source]))
  const now = new Map(after.sources.map((source) => [sourceId(source), source]))
  const result: Difference[] = []
  for (const [id, source] of old) {
    const successor = now.get(id)
    if (!successor) {
      result.push({ level: 'note', what: `the source ${id} is gone; where it was left is forgotten in time` })
      continue
    }
    for (const [field, what] of [
      ['keySerde', 'key serde'],
      ['valueSerde', 'value serde'],
    ] as const) {
      if (source[field] === successor[field]) continue
      const change = `${source[field]} to ${successor[field]}`
      const sentence = `the ${what} of the source ${id} changes from ${change}: records that are there must fit it`
      result.push({ level: 'check', what: sentence })
    }
  }
  for (const id of now.keys()) {
    if (!old.has(id))
      result.push({ level: 'note', what: `the source ${id} is new; it begins where offsets.reset says` })
  }
  return result
}

function repartitionDifferences(before: TopologyState, after: TopologyState): Difference[] {
  const now = new Set(after.repartitions)
  return before.repartitions
    .filter((topic) => !now.has(topic))
    .map((topic) => ({
      level: 'check',
      what: `the repartition ${topic} is gone: where it is a topic (topology.sub-topology-split), a start refuses as long as records wait in it`,
    }))
}
