/**
 * Topics of the application's own: makes them, and refuses those, made by hand or by somebody's defaults, that would not give
 * back what was written to them.
 */
import { BrokerError, type BrokerPort, type TopicSpec } from '../../broker/port.ts'
import { EngineError } from '../../base/errors.ts'
import type { StorePlan } from '../../topology/plan.ts'

type Settings = Readonly<Record<string, string>>

/** What Kafka calls any time at all. */
const unlimited = '9223372036854775807'
const anyTime = { 'message.timestamp.after.max.ms': unlimited, 'message.timestamp.before.max.ms': unlimited }
/** Whatever the broker's default is: with the broker's own time in its place all event time behind the topic would be lost. */
export const timeOfData = { 'message.timestamp.type': 'CreateTime' }

/**
 * Topics of the application's own. Event times are the data's: Kafka 4 refuses those that are more than an hour ahead of its clock,
 * or as old as its operators say, unless a topic says otherwise. Brokers before 3.6 know no such settings, and others may not let
 * them be made: they are asked without.
 */
export async function createOwn(broker: BrokerPort, specs: readonly TopicSpec[]): Promise<void> {
  const timeless = specs.map((spec) => ({ ...spec, config: { ...spec.config, ...anyTime } }))
  try {
    await broker.createTopics(timeless)
  } catch (error) {
    if (!(error instanceof BrokerError) || !['INVALID_CONFIG', 'POLICY_VIOLATION'].includes(error.code)) throw error
    await broker.createTopics(specs)
  }
}

/** Undefined for whoever may not look at the settings of topics: that does not keep it from reading them. */
async function settingsOf(broker: BrokerPort, topic: string): Promise<Settings | undefined> {
  try {
    return await broker.topicConfig(topic)
  } catch (error) {
    if (error instanceof BrokerError && error.errorClass === 'config') return undefined
    throw error
  }
}

/** Event times behind it would be the broker's. */
export async function refuseBrokerTime(broker: BrokerPort, topic: string): Promise<void> {
  refuseOtherTime(topic, await settingsOf(broker, topic), 'behind it all event time')
}

/** A changelog has to keep the newest row of each key, with its time, for as long as the store keeps it. */
export async function refuseForgetful(broker: BrokerPort, topic: string, store: StorePlan): Promise<void> {
  const settings = await settingsOf(broker, topic)
  if (settings === undefined) return
  refuseOtherTime(topic, settings, 'of a store that is rebuilt from it the times of rows')
  if (!(settings['cleanup.policy'] ?? 'compact').split(',').includes('delete')) return
  const [kept, bytes] = [settings['retention.ms'], settings['retention.bytes']].map((limit) => Number(limit ?? -1))
  // Rows that the store forgets need not be kept for longer. Of a versioned one the newest of each key stays.
  const { kind, ttlMs, retentionMs } = store
  const least = ttlMs ?? (kind === 'versioned' ? undefined : retentionMs) ?? Number.POSITIVE_INFINITY
  const isShort = (kept as number) >= 0 && (kept as number) < least
  if (!isShort && !((bytes as number) >= 0)) return
  const limit = isShort ? `retention.ms is ${kept}` : `retention.bytes is ${bytes}`
  throw new EngineError(
    'CONFIG_INVALID',
    `the changelog topic ${topic} deletes rows that the store '${store.name}' still holds (cleanup.policy is ` +
      `${settings['cleanup.policy']}, and ${limit}): rebuilt from it, the store would lack them without a word. Nothing was read; set ` +
      'cleanup.policy of the topic to compact (`kafka-configs --alter`), and begin anew where rows are gone already',
    { topic },
  )
}

function refuseOtherTime(topic: string, settings: Settings | undefined, what: string): void {
  if (settings?.['message.timestamp.type'] !== 'LogAppendTime') return
  throw new EngineError(
    'CONFIG_INVALID',
    `the topic ${topic} gives its records the broker's time (message.timestamp.type is LogAppendTime), and ${what} would be lost. ` +
      'Nothing was read; set message.timestamp.type of the topic to CreateTime (`kafka-configs --alter`), and begin anew where records went ' +
      'through it before',
    { topic },
  )
}
