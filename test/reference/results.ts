/** Results of a program by topic and key, and how those of two runs differ. */
import { canonical, type Json } from '../../conformance/expr.ts'
import { Model } from './model/model.ts'
import type { Failed } from './model/parts.ts'
import { dispatchOrder, disorderOf, type Input, outOfOrdernessMs, type Program, type Promised } from './program.ts'

/** By topic, then key: each result's time and value, in order. */
export type Results = Map<string, Map<string, string[]>>

const textOf = (key: Json): string => (typeof key === 'string' ? key : canonical(key))

export function add(
  results: Results,
  topic: string,
  key: Json,
  value: Json,
  timestamp: number,
  headers?: string,
): void {
  const byKey = results.get(topic) ?? new Map<string, string[]>()
  results.set(topic, byKey)
  const id = textOf(key)
  const list = byKey.get(id) ?? []
  byKey.set(id, list)
  list.push(`${timestamp} ${canonical(value)}${headers === undefined ? '' : ` #${headers}`}`)
}

export interface Expected {
  readonly results: Results
  readonly late: number
  readonly letters: readonly Letter[]
}

/** A record that got no further, and why. */
export interface Letter {
  /** `topic/partition@offset: what the function said`. */
  readonly why: string
  /** The record as it came to its place; undefined: more than a record, or nothing that came. */
  readonly came: string | undefined
}

export const undecodable = 'it cannot be decoded'

export function expectedOf(program: Program): Expected {
  const model = new Model(program.nodes)
  let last = Number.NEGATIVE_INFINITY
  const place = new Places()
  for (const { input, watermark, before } of dispatchOrder(program)) {
    model.advance(before)
    const placed = place.of(input)
    if (placed !== undefined) model.take(placed, watermark)
    last = program.endsOpen ? Math.max(last, ownTime(program, input)) : watermark
  }
  return told(model, last, place.undecodable)
}

/** At the end of the input time goes on to the newest record, whatever partition it is in. Global tables have no time. */
function ownTime(program: Program, { topic, timestamp }: Input): number {
  const isGlobal = program.topics.some((spec) => spec.topic === topic && spec.kind === 'global')
  return isGlobal ? Number.NEGATIVE_INFINITY : timestamp - outOfOrdernessMs(disorderOf(program, topic))
}

/** Behind a topic between sub-topologies: time has come to each record before it is taken, whatever partition it is in. */
export function expectedBehindTopic(program: Program): Expected {
  const model = new Model(program.nodes)
  let last = Number.NEGATIVE_INFINITY
  const place = new Places()
  for (const { input } of dispatchOrder(program)) {
    last = Math.max(last, input.timestamp - outOfOrdernessMs(program.disorder))
    model.advance(last)
    const placed = place.of(input)
    if (placed !== undefined) model.take(placed, last)
  }
  return told(model, last, place.undecodable)
}

/** Gives each record the offset at which it lies. */
class Places {
  readonly #offsets = new Map<string, number>()
  readonly undecodable: Letter[] = []

  of(input: Input): (Input & { readonly offset: number }) | undefined {
    const { topic, partition, key, value, timestamp } = input
    const offset = this.#offsets.get(`${topic}/${partition}`) ?? 0
    this.#offsets.set(`${topic}/${partition}`, offset + 1)
    if (!input.isUndecodable) return { ...input, offset }
    const came = `${timestamp} ${key} ${canonical(value)}`
    this.undecodable.push({ why: `${topic}/${partition}@${offset}: ${undecodable}`, came })
    return undefined
  }
}

const letterOf = ({ rec: { cause }, message }: Failed): Letter => {
  if (cause === undefined) return { why: `/-1@-1: ${message}`, came: undefined }
  const { topic, partition, offset, came } = cause
  const record = came && `${came.at} ${textOf(came.key)} ${canonical(came.value)}`
  return { why: `${topic}/${partition}@${offset}: ${message}`, came: record }
}

function told(model: Model, last: number, more: readonly Letter[]): Expected {
  model.advance(last)
  const results: Results = new Map()
  for (const { topic, key, value, timestamp, headers } of model.outputs)
    add(results, topic, key, value, timestamp, headers)
  return { results, late: model.late, letters: [...more, ...model.failed.map(letterOf)] }
}

interface SinkOf {
  readonly topic: string
  readonly promised: Promised
  readonly comparesHeaders: boolean
}

const sinksOf = ({ nodes }: Program): SinkOf[] =>
  nodes.flatMap(({ op, topic, topics, promised = 'sequence', comparesHeaders = false }) => {
    const all = op === 'to' && topic ? (topics ?? [topic]) : []
    return all.map((each) => ({ topic: each, promised, comparesHeaders }))
  })

export const topicsOf = (program: Program): string[] => sinksOf(program).map(({ topic }) => topic)

function comparable(
  items: readonly string[] | undefined,
  key: string,
  { promised: toldAs, comparesHeaders }: SinkOf,
): readonly string[] {
  if (items === undefined) return []
  const list = comparesHeaders ? items : items.map((item) => item.replace(/ #.*$/, ''))
  // Records without a key are nowhere together.
  const promised = key === 'null' && toldAs === 'sequence' ? 'set' : toldAs
  if (promised === 'set') return [...list].sort()
  if (promised === 'sequence') return list
  // Which update was the last one, and hence its time, is open; so is whether a row that is gone was ever told.
  const last = list.at(-1)?.replace(/^\S+ /, '') ?? 'null'
  return last === 'null' ? [] : [last]
}

const count = (byKey: Map<string, string[]> | undefined): number =>
  [...(byKey?.values() ?? [])].reduce((sum, list) => sum + list.length, 0)

/** One line a topic that differs: how much is there, how many keys are wrong, the first difference. */
export function differences(program: Program, expected: Results, found: Results): string[] {
  const lines: string[] = []
  for (const sink of sinksOf(program)) {
    const { topic, promised } = sink
    const [want, got] = [expected.get(topic), found.get(topic)]
    const keys = [...new Set([...(want?.keys() ?? []), ...(got?.keys() ?? [])])].sort()
    let wrong = 0
    let first: string | undefined
    for (const key of keys) {
      const a = comparable(want?.get(key), key, sink)
      const b = comparable(got?.get(key), key, sink)
      const at = a.findIndex((item, i) => item !== b[i])
      if (at < 0 && a.length === b.length) continue
      wrong++
      const place = at < 0 ? a.length : at
      first ??= `key ${key} at ${place} of ${a.length}: expected ${a[place]}, found ${b[place]} (${b.length})`
    }
    if (wrong === 0) continue
    lines.push(
      `${topic} (${promised}): ${count(want)} results expected, ${count(got)} found, ` +
        `${wrong} of ${keys.length} keys wrong; ${first}`,
    )
  }
  return lines
}

/** Of programs whose failures become dead letters. */
export function lettersWrong({ policy }: Program, expected: Expected, found: readonly Letter[]): string[] {
  return policy === 'dead-letter' ? letterFaults(expected.letters, found) : []
}

/** What is wrong with the letters found. Those whose record is open are compared by their reason alone. */
function letterFaults(expected: readonly Letter[], found: readonly Letter[]): string[] {
  const open = new Set(expected.filter(({ came }) => came === undefined).map(({ why }) => why))
  const textOf = ({ why, came }: Letter): string => (open.has(why) ? why : `${why} | ${came}`)
  const count = (letters: readonly Letter[]): Map<string, number> => {
    const counts = new Map<string, number>()
    for (const letter of letters) counts.set(textOf(letter), (counts.get(textOf(letter)) ?? 0) + 1)
    return counts
  }
  const [want, got] = [count(expected), count(found)]
  const wrong = [...new Set([...want.keys(), ...got.keys()])].filter((text) => want.get(text) !== got.get(text))
  if (wrong.length === 0) return []
  const shown = wrong.slice(0, 3).map((text) => `${text}: ${want.get(text) ?? 0} expected, ${got.get(text) ?? 0} found`)
  return [
    `dead letters: ${expected.length} expected, ${found.length} found, ${wrong.length} wrong; ${shown.join('; ')}`,
  ]
}
