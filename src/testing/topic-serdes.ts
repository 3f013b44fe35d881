/** Serdes of topics: those of the application, unless the test gives its own. */
import { EngineError } from '../base/errors.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { Serde } from '../serde/serde.ts'
import type { CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import { plainKeySerde, plainValueSerde } from '../topology/default-serdes.ts'
import type { SpecOf } from '../topology/operator-spec.ts'
import type { OutputRecord } from './contract.ts'
import { connectSerde } from './embedded-schemas.ts'
import type { WrittenRecord } from './written.ts'

export interface Serdes<K, V> {
  readonly key?: Serde<K>
  readonly value?: Serde<V>
}

interface SerdePair {
  readonly key: Serde<unknown>
  readonly value: Serde<unknown>
}

export class TopicSerdes {
  readonly #topology: CompiledTopology
  readonly #registry: EmbeddedRegistry
  /** Serdes that the test gave for a topic, connected. */
  readonly #own = new Map<string, { readonly of: unknown; readonly serde: Serde<unknown> }>()

  constructor(topology: CompiledTopology, registry: EmbeddedRegistry) {
    this.#topology = topology
    this.#registry = registry
  }

  /** @throws EngineError `USAGE` when the application does not read the topic. */
  ofInput(topic: string, own?: Serdes<never, never>): SerdePair {
    const source = this.#sourceOf(topic)
    return {
      key: this.#connected(own?.key, topic, 'key') ?? source.keySerde,
      value: this.#connected(own?.value, topic, 'value') ?? source.valueSerde,
    }
  }

  shown(record: WrittenRecord, own?: Serdes<never, never>): OutputRecord {
    const { topic } = record
    const sink = this.#sinkOf(topic)
    const key = this.#connected(own?.key, topic, 'key') ?? sink?.keySerde ?? plainKeySerde
    const value = this.#connected(own?.value, topic, 'value') ?? sink?.valueSerde ?? plainValueSerde
    return {
      ...record,
      key: record.key === null ? null : key.deserialize(record.key),
      value: record.value === null ? null : value.deserialize(record.value),
    }
  }

  #sourceOf(topic: string): CompiledSource {
    const source = this.#topology.sources.find((s) => s.topics.includes(topic) || s.pattern?.test(topic) === true)
    if (!source) throw new EngineError('USAGE', `The application does not read the topic ${topic}.`)
    return source
  }

  #sinkOf(topic: string): SpecOf<'sink'> | undefined {
    const sinks = this.#topology.nodes.flatMap((node) => (node.spec.op === 'sink' ? [node.spec] : []))
    return sinks.find((sink) => sink.topic === topic) ?? sinks.find((sink) => typeof sink.topic === 'function')
  }

  /** A serde of the test's own, as it is for the topic. It uses the same registry as those of the application. */
  #connected(serde: Serde<never> | undefined, topic: string, part: 'key' | 'value'): Serde<unknown> | undefined {
    const given = serde as Serde<unknown> | undefined
    if (given?.forTopic === undefined) return given
    const id = `${topic} ${part}`
    let known = this.#own.get(id)
    if (known?.of !== given) {
      known = { of: given, serde: given.forTopic(topic, part) }
      connectSerde(known.serde, this.#registry)
      this.#own.set(id, known)
    }
    return known.serde
  }
}
