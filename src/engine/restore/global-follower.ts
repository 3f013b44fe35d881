/** Keeps global tables up to date: what is written to their topics after the start goes to every lane. */
import { sleep } from '../../base/timers.ts'
import type { BrokerPort, FetchedPartition } from '../../broker/port.ts'
import type { EngineOptions } from '../engine-options.ts'
import { endOfBatches } from '../../broker/wire/record-batch.ts'
import { globalLost, globalRefused, isPassing, type Place } from '../input/fetch-errors.ts'
import type { Run } from '../run.ts'

export interface GlobalTopic {
  readonly source: number
  readonly topic: string
  /** The incarnation that it was loaded from. */
  readonly topicId: string
  /** Where each partition goes on. */
  readonly positions: ReadonlyMap<number, number>
  readonly run: Run
  readonly closed: () => boolean
}

const maxBytes = 1024 * 1024

/**
 * Runs until the flow is closed.
 *
 * @throws EngineError where the rows that follow cannot be had: `GLOBAL_TABLE_LOST` where loading the table anew gives them.
 */
export async function followGlobalTopic(options: EngineOptions, global: GlobalTopic): Promise<void> {
  const { broker, settings, timers } = options
  const { topic, topicId, run } = global
  const positions = new Map(global.positions)
  // It was loaded over some time; and while the broker does not answer for all of it, it may be made anew as well.
  let isInDoubt = true
  while (!global.closed() && positions.size > 0) {
    try {
      if (isInDoubt) await refuseAnother(broker, global)
      const fetched = await broker.fetch({
        partitions: [...positions].map(([partition, offset]) => ({ topic, topicId, partition, offset, maxBytes })),
        maxWaitMs: settings.fetchMaxWaitMs,
        maxBytes,
        isolation: 'read_committed',
      })
      if (global.closed() || run.isOver) return
      isInDoubt = fetched.length < positions.size
      for (const part of fetched) {
        const offset = positions.get(part.partition) ?? 0
        if (part.error === undefined) positions.set(part.partition, handOn(options, global, part, offset))
        else await refuse(broker, global, { topic, partition: part.partition, offset }, part.error)
      }
    } catch (error) {
      if (!isPassing(error)) throw error
      isInDoubt = true
      await sleep(timers, 500)
    }
  }
}

/** Gives every lane what was fetched; answers where to go on. */
function handOn(options: EngineOptions, global: GlobalTopic, part: FetchedPartition, fromOffset: number): number {
  const { settings, send } = options
  const { source, topic, run } = global
  const { partition, records, aborted } = part
  const next = endOfBatches(records, fromOffset)
  if (next === fromOffset) return fromOffset
  for (let lane = 0; lane < settings.lanes; lane++) {
    send(lane, { type: 'global', run: run.number, source, topic, partition, records, fromOffset, aborted }, [])
  }
  return next
}

async function refuse(broker: BrokerPort, global: GlobalTopic, at: Place, code: string): Promise<never> {
  await refuseAnother(broker, global)
  throw globalRefused(at, code)
}

/** Offsets of one incarnation of a topic say nothing of another. */
async function refuseAnother(broker: BrokerPort, { topic, topicId }: GlobalTopic): Promise<void> {
  const [info] = await broker.topics([topic])
  if (info !== undefined && info.topicId !== topicId) throw globalLost(topic, 'the topic was deleted and made anew')
}
