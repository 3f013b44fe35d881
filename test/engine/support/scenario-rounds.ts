/** How a scenario's input is fed: all at once, or in rounds where something else than the engine must decide the order. */
import type { InputRecord, Recorded } from './scenario-bundle.ts'

export interface Round {
  readonly records: InputRecord[]
  /** By how much the wall clock moves when the records are done. */
  advanceMs: number
}

const joinsHandedOver =
  'a record read from a topic meets what another record becomes behind a hand-over: Kafka Streams finishes one input ' +
  'before the next in its test driver only, with a broker it gives no order here either'
const readsGlobalTable = 'a global table follows its topic by itself, as it does in Kafka Streams'
const tellsWatermark =
  'its results show the watermark, which is the least of both topics while both have records, and their times decrease'
const keysMeet =
  'a part without stores is spread over the lanes by key, and behind it several keys become one: between keys lanes keep ' +
  'no order'

/** Scenarios that are fed one record after the other, however many lanes there are, and why. */
const withoutOrder: Readonly<Record<string, string>> = {
  'foreign-key/key-is-foreign-key': joinsHandedOver,
  'pipelines/top-value': joinsHandedOver,
  'routing/meta': tellsWatermark,
  'stream-global/key-from-both': readsGlobalTable,
  'stream-global/store-lookup': readsGlobalTable,
}

/** Those that are with several lanes. */
const withoutOrderOfLanes: Readonly<Record<string, string>> = {
  'aggregate/group-by': keysMeet,
  'aggregate/group-by-named': keysMeet,
  'aggregate/random-1': keysMeet,
  'optimize/merge-repartition': keysMeet,
  'pipelines/word-count': keysMeet,
  'routing/fan-1': keysMeet,
  'routing/fan-2': keysMeet,
  'session/group-by': keysMeet,
  'stateless/chain-2': keysMeet,
  'stateless/chain-3': keysMeet,
  'stateless/flat-map': keysMeet,
  'stateless/map-swap': keysMeet,
  'stream-table/rekeyed': keysMeet,
  'table/to-table-rekeyed': keysMeet,
  'tumbling/group-by': keysMeet,
}

export function whyOneByOne({ name }: Recorded, lanes: number): string | undefined {
  return withoutOrder[name] ?? (lanes > 1 ? withoutOrderOfLanes[name] : undefined)
}

/** Every name with a reason, to be held against the names there are. */
export const namesWithReason = [...Object.keys(withoutOrder), ...Object.keys(withoutOrderOfLanes)]

/**
 * The input cut where two records of different topics have one timestamp: nothing but their arrival says which is first.
 * Within a round all topics are there at once, and the engine orders them itself.
 */
export function roundsOf(scenario: Recorded, lanes: number): Round[] {
  const result: Round[] = []
  const oneByOne = whyOneByOne(scenario, lanes) !== undefined
  let last: InputRecord | undefined
  for (const item of scenario.input) {
    const round = result.at(-1)
    if (!('topic' in item)) {
      result.push({ records: [], advanceMs: item.advanceWallClockMs })
      last = undefined
      continue
    }
    const tie = last && last.topic !== item.topic && last.timestamp === item.timestamp
    if (!round || !last || oneByOne || tie) result.push({ records: [item], advanceMs: 0 })
    else round.records.push(item)
    last = item
  }
  return result
}
