/** Results of a program by topic and key, and how those of two runs differ. */
import { canonical, type Json } from '../../conformance/expr.ts'
import { Model } from './model/model.ts'
import { dispatchOrder, type Input, outOfOrdernessMs, type Program, type Promised } from './program.ts'

/** By topic, then key: each result's time and value, in order. */
export type Results = Map<string, Map<string, string[]>>

export function add(results: Results, topic: string, key: Json, value: Json, timestamp: number): void {
  const byKey = results.get(topic) ?? new Map<string, string[]>()
  results.set(topic, byKey)
  const id = typeof key === 'string' ? key : canonical(key)
  const list = byKey.get(id) ?? []
  byKey.set(id, list)
  list.push(`${timestamp} ${canonical(value)}`)
}

export interface Expected {
  readonly results: Results
  readonly late: number
}

export function expectedOf(program: Program): Expected {
  const model = new Model(program.nodes)
  let last = Number.NEGATIVE_INFINITY
  for (const { input, watermark, before } of dispatchOrder(program)) {
    model.advance(before)
    model.take(input, watermark)
    last = program.endsOpen ? Math.max(last, ownTime(program, input)) : watermark
  }
  return told(model, last)
}

/** At the end of the input time goes on to the newest record, whatever partition it is in. Global tables have no time. */
function ownTime({ topics, disorder }: Program, { topic, timestamp }: Input): number {
  const isGlobal = topics.some((spec) => spec.topic === topic && spec.kind === 'global')
  return isGlobal ? Number.NEGATIVE_INFINITY : timestamp - outOfOrdernessMs(disorder)
}

/** Behind a topic between sub-topologies: time has come to each record before it is taken, whatever partition it is in. */
export function expectedBehindTopic(program: Program): Expected {
  const model = new Model(program.nodes)
  let last = Number.NEGATIVE_INFINITY
  for (const { input } of dispatchOrder(program)) {
    last = Math.max(last, input.timestamp - outOfOrdernessMs(program.disorder))
    model.advance(last)
    model.take(input, last)
  }
  return told(model, last)
}

function told(model: Model, last: number): Expected {
  model.advance(last)
  const results: Results = new Map()
  for (const { topic, key, value, timestamp } of model.outputs) add(results, topic, key, value, timestamp)
  return { results, late: model.late }
}

const sinksOf = ({ nodes }: Program): Array<{ topic: string; promised: Promised }> =>
  nodes.flatMap(({ op, topic, promised = 'sequence' }) => (op === 'to' && topic ? [{ topic, promised }] : []))

export const topicsOf = (program: Program): string[] => sinksOf(program).map(({ topic }) => topic)

function comparable(list: readonly string[] | undefined, promised: Promised): readonly string[] {
  if (list === undefined) return []
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
  for (const { topic, promised } of sinksOf(program)) {
    const [want, got] = [expected.get(topic), found.get(topic)]
    const keys = [...new Set([...(want?.keys() ?? []), ...(got?.keys() ?? [])])].sort()
    let wrong = 0
    let first: string | undefined
    for (const key of keys) {
      const a = comparable(want?.get(key), promised)
      const b = comparable(got?.get(key), promised)
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
