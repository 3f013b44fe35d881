/** Avro without a schema registry: both sides know the schema. */
import { EngineError } from '../../base/errors.ts'
import { avroProblems } from '../registry/avro/avro-compatibility.ts'
import { AvroCodec, type AvroSchemaInput, avroNode } from '../registry/avro/avro.ts'
import { nameOf } from '../registry/avro/avro-schema.ts'
import type { KnownSchema } from '../schemas.ts'
import type { Serde } from '../serde.ts'
import { PlainSerde } from './plain-serde.ts'

/** What `serdes.avro` may be told. */
export interface PlainAvroOptions {
  /** What `long` is: `number` (default), which refuses what is not exact, or `bigint`. */
  readonly longs?: 'number' | 'bigint'
  /** The schema that records are written with by others; they are read by Avro's rules. Default: the serde's own. */
  readonly writer?: AvroSchemaInput
}

/** Behind `serdes.avro`. */
export function plainAvro<T>(schema: AvroSchemaInput, options: PlainAvroOptions = {}): Serde<T> {
  const { writer = schema, longs = 'number' } = options
  const codec = new AvroCodec([schema], { longs })
  const [own, written] = [avroNode(schema), avroNode(writer)]
  const problems = writer === schema ? [] : avroProblems(own, written)
  if (problems.length > 0) {
    throw new EngineError(
      'TOPOLOGY_INVALID',
      `The Avro schema ${nameOf(own)} cannot read what is written with ${nameOf(written)}: ${problems.slice(0, 3).join('; ')}.`,
    )
  }
  const known = (node: unknown): KnownSchema => ({ id: 0, type: 'AVRO', text: JSON.stringify(node), references: [] })
  const read = codec.reader(known(written), undefined)
  const { write } = codec.writer([known(own)])
  return new PlainSerde<T>({
    name: codec.name,
    read,
    write,
    fromJson: (value) => codec.fromJson(value, undefined),
    toJson: (value) => codec.toJson(value),
  })
}
