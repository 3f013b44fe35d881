/** Serdes of topics: those of the applications, unless the test gives its own. */
import { EngineError } from '../base/errors.ts'
import type { EmbeddedRegistry } from '../serde/registry/embedded-registry.ts'
import type { Serde } from '../serde/serde.ts'
import type { CompiledSource, CompiledTopology } from '../topology/compiled.ts'
import { plainKeySerde, plainValueSerde } from '../topology/serdes/default-serdes.ts'
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

/** Of an application: its sources and its sinks. */
export interface Known {
  readonly applicationId: string
  readonly topology: CompiledTopology
}

type Sink = SpecOf<'sink'>

const sinksOf = ({ topology }: Known): Sink[] =>
  topology.nodes.flatMap((node) => (node.spec.op === 'sink' ? [node.spec] : []))

export class TopicSerdes {
  readonly #applications: readonly Known[]
  readonly #registry: EmbeddedRegistry
  readonly #isBy: (topic: string, applicationId: string) => boolean
  /** Serdes that the test gave for a topic, connected. */
  readonly #own = new Map<string, { readonly of: unknown; readonly serde: Serde<unknown> }>()

  /** `isBy`: whether an application has written to a topic. */
  constructor(
    applications: readonly Known[],
    registry: EmbeddedRegistry,
    isBy: (topic: string, applicationId: string) => boolean,
  ) {
    this.#applications = applications
    this.#registry = registry
    this.#isBy = isBy
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

  /** Of several applications that read the topic the first: one that names it before one whose pattern it matches. */
  #sourceOf(topic: string): CompiledSource {
    const sources = this.#applications.flatMap(({ topology }) => topology.sources)
    const source =
      sources.find(({ topics }) => topics.includes(topic)) ?? sources.find(({ pattern }) => pattern?.test(topic))
    if (source) return source
    const ids = this.#applications.map(({ applicationId }) => applicationId)
    const nobody =
      ids.length === 1 ? 'The application does not read' : `None of the applications ${ids.join(', ')} reads`
    throw new EngineError('USAGE', `${nobody} the topic ${topic}.`)
  }

  /** Of several applications one that names the topic, before one that has chosen it for a record. */
  #sinkOf(topic: string): Sink | undefined {
    const named = this.#applications.flatMap(sinksOf).find((sink) => sink.topic === topic)
    if (named) return named
    const writers = this.#applications.filter(({ applicationId }) => this.#isBy(topic, applicationId))
    return writers.flatMap(sinksOf).find((sink) => typeof sink.topic === 'function')
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
