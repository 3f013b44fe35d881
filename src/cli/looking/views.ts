/** What each verb asks, and how its answer is shown as a table. */
import type { FlowReport } from '../../view/flow-rates.ts'
import { pairsText, tableText } from './table-text.ts'

/** Answers are read as far as a table shows them; `docs/http.md` has all of it. */
type Json = Readonly<Record<string, unknown>>
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as readonly Json[]) : [])
const record = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {})

export function text(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : value.toFixed(1)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export interface ViewedVerb {
  readonly path: string
  readonly about: string
  readonly show: (answer: Json, beside: Json) => string
  /** Asked as well where a table is wanted; empty where there is none. */
  readonly beside?: string
  /** Asked for as text where a table is wanted, and cut to the width of the screen. */
  readonly asText?: true
}

const lag: ViewedVerb = {
  path: '/offsets',
  about: 'lag by partition',
  show: ({ sources, totalLag }) => {
    const rows = list(sources).flatMap(({ topic, partitions }) =>
      list(partitions).map((each) => ({ topic, ...each }) as Json),
    )
    const table = tableText(rows, [
      { name: 'TOPIC', cell: ({ topic }) => text(topic) },
      { name: 'PARTITION', cell: ({ partition }) => text(partition), right: true },
      { name: 'COMMITTED', cell: ({ committedOffset }) => text(committedOffset), right: true },
      { name: 'END', cell: ({ logEndOffset }) => text(logEndOffset), right: true },
      { name: 'LAG', cell: (row) => text(row.lag), right: true },
    ])
    return `${table}total lag ${text(totalLag)}\n`
  },
}

const watermarks: ViewedVerb = {
  path: '/watermarks',
  about: 'event time, and which partition holds it',
  show: ({ globalIso, globalMs, partitions }) => {
    const rows = Object.entries(record(partitions)).map(([name, each]): Json => ({ name, ...record(each) }))
    const table = tableText(rows, [
      { name: 'PARTITION', cell: ({ name }) => text(name) },
      { name: 'WATERMARK', cell: ({ watermarkIso }) => text(watermarkIso) },
      { name: 'IDLE', cell: ({ idle }) => (idle === true ? 'yes' : 'no') },
      {
        name: 'HOLDS',
        cell: ({ idle, watermarkMs, previewWatermarkMs }) =>
          idle !== true && (previewWatermarkMs ?? watermarkMs) === globalMs ? 'yes' : '',
      },
      { name: 'ALIGNMENT', cell: (row) => `${row.alignmentGroup ?? ''}${row.alignmentHeld === true ? ' held' : ''}` },
    ])
    return `${table}global ${text(globalIso)}\n`
  },
}

const stores: ViewedVerb = {
  path: '/stores',
  about: 'stores: rows, bytes, restore; with a name its rows',
  show: ({ stores: all }) =>
    tableText(list(all), [
      { name: 'STORE', cell: ({ store }) => text(store) },
      { name: 'KIND', cell: ({ kind }) => text(kind) },
      { name: 'ROWS', cell: ({ rows }) => text(rows), right: true },
      { name: 'BYTES', cell: ({ bytes }) => text(bytes), right: true },
      { name: 'READS', cell: ({ reads }) => text(reads), right: true },
      { name: 'WRITES', cell: ({ writes }) => text(writes), right: true },
      {
        name: 'TO RESTORE',
        cell: ({ restore }) => text(list(restore).reduce((all, each) => all + Number(each.remainingRecords), 0)),
        right: true,
      },
    ]),
}

const threads: ViewedVerb = {
  path: '/debug/threads?filter=known',
  about: 'threads of the engine, and what each is in',
  show: ({ engineThreads }) =>
    tableText(list(engineThreads), [
      { name: 'THREAD', cell: ({ name }) => text(name) },
      { name: 'STATE', cell: ({ state }) => text(state) },
      { name: 'NODE', cell: ({ currentNode }) => text(currentNode) },
      { name: 'IN', cell: ({ stack }) => text((stack as readonly string[])[0]) },
    ]),
}

const barriers: ViewedVerb = {
  path: '/debug/barriers',
  about: 'the commit under way, and the last ones',
  show: (answer) => {
    const { phase, phaseAgeMs, commitId, outstandingLanes, restarts, last } = answer
    const { used, max } = record(restarts)
    const pairs = pairsText([
      ['phase', `${text(phase)} for ${text(phaseAgeMs)} ms`],
      ['commit', text(commitId)],
      ['waits for', (outstandingLanes as readonly string[]).join(', ') || 'no lane'],
      ['restarts', `${text(used)} of ${text(max)}`],
    ])
    const commits = tableText(list(last).slice(0, 10), [
      { name: 'LAST COMMITS', cell: (row) => text(row.commitId) },
      { name: 'OUTCOME', cell: ({ outcome }) => text(outcome) },
      { name: 'AT', cell: ({ atMs }) => new Date(Number(atMs)).toISOString() },
      {
        name: 'MS',
        cell: ({ durationsMs }) => text(Object.values(record(durationsMs)).reduce<number>((a, b) => a + Number(b), 0)),
        right: true,
      },
    ])
    return `${pairs}\n${commits}`
  },
}

const license: ViewedVerb = {
  path: '/license',
  about: 'state of the license',
  show: (answer) => pairsText(Object.entries(answer).map(([name, value]) => [name, text(value)] as const)),
}

const config: ViewedVerb = {
  path: '/config',
  about: 'the configuration in force, secrets masked',
  beside: '/config/sources',
  show: (answer, { sources }) =>
    tableText(leavesOf(answer), [
      { name: 'KEY', cell: ([key]) => key },
      { name: 'VALUE', cell: ([, value]) => text(value) },
      { name: 'FROM', cell: ([key]) => text(record(sources)[key]) },
    ]),
}

function leavesOf(tree: Json, path = ''): Array<readonly [key: string, value: unknown]> {
  return Object.entries(tree).flatMap(([name, value]) => {
    const key = path === '' ? name : `${path}.${name}`
    const isTree = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isTree ? leavesOf(record(value), key) : [[key, value] as const]
  })
}

const topology: ViewedVerb = {
  path: '/topology',
  about: 'sub-topologies, stores, boundaries of a running application',
  asText: true,
  show: text,
}

export const viewedVerbs = { topology, lag, watermarks, stores, threads, barriers, config, license } as const
export type ViewedName = keyof typeof viewedVerbs

/** Rows of one store. */
export function rowsText({ rows, more, next }: Json): string {
  const hasWindows = list(rows).some(({ start }) => start !== undefined)
  const iso = (value: unknown): string => (typeof value === 'number' ? new Date(value).toISOString() : '-')
  const table = tableText(list(rows), [
    { name: 'KEY', cell: ({ key }) => text(key) },
    { name: 'VALUE', cell: ({ value }) => text(value) },
    hasWindows
      ? { name: 'WINDOW FROM', cell: ({ start }) => iso(start) }
      : { name: 'EVENT TIME', cell: ({ timestamp }) => iso(timestamp) },
  ])
  const rest =
    more !== true ? '' : next === null ? 'There are more: narrow --from and --to.\n' : `More: --from '${next}'\n`
  return table + rest
}

/** The screen of `top`. */
export function topText(flow: FlowReport, state: string, totalLag: number | null, watermark: string | null): string {
  const rate = (all: FlowReport['sources']): string =>
    text(all.reduce((sum, { recordsPerSecond }) => sum + recordsPerSecond, 0))
  const percent = (share: number): string => `${Math.round(share * 100)}%`
  const head = pairsText([
    ['state', `${state}, at ${flow.timestamp}`],
    ['records', `${rate(flow.sources)}/s in, ${rate(flow.sinks)}/s out, lag ${text(totalLag)}`],
    ['watermark', text(watermark)],
  ])
  const lanes = tableText(flow.lanes, [
    { name: 'LANE', cell: ({ lane }) => lane },
    { name: 'REC/S', cell: ({ recordsPerSecond }) => text(recordsPerSecond), right: true },
    { name: 'QUEUED', cell: ({ queuedRecords }) => text(queuedRecords), right: true },
    { name: 'CALLS', cell: ({ inFlight }) => text(inFlight), right: true },
    { name: 'BUSY', cell: ({ busy }) => percent(busy), right: true },
    { name: 'WAIT', cell: ({ waiting }) => percent(waiting), right: true },
    { name: 'IDLE', cell: ({ idle }) => percent(idle), right: true },
    { name: 'NODE', cell: ({ node }) => node ?? '-' },
  ])
  const hottest = [...flow.nodes].sort((a, b) => b.recordsPerSecond - a.recordsPerSecond).slice(0, 10)
  const nodes = tableText(hottest, [
    { name: 'NODE', cell: ({ node }) => node },
    { name: 'REC/S', cell: ({ recordsPerSecond }) => text(recordsPerSecond), right: true },
    { name: 'RECORDS', cell: ({ records }) => text(records), right: true },
  ])
  return `${head}\n${lanes}\n${nodes}`
}
