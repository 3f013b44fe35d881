/** Bytes that are not the record batches they should be. `code` is Kafka's name of the fault. */
export class CorruptBatchError extends Error {
  override readonly name = 'CorruptBatchError'
  readonly code: 'CORRUPT_MESSAGE' | 'UNSUPPORTED_FOR_MESSAGE_FORMAT' | 'UNSUPPORTED_COMPRESSION_TYPE'

  constructor(message: string, code: CorruptBatchError['code'] = 'CORRUPT_MESSAGE', cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

export function damaged(offset: number): CorruptBatchError {
  return new CorruptBatchError(`The record batch at offset ${offset} is damaged: its bytes do not fit its own figures.`)
}
