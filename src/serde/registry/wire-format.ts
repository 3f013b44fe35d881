/** Confluent's wire format: a zero byte, the schema's id in four bytes, and what the format itself writes. */
import { SerdeError } from '../serde.ts'

export const frameBytes = 5

/** The id in front of a record's bytes. */
export function schemaIdOf(bytes: Uint8Array, start: number, end: number, serde: string): number {
  if (end - start < frameBytes || bytes[start] !== 0) {
    const found = end === start ? 'no bytes' : `${end - start} bytes that begin with ${bytes[start]}`
    throw new SerdeError(
      `The serde '${serde}' reads records with a zero byte and the id of their schema in front, and found ${found}; the data was written without a schema registry.`,
    )
  }
  return (
    (((bytes[start + 1] as number) << 24) |
      ((bytes[start + 2] as number) << 16) |
      ((bytes[start + 3] as number) << 8) |
      (bytes[start + 4] as number)) >>>
    0
  )
}

export function writeFrame(bytes: Uint8Array, at: number, id: number): void {
  bytes[at] = 0
  bytes[at + 1] = id >>> 24
  bytes[at + 2] = id >>> 16
  bytes[at + 3] = id >>> 8
  bytes[at + 4] = id
}
