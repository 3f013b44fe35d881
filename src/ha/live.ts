/** For a pod without high availability: whether others run the same application with it. */
import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'
import type { BrokerPort } from '../broker/port.ts'
import { coordinatorTopic } from './contract.ts'
import type { RawRecord } from './events.ts'
import { LogReader } from './log-reader.ts'
import { decode } from './records.ts'

export interface LiveOptions {
  readonly broker: BrokerPort
  readonly applicationId: string
  readonly clock: Clock
  readonly timers: Timers
  /** How often the pods would be heard; the answer may take three times as long. */
  readonly heartbeatIntervalMs: number
}

/**
 * A pod that publishes its status at this moment; null where there is none. Costs one question to the broker where no
 * coordinator topic exists, and no waiting where all pods have said goodbye.
 */
export async function liveStatusSeen(options: LiveOptions): Promise<string | null> {
  const { broker, applicationId, clock, timers, heartbeatIntervalMs } = options
  const topic = coordinatorTopic(applicationId)
  if ((await broker.topics([topic])).length === 0) return null
  const reader = new LogReader(broker, topic)
  await reader.rewind()
  const end = await reader.end()
  const never = new AbortController().signal
  const present = new Set<string>()
  while (reader.position < end) {
    const { records, lost } = await reader.read(0, never)
    if (lost) return null
    for (const record of records) note(record, present)
  }
  if (present.size === 0) return null
  const deadline = clock.monotonic() + 3 * heartbeatIntervalMs
  const abort = new AbortController()
  const cancel = timers.after(3 * heartbeatIntervalMs, () => abort.abort())
  try {
    for (let left = deadline - clock.monotonic(); left > 0; left = deadline - clock.monotonic()) {
      const { records, lost } = await reader.read(Math.min(left, 500), abort.signal)
      if (lost) return null
      for (const record of records) {
        const heard = note(record, present)
        if (heard !== undefined) return heard
      }
      if (present.size === 0) return null
    }
    return null
  } finally {
    cancel()
  }
}

function note({ key, value }: RawRecord, present: Set<string>): string | undefined {
  const record = decode(key, value)
  if (record.kind === 'deleted' && key.startsWith('s/')) present.delete(key.slice(2))
  if (record.kind !== 'status') return undefined
  present.add(record.podId)
  return record.podId
}
