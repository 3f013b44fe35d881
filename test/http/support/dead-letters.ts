/** The endpoints of dead letters over a broker, beside an engine that is none. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { BrokerPort } from '../../../src/broker/port.ts'
import { dataAccess } from '../../../src/runtime/data/data.ts'
import type { CompiledTopology } from '../../../src/topology/compiled.ts'
import { startFake } from './fake-subject.ts'

export type Served = Awaited<ReturnType<typeof startFake>>

export interface ServedOptions {
  readonly topic: string
  /** How long the broker is waited for. */
  readonly patienceMs?: number
  /** What the application reads. */
  readonly topics?: readonly string[]
}

export async function served(
  t: TestContext,
  broker: BrokerPort,
  { topic, patienceMs = 60_000, topics = [] }: ServedOptions,
): Promise<Served> {
  const sources = topics.map((each) => ({ kind: 'topics', topics: [each] }))
  const data = dataAccess({
    deadLetterTopic: topic,
    topology: () => ({ sources }) as unknown as CompiledTopology,
    broker: () => broker,
    patienceMs,
    store: () => assert.fail('no store is asked'),
    places: undefined,
    mask: (text) => text,
  })
  const instance = await startFake({ config: { deadLettersEndpointEnabled: true } }, undefined, { data })
  t.after(() => instance.stop())
  return instance
}
