/** Serdes of a topic: those the program gives, else those the application reads or writes it with. */
import { EngineError } from '../../base/errors.ts'
import { nearestName } from '../../config/nearest.ts'
import type { Serde } from '../../serde/serde.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import { plainKeySerde, plainValueSerde } from '../../topology/serdes/default-serdes.ts'
import type { RecordSerdes } from './records.ts'

export interface SerdePair {
  readonly key: Serde<unknown>
  readonly value: Serde<unknown>
}

/**
 * @throws EngineError `USAGE` where the application does not know the topic and no serde is given, and for a serde of
 * the program's own that uses a schema registry.
 */
export function serdesOf(topology: CompiledTopology, topic: string, own: RecordSerdes<never, never>): SerdePair {
  const given = { key: own.key as Serde<unknown> | undefined, value: own.value as Serde<unknown> | undefined }
  const known = ofSource(topology, topic) ?? ofSink(topology, topic)
  if (known === undefined && given.key === undefined && given.value === undefined) throw unknownTopic(topology, topic)
  return {
    key: asGiven(given.key, topic, 'key') ?? known?.key ?? plainKeySerde,
    value: asGiven(given.value, topic, 'value') ?? known?.value ?? plainValueSerde,
  }
}

function ofSource(topology: CompiledTopology, topic: string): SerdePair | undefined {
  const source = topology.sources.find(
    ({ kind, topics, pattern }) =>
      (kind === 'topics' || kind === 'global') && (topics.includes(topic) || pattern?.test(topic) === true),
  )
  return source && { key: source.keySerde, value: source.valueSerde }
}

function ofSink(topology: CompiledTopology, topic: string): SerdePair | undefined {
  const sinks = topology.nodes.flatMap(({ spec }) => (spec.op === 'sink' ? [spec] : []))
  // A sink that chooses its topic per record may have written to any topic that no other node names.
  const sink = sinks.find((spec) => spec.topic === topic) ?? sinks.find((spec) => typeof spec.topic !== 'string')
  return sink && { key: sink.keySerde, value: sink.valueSerde }
}

/** A serde of the program's own, as it is for the topic. */
function asGiven(given: Serde<unknown> | undefined, topic: string, part: 'key' | 'value'): Serde<unknown> | undefined {
  const serde = given?.forTopic?.(topic, part) ?? given
  if (serde?.schemas === undefined) return serde
  throw new EngineError(
    'USAGE',
    `The serde ${serde.name} given for the topic ${topic} uses a schema registry, to which only the serdes of the ` +
      'application are connected. Leave it out where the application reads or writes the topic.',
  )
}

function unknownTopic(topology: CompiledTopology, topic: string): EngineError {
  const sinks = topology.nodes.flatMap(({ spec }) => (spec.op === 'sink' ? [spec.topic] : []))
  const named = [...sinks, ...topology.sources.flatMap(({ topics }) => topics)]
  const names = [...new Set(named.filter((name) => typeof name === 'string'))].sort()
  const near = nearestName(topic, names, 2)
  const hint = near === undefined ? `It knows ${names.join(', ') || 'none'}.` : `Did you mean ${near}?`
  return new EngineError(
    'USAGE',
    `The application neither reads nor writes the topic ${topic}, so its serdes are not known. ${hint} ` +
      'For a topic of another program give `key` and `value`.',
  )
}
