/**
 * Through topics a record's task is that of the partition in which it lies. Records that were re-keyed lie where Kafka's default
 * partitioner puts their keys; a producer of another partitioner (librdkafka's default is one) puts records of the same keys
 * elsewhere, and neither joins nor stores find one another. Nobody would see it by the results, so the first records are looked at.
 */
import type { ByteRange } from '../../base/byte-range.ts'
import { keySlot } from '../../base/hash.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { CompiledSource, CompiledTopology } from '../../topology/compiled.ts'

/** Records with a key that are looked at, of each source: more than enough where a producer goes by another rule. */
const lookedAt = 100
/** So many where their keys say, and none elsewhere: that is no chance. */
const laidByKey = 16

/** A record as it came. */
export interface Laid {
  readonly topic: string
  readonly offset: number
  readonly task: number
  readonly key: ByteRange | null
}

export class LaidElsewhere {
  readonly #topology: CompiledTopology
  /** By source: records that are to be looked at yet. */
  readonly #left: Int32Array
  readonly #elsewhere: Array<string | undefined> = []

  constructor(topology: CompiledTopology) {
    this.#topology = topology
    this.#left = Int32Array.from(topology.sources, (source) => (meetsOthers(topology, source) ? lookedAt : 0))
  }

  /** Whether the next record of the source is to be looked at. */
  looksAt(source: number): boolean {
    return (this.#left[source] as number) > 0
  }

  /** A record of a source; what is to be said of it, if anything. */
  look(index: number, { topic, offset, task, key }: Laid, affinity: Affinity): string | undefined {
    if (key === null) return undefined
    if (affinity.split === 'in-process') {
      this.#left.fill(0)
      return undefined
    }
    const { subtopology } = this.#topology.sources[index] as CompiledSource
    const own = keySlot(key.buffer, key.start, key.end) % affinity.tasks(subtopology)
    ;(this.#left[index] as number)--
    if (own !== task)
      this.#elsewhere[index] ??= `${topic}/${task} at offset ${offset} has a key that belongs into partition ${own}`
    return this.#find(subtopology)
  }

  #find(subtopology: number): string | undefined {
    const sources = this.#topology.sources.filter((source) => source.subtopology === subtopology)
    const other = sources.find((source) => this.#liesByKey(source))
    const source = sources.find(({ index }) => this.#elsewhere[index] !== undefined)
    if (other === undefined || source === undefined) return undefined
    // Once is enough.
    for (const { index } of sources) this.#left[index] = 0
    return (
      `the record ${this.#elsewhere[source.index]} by Kafka's default partitioner, and the records of ${other.topics[0]} lie where that puts ` +
      'them: records of one key are in different tasks, and what is joined or kept by key there misses some of them. Set the partitioner of the ' +
      'producer (for librdkafka `partitioner: murmur2_random`), put `.repartition()` behind the stream, or set `topology.sub-topology-split: in-process`'
    )
  }

  #liesByKey({ index, boundary }: CompiledSource): boolean {
    if (boundary !== undefined) return !choosesPartition(this.#topology, boundary)
    return this.#elsewhere[index] === undefined && lookedAt - (this.#left[index] as number) >= laidByKey
  }
}

/** Answers of foreign-key joins go to where their left row lies. */
function choosesPartition({ nodes }: CompiledTopology, boundary: number): boolean {
  return nodes.some(({ spec }) => spec.op === 'handOff' && spec.boundary === boundary && spec.toPartition !== undefined)
}

/** A topic of others whose records may meet those of other topics in a store. Windowed keys lie by what is inside. */
function meetsOthers({ sources, subtopologies }: CompiledTopology, source: CompiledSource): boolean {
  const { index, kind, boundary, subtopology, keySerde } = source
  if (kind !== 'topics' || boundary !== undefined || keySerde.name.startsWith('windowed(')) return false
  if (subtopologies[subtopology]?.stores.length === 0) return false
  return sources.some((other) => other.index !== index && other.subtopology === subtopology && other.kind !== 'global')
}
