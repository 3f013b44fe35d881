/** JSON Schemas of flow, stores and dead letters. */
import { dropReasons, otherTopics } from '../../base/counters.ts'
import {
  boolean,
  count,
  list,
  map,
  nullable,
  number,
  object,
  oneOf,
  type Schema,
  share,
  string,
  timestamp,
} from './schema-parts.ts'

const rate: Schema<number> = { type: 'number', minimum: 0 }
const anything: Schema = {}
const header: Schema<readonly [name: string, value: string | null]> = {
  type: 'array',
  prefixItems: [string, nullable(string)],
}

const topicFlow = list(object({ topic: string, records: count, bytes: count, recordsPerSecond: rate }))
const column = list(nullable(number))

const flow = object({
  timestamp,
  windowMs: count,
  sources: topicFlow,
  sinks: topicFlow,
  nodes: list(
    object({
      node: string,
      type: oneOf(['source', 'processor', 'sink']),
      subtopology: count,
      records: count,
      recordsPerSecond: rate,
      byLane: list(rate),
    }),
  ),
  lanes: list(
    object({
      lane: string,
      recordsPerSecond: rate,
      queuedRecords: count,
      inFlight: count,
      node: nullable(string),
      busy: share,
      idle: share,
      held: share,
      waiting: share,
    }),
  ),
  stages: list(
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
  deadLetters: map(count),
  history: nullable(
    object({
      atMs: list(count),
      recordsIn: column,
      recordsOut: column,
      lag: column,
      commitMs: column,
      watermarkDelayMs: column,
    }),
  ),
})

const stores = object({
  rowsShown: boolean,
  stores: list(
    object({
      store: string,
      kind: oneOf(['key-value', 'window', 'session', 'versioned']),
      subtopologies: list(count),
      global: boolean,
      changelog: boolean,
      changelogTopic: nullable(string),
      keySerde: string,
      valueSerde: string,
      rows: count,
      bytes: count,
      reads: count,
      writes: count,
      restoredRecords: count,
      restore: list(object({ partition: count, restoredRecords: count, remainingRecords: count })),
    }),
  ),
})

const storeRows = object({
  store: string,
  kind: string,
  rows: list(
    object({
      key: anything,
      value: anything,
      'timestamp?': number,
      'start?': number,
      'end?': number,
      'validTo?': number,
    }),
  ),
  more: boolean,
  next: nullable(string),
})

const deadLetters = object({
  topic: string,
  letters: list(
    object({
      partition: count,
      offset: count,
      timestamp,
      reason: string,
      message: string,
      source: nullable(object({ topic: string, partition: count, offset: count })),
      key: anything,
      value: anything,
      headers: list(header),
      redriven: boolean,
    }),
  ),
  seen: count,
  more: boolean,
  byReason: map(count),
})

const redriven = object({
  dryRun: boolean,
  matched: count,
  redriven: count,
  already: count,
  gone: count,
  more: boolean,
  ends: string,
})

export const dataSchemas = {
  Flow: flow,
  Stores: stores,
  StoreRows: storeRows,
  DeadLetters: deadLetters,
  Redriven: redriven,
} as const

const shares = {
  busy: 'Share of the last ten seconds in which it was at work. The four shares make 1.',
  idle: 'In which it had nothing to do.',
  held: 'In which it waited for what is behind it.',
  waiting: 'In which it waited for asynchronous functions alone.',
}

const under = (path: string, docs: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(docs).map(([name, doc]) => [`${path}.${name}`, doc]))

/** What the fields mean. */
export const dataFieldDocs: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  Flow: {
    timestamp: 'When it was looked at.',
    windowMs: 'Over how long the rates are taken: ten seconds, less at first and after a restart.',
    ...under('sources[]', {
      topic:
        'A topic that is read: those that the topology names, and those of a pattern once they are read. Of the latter ' +
        `the first 63 have a line each, and all others one, as \`${otherTopics}\`. Topics of global tables are not counted.`,
      records: 'Records read since the start.',
      bytes: 'Bytes of them.',
      recordsPerSecond: 'Of late.',
    }),
    ...under('sinks[]', {
      topic:
        'A topic that is written, the dead letters included: those that the topology names, and those that a function ' +
        `chooses once they are written, in the same way. Changelogs and repartition topics are not counted.`,
      records: 'Records written since the start.',
      bytes: 'Bytes of them.',
      recordsPerSecond: 'Of late.',
    }),
    ...under('nodes[]', {
      node: 'A node of the topology.',
      type: 'What it is.',
      subtopology: 'The sub-topology that it belongs to.',
      records: 'Records that came to it since the start.',
      recordsPerSecond: 'Of late, in all lanes.',
    }),
    'nodes[].byLane[]': 'The same of one lane, in the order of `lanes`.',
    ...under('lanes[]', {
      lane: 'A lane.',
      recordsPerSecond: 'Records that it was through with, of late.',
      queuedRecords: 'Records that wait for it.',
      inFlight: 'Calls of asynchronous functions under way.',
      node: 'Node that it is at, or was last.',
      ...shares,
    }),
    ...under('stages[]', {
      stage: '`fetch`, `dispatch`, each lane, `commit`, `broker`, as in `/why`.',
      ...shares,
      by: 'Code of the finding of `/why` that holds it for more than half of the time.',
      place: 'Its place.',
    }),
    'deadLetters.*': `Dead letters written since the start, by reason: ${dropReasons.map((r) => `\`${r}\``).join(', ')}.`,
    'history.atMs[]': 'Only with `history=true`: one instant every five seconds, oldest first.',
    'history.recordsIn[]': 'Records read per second, in the five seconds before; null where it is not known.',
    'history.recordsOut[]': 'Records written per second.',
    'history.lag[]': 'Lag at that instant.',
    'history.commitMs[]': 'Duration of the last commit.',
    'history.watermarkDelayMs[]': 'How far the watermark was behind the clock.',
  },
  Stores: {
    rowsShown: 'Whether `/stores/{name}` is served.',
    ...under('stores[]', {
      store: 'Its name.',
      kind: 'What it is.',
      global: 'Filled from a topic, whole in every process.',
      changelog: 'Whether a topic backs it.',
      changelogTopic: 'Which one, once it is known.',
      keySerde: 'How keys become bytes.',
      valueSerde: 'How values do.',
      rows: 'Rows in this process, about.',
      bytes: 'Bytes that they take, about; 0 where it is not known.',
      reads: 'Reads since the start.',
      writes: 'Writes since the start.',
      restoredRecords: 'Changelog records restored since the start.',
    }),
    'stores[].subtopologies[]': 'A sub-topology that uses it.',
    ...under('stores[].restore[]', {
      partition: 'Only while it is restored: a partition.',
      restoredRecords: 'Changelog records that the store has by now.',
      remainingRecords: 'Changelog records left, by their offsets; with those that are read and under way.',
    }),
  },
  StoreRows: {
    store: 'Its name.',
    kind: 'What it is: it says which of the times a row has.',
    ...under('rows[]', {
      key: 'By the serde of the store, as JSON; of window and session stores without its window.',
      value: 'By the serde of the store, as JSON.',
      timestamp: 'Event time of the row, epoch milliseconds; of versioned stores: valid from.',
      start: 'First instant of the window or session.',
      end: 'Its end.',
      validTo: 'Until when this version holds; absent of the newest.',
    }),
    more: 'There are more rows than `limit`.',
    next: 'What to give as `from` for the next page, beside the same `key` or `to`; null at the end, and for stores whose rows do not go by key alone: narrow `from` and `to`.',
  },
  DeadLetters: {
    topic: 'The dead-letter topic.',
    ...under('letters[]', {
      partition: 'Where the letter is.',
      offset: 'Its offset there.',
      timestamp: 'Event time of the record.',
      reason: 'Class of the error, `RecordDropped` where nothing failed.',
      message: 'What the error said.',
      key: 'Of the letter, by the serde of the source topic, else as text or base64.',
      value: 'The same of the value.',
      redriven: 'It was put back.',
    }),
    'letters[].headers[]': 'Name and value, those of the error included.',
    'letters[].source.topic': 'The record that the letter was made of; null of what no record caused.',
    'letters[].source.partition': 'Its partition.',
    'letters[].source.offset': 'Its offset.',
    seen: 'Letters that were looked through, from the newest on by their timestamps, in whatever partitions they lie: at most 2,000, and fewer where reading them takes more than 256 MiB.',
    more: 'There are letters that were not looked through: older ones, or what those 256 MiB left.',
    'byReason.*': 'Letters of this class of error among them that fit the other filters.',
  },
  Redriven: {
    dryRun: 'Nothing was done.',
    matched: 'Letters that fit the filter.',
    redriven: 'Put back by this call; in a dry run: would be.',
    already: 'Were put back before.',
    gone:
      'Cannot be put back: the record is no longer in its topic, it is one of a repartition topic ' +
      '(`topology.sub-topology-split: repartition-topics`), or no record caused the letter.',
    more: 'There is more to put back than one call does, by `limit` or by the bytes of the records: ask again.',
    ends: 'What to give as `ends` then: what fails again meanwhile is a letter of its own, and not meant.',
  },
}
