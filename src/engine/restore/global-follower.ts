/** Keeps global tables up to date: what is written to their topics after the start goes to every lane. */
import { sleep } from '../../base/timers.ts'
import { BrokerError } from '../../broker/port.ts'
import type { EngineOptions } from '../engine-options.ts'
import { endOfBatches } from '../../broker/wire/record-batch.ts'
import type { Run } from '../run.ts'

export interface GlobalTopic {
  readonly source: number
  readonly topic: string
  /** Where each partition goes on. */
  readonly positions: ReadonlyMap<number, number>
  readonly run: Run
  readonly closed: () => boolean
}

const maxBytes = 1024 * 1024

/** Runs until the flow is closed. */
export async function followGlobalTopic(options: EngineOptions, global: GlobalTopic): Promise<void> {
  const { broker, settings, timers, send } = options
  const { source, topic, run } = global
  const positions = new Map(global.positions)
  while (!global.closed() && positions.size > 0) {
    try {
      const fetched = await broker.fetch({
        partitions: [...positions].map(([partition, offset]) => ({ topic, partition, offset, maxBytes })),
        maxWaitMs: settings.fetchMaxWaitMs,
        maxBytes,
        isolation: 'read_committed',
      })
      if (global.closed() || run.isOver) return
      for (const part of fetched) {
        const fromOffset = positions.get(part.partition) ?? 0
        const next = endOfBatches(part.records, fromOffset)
        if (next === fromOffset) continue
        positions.set(part.partition, next)
        const { partition, records, aborted } = part
        for (let lane = 0; lane < settings.lanes; lane++) {
          send(lane, { type: 'global', run: run.number, source, topic, partition, records, fromOffset, aborted }, [])
        }
      }
    } catch (error) {
      if (!(error instanceof BrokerError) || !['unreachable', 'retriable'].includes(error.errorClass)) throw error
      await sleep(timers, 500)
    }
  }
}
