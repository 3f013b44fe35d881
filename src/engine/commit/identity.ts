/** Under which name an engine writes. */
import type { EngineOptions } from '../engine-options.ts'
import { Producer } from './producer.ts'
import type { EngineSettings } from '../settings.ts'

/** Whoever takes this identity fences who had it: one of the process alone, or one that all pods take turns in. */
export function transactionalIdOf({ applicationId, instanceId, guarantee, ha }: EngineSettings): string | null {
  return guarantee === 'exactly-once' ? `${applicationId}-${ha ? 'active' : instanceId}` : null
}

export function producerOf({ settings, broker, clock }: EngineOptions): Producer {
  return new Producer(broker, transactionalIdOf(settings), settings.transactionTimeoutMs, undefined, clock)
}
