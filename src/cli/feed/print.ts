/** Writes the committed records of topics as JSON lines. */
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import type { BrokerPort } from '../../broker/port.ts'
import { SerdeWaits } from '../../serde/serde.ts'
import { jsonReplacer, textOrBase64 } from '../../serde/shown.ts'
import { whenKnown } from '../../serde/when-known.ts'
import type { CompiledTopology } from '../../topology/compiled.ts'
import type { Headers } from '../../broker/wire/headers.ts'
import { decodeHeaders, type RecordCursor } from '../../broker/wire/record-batch.ts'
import { CommittedReader } from './committed-reader.ts'
import { PrintDecoder } from './topic-codec.ts'

export interface PrinterOptions {
  readonly broker: BrokerPort
  readonly topics: readonly string[]
  readonly topology: () => CompiledTopology | null
  readonly out: Writable
  /** Resolves when the serdes of the topology may be used, or are never to be. */
  readonly ready?: Promise<void>
}

/** A reader that prints. Records of one partition come in the order of their offsets. */
export function printerOf(options: PrinterOptions): CommittedReader {
  const decoders = new Map<string, PrintDecoder>()
  const decoderOf = (topic: string): PrintDecoder => {
    const topology = options.topology()
    let decoder = decoders.get(topic)
    if (!decoder) {
      decoder = new PrintDecoder(topology, topic)
      // Before the application is loaded nobody knows the serdes: the next record asks again.
      if (topology) decoders.set(topic, decoder)
    }
    return decoder
  }
  return new CommittedReader({
    broker: options.broker,
    topics: options.topics,
    async onRecords(topic, partition, cursor) {
      const decoder = decoderOf(topic)
      await options.ready
      let text = ''
      while (cursor.next()) {
        try {
          text += `${renderRecord(topic, partition, cursor, decoder)}\n`
        } catch (error) {
          if (!(error instanceof SerdeWaits)) throw error
          text += `${await whenKnown(() => renderRecord(topic, partition, cursor, decoder))}\n`
        }
      }
      if (text !== '') await write(options.out, text)
    },
  })
}

/** Waits while the reader of the output is behind. What cannot be written is dropped: the end of the command tells of it. */
async function write(out: Writable, text: string): Promise<void> {
  if (out.errored || out.destroyed || out.write(text)) return
  // It rejects where it could not be written.
  await once(out, 'drain').catch(() => undefined)
}

export function keyBytesOf(cursor: RecordCursor): Uint8Array | null {
  return cursor.keyStart < 0 ? null : cursor.bytes.subarray(cursor.keyStart, cursor.keyEnd)
}

export function valueBytesOf(cursor: RecordCursor): Uint8Array | null {
  return cursor.valueStart < 0 ? null : cursor.bytes.subarray(cursor.valueStart, cursor.valueEnd)
}

function renderRecord(topic: string, partition: number, cursor: RecordCursor, decoder: PrintDecoder): string {
  const record = {
    topic,
    partition,
    offset: cursor.offset,
    key: decoder.key(keyBytesOf(cursor)) ?? null,
    value: decoder.value(valueBytesOf(cursor)) ?? null,
    timestamp: cursor.timestamp,
    ...(cursor.headerCount > 0 && {
      headers: shownHeaders(decodeHeaders(cursor.bytes, cursor.headersStart, cursor.headersEnd)),
    }),
  }
  return JSON.stringify(record, jsonReplacer)
}

function shownHeaders(headers: Headers): Array<readonly [string, string | null]> {
  return headers.map(([name, value]) => [name, value instanceof Uint8Array ? textOrBase64(value) : value])
}
