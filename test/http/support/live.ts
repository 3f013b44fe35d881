/** A real engine on the embedded broker, with its HTTP interface on a free port. */
import { setTimeout as sleep } from 'node:timers/promises'
import { keySlot } from '../../../src/base/hash.ts'
import type { LogLine, Runtime } from '../../../src/runtime/contract.ts'
import { startRuntime } from '../../../src/runtime/index.ts'
import { RecordBatchBuilder } from '../../../src/broker/wire/record-batch.ts'
import { type Answer, type Ask, ask, type Json } from './client.ts'

export interface LiveOptions {
  /** Module below `test/http/apps/`. */
  readonly app: string
  readonly config?: Readonly<Record<string, unknown>>
}

export interface LiveRecord {
  readonly key: string | null
  readonly value: unknown
  readonly timestamp: number
  readonly partition?: number
}

export interface Live {
  readonly runtime: Runtime
  readonly url: string
  readonly log: readonly LogLine[]
  ask(question: Ask): Promise<Answer>
  get(path: string): Promise<Json>
  state(): Promise<string>
  feed(topic: string, records: readonly LiveRecord[]): Promise<void>
  /** Asks until the answer is what is wanted; fails with the last answer when it never is. */
  until<T>(what: string, look: () => Promise<T | false | undefined>, withinMs?: number): Promise<T>
  untilState(...states: string[]): Promise<string>
  stop(): Promise<void>
}

const partitions = 2

export const liveConfig: Readonly<Record<string, unknown>> = {
  'runtime.http.host': '127.0.0.1',
  'runtime.http.port': 0,
  'runtime.shutdown.timeout': 500,
  'engine.lanes.count': 2,
  'broker.embedded.partitions': partitions,
}

export async function startLive({ app, config }: LiveOptions): Promise<Live> {
  const log: LogLine[] = []
  const runtime = await startRuntime({
    application: new URL(`../apps/${app}.ts`, import.meta.url),
    environment: {},
    config: { ...liveConfig, ...config },
    log: (line) => log.push(line),
  })
  const url = String(runtime.url)
  const get = async (path: string): Promise<Json> => (await ask(url, { path })).json
  const state = async (): Promise<string> => runtime.view.state().current
  const until: Live['until'] = async (what, look, withinMs = 60_000) => {
    const deadline = performance.now() + withinMs
    for (;;) {
      const found = await look()
      if (found !== false && found !== undefined) return found
      if (performance.now() > deadline) {
        const lines = log.slice(-5).map((line) => line.message)
        throw new Error(`waited in vain until ${what}; state ${await state()}; log: ${lines.join(' | ')}`)
      }
      await sleep(10)
    }
  }
  return {
    runtime,
    url,
    log,
    get,
    state,
    until,
    ask: (question) => ask(url, question),
    feed: (topic, records) => feed(runtime, topic, records),
    untilState: (...states) =>
      until(`the state is ${states.join(' or ')}`, async () => {
        const current = await state()
        return states.includes(current) && current
      }),
    stop: async () => {
      await runtime.stop()
    },
  }
}

async function feed({ broker }: Runtime, topic: string, records: readonly LiveRecord[]): Promise<void> {
  await broker.createTopics([{ topic, partitions }])
  const builders = new Map<number, RecordBatchBuilder>()
  for (const { key, value, timestamp, partition } of records) {
    const keyBytes = key === null ? null : Buffer.from(key)
    const to = partition ?? (keyBytes === null ? 0 : keySlot(keyBytes) % partitions)
    const builder = builders.get(to) ?? new RecordBatchBuilder()
    builders.set(to, builder)
    builder.append(timestamp, keyBytes, Buffer.from(JSON.stringify(value)), [])
  }
  const batches = [...builders].map(([partition, builder]) => ({ topic, partition, records: builder.finish() }))
  await broker.produce({ transactionalId: null, batches })
}

/**
 * Threads that are stuck for good, as some tests want them, keep a process alive. Once everything is stopped and told,
 * it is ended all the same; the exit code is then what the test runner has set.
 */
export function endLeftThreads(): void {
  setTimeout(() => process.exit(), 2000).unref()
}
