/**
 * Through topics a record's task is that of the partition in which it lies. Records that were re-keyed lie where Kafka's default
 * partitioner puts their keys; a producer of another partitioner (librdkafka's default is one) puts records of the same keys
 * elsewhere, and neither joins nor stores find one another. Nobody would see it by the results, so the first records are looked at.
 */
import type { ByteRange } from '../../base/byte-range.ts'
import { keySlot } from '../../base/hash.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { CompiledSource, CompiledTopology } from '../../topology/compiled.ts'

/** Records that are looked at, of each source: more than enough where a producer goes by another rule. */
const lookedAt = 100
/** So many keys whose records lie where these say, and none elsewhere: that is no chance. */
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
  /** By source: keys of records that lie where these say, by their hash. */
  readonly #byKey: ReadonlyArray<Set<number>>
  /** By source: stores to which its records come. */
  readonly #stores: ReadonlyArray<ReadonlySet<string>>

  constructor(topology: CompiledTopology) {
    this.#topology = topology
    this.#byKey = topology.sources.map(() => new Set<number>())
    this.#stores = topology.sources.map(({ node }) => storesBehind(topology, node))
    const isOfInterest = (source: CompiledSource): boolean =>
      isOthersTopic(source) && this.#meeting(source).some((other) => isOthersTopic(other) || this.#liesByKey(other))
    this.#left = Int32Array.from(topology.sources, (source) => (isOfInterest(source) ? lookedAt : 0))
  }

  /** Whether the next record of the source is to be looked at. */
  looksAt(source: number): boolean {
    return (this.#left[source] as number) > 0
  }

  /** A record of a source; what is to be said of it, if anything. */
  look(index: number, { topic, offset, task, key }: Laid, affinity: Affinity): string | undefined {
    if (affinity.split === 'in-process') this.#left.fill(0)
    else this.#left[index] = (this.#left[index] as number) - 1
    if (key === null || affinity.split === 'in-process') return undefined
    const { subtopology } = this.#topology.sources[index] as CompiledSource
    const slot = keySlot(key.buffer, key.start, key.end)
    const own = slot % affinity.tasks(subtopology)
    if (own === task) this.#byKey[index]?.add(slot)
    else {
      this.#elsewhere[index] ??= `${topic}/${task} at offset ${offset} has a key that belongs into partition ${own}`
    }
    return this.#find(subtopology)
  }

  #find(subtopology: number): string | undefined {
    for (const source of this.#topology.sources) {
      if (source.subtopology !== subtopology || this.#elsewhere[source.index] === undefined) continue
      const other = this.#meeting(source).find((each) => this.#liesByKey(each))
      if (other !== undefined) return this.#message(source, other)
    }
    return undefined
  }

  #message({ index, subtopology }: CompiledSource, other: CompiledSource): string {
    // Once is enough.
    for (const source of this.#topology.sources) if (source.subtopology === subtopology) this.#left[source.index] = 0
    return (
      `the record ${this.#elsewhere[index]} by Kafka's default partitioner, and the records of ${this.#nameOf(other)} lie where that puts ` +
      'them: records of one key are in different tasks, and what is joined or kept by key there misses some of them. Set the partitioner of the ' +
      'producer (for librdkafka `partitioner: murmur2_random`), put `.repartition()` behind the stream, or set `topology.sub-topology-split: ' +
      'in-process`; and begin with another applicationId then, for what is stored lies by these partitions'
    )
  }

  /** Others whose records come to a store to which those of this source come. */
  #meeting({ index, subtopology }: CompiledSource): CompiledSource[] {
    const stores = [...(this.#stores[index] as ReadonlySet<string>)]
    return this.#topology.sources.filter(
      (other) =>
        other.index !== index &&
        other.subtopology === subtopology &&
        other.kind !== 'global' &&
        stores.some((store) => this.#stores[other.index]?.has(store)),
    )
  }

  #liesByKey({ index, boundary }: CompiledSource): boolean {
    if (boundary !== undefined) return !choosesPartition(this.#topology, boundary)
    return this.#elsewhere[index] === undefined && (this.#byKey[index] as Set<number>).size >= laidByKey
  }

  #nameOf({ topics, boundary }: CompiledSource): string {
    return topics[0] ?? this.#topology.boundaries[boundary ?? -1]?.topic ?? ''
  }
}

/** Answers of foreign-key joins go to where their left row lies. */
function choosesPartition({ nodes }: CompiledTopology, boundary: number): boolean {
  return nodes.some(({ spec }) => spec.op === 'handOff' && spec.boundary === boundary && spec.toPartition !== undefined)
}

/** Windowed keys lie by what is inside. */
function isOthersTopic({ kind, boundary, keySerde }: CompiledSource): boolean {
  return kind === 'topics' && boundary === undefined && !keySerde.name.startsWith('windowed(')
}

/** Stores of the nodes to which records come from this one, within their task. */
function storesBehind({ nodes }: CompiledTopology, source: number): Set<string> {
  const reached = new Set([source])
  const stores = new Set<string>()
  // The set grows while the loop walks it. Each node is visited once.
  for (const at of reached) {
    const node = nodes[at]
    for (const child of node?.children ?? []) reached.add(child)
    for (const store of [...(node?.stores ?? []), ...(node?.hiddenStores ?? [])]) stores.add(store)
  }
  return stores
}
