/** Runs the function of a scheduled source and encodes what it emits; the engine dispatches that like any record. */
import { EngineError, messageOf } from '../errors.ts'
import type { CompiledSource, ScheduledRecord, ScheduledTick } from '../topology/compiled.ts'
import { isPromise } from '../operators/contract.ts'
import type { EmittedRecord } from './protocol.ts'

/** @throws EngineError `PROCESSING_FAILED` or `PRODUCE_FAILED`, also through the promise. */
export function runSchedule(source: CompiledSource, tick: ScheduledTick): EmittedRecord[] | Promise<EmittedRecord[]> {
  let emitted: unknown
  try {
    emitted = source.schedule?.emit(tick)
  } catch (error) {
    throw failed(source, tick, error)
  }
  if (!isPromise(emitted)) return encoded(source, tick, emitted)
  return Promise.resolve(emitted).then(
    (records) => encoded(source, tick, records),
    (error: unknown) => {
      throw failed(source, tick, error)
    },
  )
}

function failed(source: CompiledSource, { scheduledAt, count }: ScheduledTick, error: unknown): EngineError {
  return new EngineError(
    'PROCESSING_FAILED',
    `the function of the scheduled source ${source.name} failed at firing ${count}, due at ` +
      `${new Date(scheduledAt).toISOString()}: ${messageOf(error)}`,
    { cause: error, node: source.name },
  )
}

function encoded(source: CompiledSource, tick: ScheduledTick, emitted: unknown): EmittedRecord[] {
  if (emitted === null || emitted === undefined) return []
  const records = (Array.isArray(emitted) ? emitted : [emitted]) as readonly ScheduledRecord[]
  try {
    return records.map(({ key, value, timestamp }) => ({
      key: key === null || key === undefined ? null : source.keySerde.serialize(key),
      value: value === null || value === undefined ? null : source.valueSerde.serialize(value),
      timestamp: timestamp ?? tick.scheduledAt,
    }))
  } catch (error) {
    throw new EngineError(
      'PRODUCE_FAILED',
      `a record that the scheduled source ${source.name} emitted at firing ${tick.count} cannot be encoded: ${messageOf(error)}`,
      { cause: error, node: source.name },
    )
  }
}
