/**
 * Rows out of a source topic that serves as changelog. It has what producers wrote, and not what the table made of it: so a
 * record comes back the way it came in, through the serdes of its source and the policies for its errors.
 */
import { ByteRange } from '../../base/byte-range.ts'
import { noHeaders } from '../../broker/wire/headers.ts'
import { originAt, type Rec } from '../../operators/contract.ts'
import { decodeRecord } from '../../operators/decode.ts'
import { processingFailed } from '../../operators/node-operator.ts'
import { SerdeWaits } from '../../serde/serde.ts'
import type { StoreSpec } from '../../state/contract.ts'
import type { Affinity } from '../../topology/affinity.ts'
import type { CompiledSource, CompiledTopology } from '../../topology/compiled.ts'
import type { LaneOptions } from '../lane-options.ts'
import type { ForeignRows, Place } from '../stores/restore.ts'
import { type ErrorPolicies, policyFor } from './error-policy.ts'
import { keyPlaces } from './key-places.ts'

/** Undefined: the store wrote its changelog itself. */
export function sourceRows(
  spec: StoreSpec,
  partition: number,
  { topology, policies }: Pick<LaneOptions, 'topology' | 'policies'>,
  affinity: Affinity,
): ForeignRows | undefined {
  const topic = spec.changelogTopic
  const check = keyPlaces(spec, partition, topology, affinity)
  const source = topology.sources.find(({ kind, topics }) => kind === 'topics' && topics.includes(topic as string))
  if (topic === undefined || check === undefined || source === undefined) return undefined
  const table = tableOf(topology, spec.name)
  return new SourceRows({ spec, source, table, topic, partition, policies, check })
}

function tableOf({ nodes }: CompiledTopology, store: string): string {
  return nodes.find(({ spec }) => spec.op === 'tableSource' && spec.store?.name === store)?.name ?? store
}

interface Parts {
  readonly spec: StoreSpec
  readonly source: CompiledSource
  /** The operator that writes the rows. */
  readonly table: string
  readonly topic: string
  readonly partition: number
  readonly policies: ErrorPolicies
  readonly check: (place: Place) => void
}

class SourceRows implements ForeignRows {
  readonly #p: Parts
  readonly check: (place: Place) => void

  constructor(parts: Parts) {
    this.#p = parts
    this.check = parts.check
  }

  /**
   * @throws EngineError where the policy for its error is to fail.
   * @throws SerdeWaits as `decodeRecord`.
   */
  rowOf(place: Place): ReturnType<ForeignRows['rowOf']> {
    // A producer without a clock wrote it: it was dropped when it came in.
    if (place.timestamp < 0) return undefined
    const rec = this.#read(place)
    if (rec === undefined || isNothing(rec.key)) return undefined
    const { spec, table } = this.#p
    const { keySerde, valueSerde } = spec
    try {
      const value = isNothing(rec.value) ? null : valueSerde.serialize(rec.value)
      return { key: keySerde.serialize(rec.key), value, timestamp: rec.timestamp }
    } catch (error) {
      this.#passOver(error instanceof SerdeWaits ? error : processingFailed(error, table, rec))
      return undefined
    }
  }

  #read({ bytes, keyStart, keyEnd, valueStart, valueEnd, timestamp, offset }: Place): Rec | undefined {
    const { source, topic, partition } = this.#p
    const origin = originAt(topic, partition, offset, Number.NEGATIVE_INFINITY, 0)
    const key = new ByteRange(bytes, keyStart, keyEnd)
    const value = valueStart < 0 ? null : new ByteRange(bytes, valueStart, valueEnd)
    try {
      return decodeRecord(source, key, value, timestamp, noHeaders, origin)
    } catch (error) {
      this.#passOver(error)
      return undefined
    }
  }

  /** It was counted, or became a dead letter, when it came in. */
  #passOver(error: unknown): void {
    if (error instanceof SerdeWaits || policyFor(error, this.#p.policies) === 'fail') throw error
  }
}

const isNothing = (value: unknown): boolean => value === null || value === undefined
