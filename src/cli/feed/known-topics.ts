/** Whether the topics of `--feed` and `--print` are ones that the application knows. */
import { EngineError } from '../../base/errors.ts'
import { nearestName } from '../../config/nearest.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'

/** @throws EngineError `USAGE` where no source reads the topic. */
export function refuseUnreadTopic(topology: CompiledTopology, topic: string): void {
  const sources = topology.sources.filter(({ kind }) => kind === 'topics' || kind === 'global')
  if (sources.some(({ topics, pattern }) => topics.includes(topic) || pattern?.test(topic) === true)) return
  const read = [...new Set(sources.flatMap(({ topics }) => topics))].sort()
  throw new EngineError('USAGE', `--feed: the application does not read '${topic}'${known('it reads', topic, read)}`)
}

/** A sentence where nothing in the application reads or writes the topic; other programs may. */
export function unwrittenTopic(topology: CompiledTopology, topic: string): string | undefined {
  const sinks = topology.nodes.flatMap(({ spec }) => (spec.op === 'sink' ? [spec.topic] : []))
  // A sink that chooses its topics may write to any.
  if (sinks.some((sink) => typeof sink !== 'string')) return undefined
  const names = [...new Set([...sinks, ...topology.sources.flatMap(({ topics }) => topics)])] as string[]
  const isPattern = topology.sources.some(({ pattern }) => pattern?.test(topic) === true)
  if (isPattern || names.includes(topic) || /-(changelog|repartition|dead-letters)$/.test(topic)) return undefined
  const unless = 'nothing of it is printed unless another program writes there'
  const hint = known('name one of', topic, names.sort())
  return `--print: the application neither reads nor writes '${topic}', so ${unless}${hint}`
}

function known(words: string, topic: string, names: readonly string[]): string {
  const near = nearestName(topic, [...names], 2)
  if (near !== undefined) return `; did you mean '${near}'?`
  return names.length === 0 ? '' : `; ${words} ${names.map((name) => `'${name}'`).join(', ')}`
}
