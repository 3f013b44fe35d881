/** A running application for tests: real threads, a real broker in the process, records in and committed records out. */
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { keySlot } from '../../../src/base/hash.ts'
import { dropReasons, dropSlot, storeSlot, storeSlots } from '../../../src/base/counters.ts'
import type { BrokerPort, ProduceRequest } from '../../../src/broker/port.ts'
import { ProducerStamps } from '../../../src/broker/producer-stamps.ts'
import type { Headers } from '../../../src/broker/wire/headers.ts'
import type { LifecycleState } from '../../../src/view/view.ts'
import { type EmbeddedBroker, type LogLine, type Runtime, startRuntime } from '../../../src/runtime/index.ts'
import { decodeHeaders, RecordBatchBuilder, RecordCursor } from '../../../src/broker/wire/record-batch.ts'
import { eventually } from '../../support/millrace.ts'

export interface In {
  readonly key: string | null
  readonly value: unknown
  readonly timestamp?: number
  readonly partition?: number
  readonly headers?: Headers
}

export interface Out {
  readonly partition: number
  readonly offset: number
  readonly timestamp: number
  /** Key bytes as text; a windowed key's inner part, see `start`. */
  readonly key: string | null
  readonly value: unknown
  readonly headers: Readonly<Record<string, string>>
}

export const firstTime = 1_700_000_000_000

export function appFile(name: string): string {
  return join(import.meta.dirname, '..', 'apps', `${name}.ts`)
}

export class TestEngine {
  readonly runtime: Runtime
  readonly log: LogLine[]
  readonly #partitions: number
  #closed = false

  private constructor(runtime: Runtime, log: LogLine[], partitions: number) {
    this.runtime = runtime
    this.log = log
    this.#partitions = partitions
  }

  static async start(
    t: TestContext,
    application: string,
    config: Readonly<Record<string, unknown>> = {},
    broker?: EmbeddedBroker,
  ): Promise<TestEngine> {
    const engine = await TestEngine.open(application, config, broker)
    t.after(() => engine.stop())
    return engine
  }

  /** Of several tests, which stop it by themselves. */
  static async open(
    application: string,
    config: Readonly<Record<string, unknown>> = {},
    broker?: EmbeddedBroker,
  ): Promise<TestEngine> {
    const log: LogLine[] = []
    const runtime = await startRuntime({
      application: appFile(application),
      config: { 'runtime.http.enabled': false, 'engine.lanes.count': 2, 'commit-barrier.interval-ms': 20, ...config },
      log: (line) => log.push(line),
      ...(broker && { broker }),
    })
    return new TestEngine(runtime, log, Number(config['broker.embedded.partitions'] ?? 4))
  }

  get broker(): BrokerPort {
    return this.runtime.broker
  }

  get state(): LifecycleState {
    return this.runtime.view.state().current
  }

  async reaches(state: LifecycleState): Promise<void> {
    await eventually(`the engine is ${state} (it is ${this.state})`, () => this.state === state)
  }

  async put(topic: string, records: readonly In[]): Promise<void> {
    await produce(this.broker, topic, records, this.#partitions)
  }

  /** Everything committed so far, by partition and offset. */
  read(topic: string): Promise<Out[]> {
    return consume(this.broker, topic)
  }

  /** As `read`, with the values' bytes as they are. */
  readBytes(topic: string): Promise<Array<{ readonly key: string | null; readonly value: Uint8Array }>> {
    return consumeAs(this.broker, topic, (cursor, partition) => {
      const { bytes, valueStart, valueEnd } = cursor
      return { key: outOf(cursor, partition).key, value: bytes.slice(valueStart, valueEnd) }
    })
  }

  async idle(): Promise<void> {
    let idle = false
    const done = this.runtime.untilIdle().finally(() => {
      idle = true
    })
    await Promise.race([done, eventually('the engine has nothing left to do', () => idle, 180_000)])
  }

  /** Records dropped for this reason, over all lanes. */
  dropped(reason: (typeof dropReasons)[number]): number {
    const counters = this.runtime.view.counters()
    if (!counters) return 0
    const { layout, lanes } = counters
    let sum = 0
    for (const lane of lanes) {
      for (let sub = 0; sub < layout.subtopologies; sub++) {
        sum += lane[dropSlot(layout, sub, dropReasons.indexOf(reason))] ?? 0
      }
    }
    return sum
  }

  /** Changelog records that were replayed into stores. */
  restored(): number {
    const counters = this.runtime.view.counters()
    if (!counters) return 0
    const { layout, lanes } = counters
    const slot = storeSlots.indexOf('restored')
    return lanes
      .flatMap((lane) => layout.stores.map((_, i) => lane[storeSlot(layout, i, slot)] ?? 0))
      .reduce((sum, n) => sum + n, 0)
  }

  async stop(): Promise<number> {
    if (this.#closed) return 0
    this.#closed = true
    return await this.runtime.stop()
  }
}

export async function produce(broker: BrokerPort, topic: string, records: readonly In[], count = 4): Promise<void> {
  let info = (await broker.topics([topic]))[0]
  if (!info) {
    await broker.createTopics([{ topic, partitions: count }])
    info = (await broker.topics([topic]))[0]
  }
  await send(broker, batchesOf(topic, records, info?.partitions ?? 1))
}

type Batches = ProduceRequest['batches']

/** Records of topics that are there with so many partitions, in one request. */
export async function produceTogether(
  broker: BrokerPort,
  records: readonly (In & { readonly topic: string })[],
  partitions: number,
): Promise<void> {
  const byTopic = Map.groupBy(records, ({ topic }) => topic)
  await send(
    broker,
    [...byTopic].flatMap(([topic, some]) => batchesOf(topic, some, partitions)),
  )
}

function batchesOf(topic: string, records: readonly In[], partitions: number): Batches[number][] {
  const builders = new Map<number, RecordBatchBuilder>()
  for (const { key, value, timestamp, partition, headers = [] } of records) {
    const keyBytes = key === null ? null : Buffer.from(key)
    const to = partition ?? (keyBytes === null ? 0 : keySlot(keyBytes) % partitions)
    const builder = builders.get(to) ?? new RecordBatchBuilder()
    builders.set(to, builder)
    const bytes = value === null ? null : value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value))
    builder.append(timestamp ?? firstTime, keyBytes, bytes, headers)
  }
  return [...builders].map(([to, builder]) => ({ topic, partition: to, records: builder.finish() }))
}

async function send(broker: BrokerPort, batches: Batches): Promise<void> {
  if (batches.length === 0) return
  // What is sent to Kafka again, for want of an answer, is no second record.
  if (broker.kind !== 'embedded') await new ProducerStamps(broker).stamp(batches)
  await broker.produce({ transactionalId: null, batches })
}

export function consume(broker: BrokerPort, topic: string): Promise<Out[]> {
  return consumeAs(broker, topic, outOf)
}

export async function consumeAs<T>(
  broker: BrokerPort,
  topic: string,
  take: (cursor: RecordCursor, partition: number) => T,
): Promise<T[]> {
  const [info] = await broker.topics([topic])
  const out: T[] = []
  const cursor = new RecordCursor()
  for (let partition = 0; partition < (info?.partitions ?? 0); partition++) {
    const [end] = await broker.listOffsets([{ topic, partition }], 'stable')
    let offset = 0
    while (offset < (end?.offset ?? 0)) {
      const [fetched] = await broker.fetch({
        partitions: [{ topic, partition, offset, maxBytes: 1 << 22 }],
        maxWaitMs: 100,
        maxBytes: 1 << 24,
        isolation: 'read_committed',
      })
      if (!fetched || fetched.records.length === 0) continue
      cursor.reset(fetched.records, offset, fetched.aborted, 'read_committed')
      while (cursor.next()) out.push(take(cursor, partition))
      offset = Math.max(offset, cursor.position)
    }
  }
  return out
}

function outOf(cursor: RecordCursor, partition: number): Out {
  const { bytes, offset, timestamp, keyStart, keyEnd, valueStart, valueEnd, headersStart, headersEnd } = cursor
  const text = (from: number, to: number): string => Buffer.from(bytes.subarray(from, to)).toString()
  const headers: Record<string, string> = {}
  if (headersEnd > headersStart) {
    for (const [name, value] of decodeHeaders(bytes, headersStart, headersEnd)) {
      headers[name] = value === null ? '' : typeof value === 'string' ? value : Buffer.from(value).toString()
    }
  }
  return {
    partition,
    offset,
    timestamp,
    key: keyStart < 0 ? null : text(keyStart, keyEnd),
    value: valueStart < 0 ? null : parsed(text(valueStart, valueEnd)),
    headers,
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not every value is JSON: what a decoder refused lies in a dead letter as it came.
    return text
  }
}

/** Values by key, in order. */
export function byKey<T = unknown>(records: readonly Out[]): Record<string, T[]> {
  const result: Record<string, T[]> = {}
  for (const { key, value } of records) {
    const list = result[key ?? ''] ?? []
    result[key ?? ''] = list
    list.push(value as T)
  }
  return result
}

/** The last value by key. */
export function lastByKey<T = unknown>(records: readonly Out[]): Record<string, T> {
  return Object.fromEntries(Object.entries(byKey<T>(records)).map(([key, values]) => [key, values.at(-1) as T]))
}
