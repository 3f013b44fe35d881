/** A program on the running engine: real threads, an embedded broker, everything there before it starts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { canonical, type Json } from '../../conformance/expr.ts'
import { Random } from '../../src/base/random.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { type LogLine, type Runtime, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { consume, type In, produce, produceTogether } from '../engine/support/engine.ts'
import { headerName, type Input, inputOf, type Program } from './program.ts'
import { add, type Letter, type Results, topicsOf, undecodable } from './results.ts'

export interface Setting {
  readonly lanes: number
  readonly store: 'memory' | 'lmdb'
  readonly commitMs: number
  /** Whether sub-topologies hand over in the process, the default, or through topics. */
  readonly split?: 'in-process' | 'repartition-topics'
  /** So many processes of one group share the partitions, where they go through topics. Default: one. */
  readonly processes?: number
  /** Tables tell each changed row once per commit. */
  readonly folds?: boolean
  /** With `topology.optimization: all`: of two ways of one record to a join another one may be the first then. */
  readonly optimized?: boolean
  /** The input comes while the engine runs, one record or some at a time, in the order of their times. */
  readonly live?: boolean
  /** Further settings, which change no result. */
  readonly config?: Readonly<Record<string, string | number>>
}

export interface Run {
  readonly results: Results
  readonly letters: readonly Letter[]
  readonly problems: readonly string[]
}

const deadLetters = 'reference-dead-letters'

/** Records of a partition in batches of some hundreds, as producers send them. */
const batchRecords = 300

async function createTopics(broker: BrokerPort, program: Program): Promise<void> {
  const topics = program.topics.map(({ topic }) => ({ topic, partitions: program.partitions }))
  const sinks = topicsOf(program).map((topic) => ({ topic, partitions: program.partitions }))
  const letters = [{ topic: deadLetters, partitions: program.partitions }]
  await broker.createTopics([...topics, ...sinks, ...letters])
}

/** One by one or some at a time, in the order of their times. */
async function feed(broker: BrokerPort, program: Program): Promise<void> {
  const random = new Random(program.seed)
  const inputs = inputOf(program).sort((a, b) => a.timestamp - b.timestamp)
  for (let from = 0, count = 0; from < inputs.length; from += count) {
    count = random.chance(0.5) ? 1 : 1 + random.int(32)
    await produceTogether(broker, inputs.slice(from, from + count).map(written), program.partitions)
  }
}

const written = ({ writtenAt, timestamp, ...input }: Input): In & Pick<Input, 'topic'> => ({
  ...input,
  value: input.isUndecodable ? Buffer.from(String(input.value)) : input.value,
  timestamp: writtenAt ?? timestamp,
})

export async function fill(broker: BrokerPort, program: Program): Promise<void> {
  await createTopics(broker, program)
  const byTopic = new Map<string, Input[]>()
  for (const input of inputOf(program)) {
    const list = byTopic.get(input.topic) ?? []
    byTopic.set(input.topic, list)
    list.push(input)
  }
  for (const [topic, inputs] of byTopic) {
    const size = batchRecords * program.partitions
    for (let from = 0; from < inputs.length; from += size)
      await produce(broker, topic, inputs.slice(from, from + size).map(written), program.partitions)
  }
}

export async function readResults(broker: BrokerPort, program: Program): Promise<Results> {
  const results: Results = new Map()
  for (const topic of topicsOf(program)) {
    for (const { key, value, timestamp, headers } of await consume(broker, topic))
      add(results, topic, key, value as Json, timestamp, headers[headerName])
  }
  return results
}

/** With `errors.processing: dead-letter`: all of them, each with its reason. */
export async function readLetters(broker: BrokerPort): Promise<Letter[]> {
  return (await consume(broker, deadLetters)).map(({ key, value, timestamp, headers }) => {
    const of = (name: string): string => headers[`__streams.errors.${name}`] ?? ''
    const message = of('exception') === 'FunctionFailed' ? of('message') : undecodable
    const why = `${of('topic')}/${of('partition')}@${of('offset')}: ${message}`
    return { why, came: `${timestamp} ${key} ${canonical(value as Json)}` }
  })
}

export function applicationOf(folder: string, program: Program): URL {
  const file = join(folder, 'program.json')
  writeFileSync(file, JSON.stringify(program))
  const application = pathToFileURL(join(import.meta.dirname, 'apps', 'program.ts'))
  application.search = new URLSearchParams({ program: file }).toString()
  return application
}

export function configOf(folder: string, setting: Setting): Record<string, unknown> {
  const { lanes, store, commitMs, split, folds, optimized, config } = setting
  return {
    ...config,
    ...(split && { 'topology.sub-topology-split': split }),
    ...(optimized === true && { 'topology.optimization': 'all' }),
    'runtime.http.enabled': false,
    'engine.lanes.count': lanes,
    'engine.state.store': store,
    'engine.state.dir': join(folder, 'state'),
    'commit-barrier.interval-ms': commitMs,
    ...(folds === true && { 'topology.emit': 'per-commit' }),
  }
}

export function policiesOf({ policy }: Program): Record<string, unknown> {
  return policy === undefined ? {} : { 'errors.processing': policy, 'errors.decoding': policy }
}

const committedOf = (runtime: Runtime): number =>
  (runtime.view.offsets()?.sources ?? [])
    .flatMap(({ partitions }) => partitions)
    .reduce((sum, { committedOffset }) => sum + committedOffset, 0)

/** Rejects when the engine ends by itself, or commits nothing for so long: on a busy machine all takes its time. */
export async function untilIdle(runtime: Runtime, withinMs: number): Promise<void> {
  let watch: NodeJS.Timeout | undefined
  const stuck = new Promise<never>((_resolve, reject) => {
    let committed = -1
    let since = performance.now()
    watch = setInterval(() => {
      const now = committedOf(runtime)
      if (now !== committed) since = performance.now()
      committed = now
      if (performance.now() - since > withinMs)
        reject(new Error(`the engine does not come to its end, and has committed nothing for ${withinMs} ms`))
    }, 500)
  })
  const over = runtime.ended.then((code) => {
    throw new Error(`the engine has ended by itself with code ${code}`)
  })
  try {
    await Promise.race([runtime.untilIdle(), stuck, over])
  } finally {
    clearInterval(watch)
    over.catch(() => undefined)
  }
}

/**
 * By default so long that only a busy machine comes near it; what stands still does not end at all. `look`: at a runtime that has come
 * to its end.
 */
export async function runEngine(
  program: Program,
  setting: Setting,
  withinMs = 120_000,
  look?: (runtime: Runtime) => Promise<void>,
): Promise<Run> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-reference-'))
  const problems: string[] = []
  const log = ({ level, message }: LogLine): void => {
    // Left rows without a foreign key, records that are late, and those on which a function fails are part of the programs.
    const isPart =
      message.includes('are dropped (') || (program.policy !== undefined && message.includes(' go no further ('))
    if ((level === 'warn' || level === 'error') && !isPart) problems.push(message)
  }
  const broker = await startEmbeddedBroker({ partitions: program.partitions })
  const client = broker.client()
  try {
    if (setting.live) await createTopics(client, program)
    else await fill(client, program)
    const application = applicationOf(folder, program)
    const runtimes = await Promise.all(
      Array.from({ length: setting.processes ?? 1 }, (_, n) => {
        const own = { 'engine.instance-id': `process-${n}`, 'engine.state.dir': join(folder, `state-${n}`) }
        const config = { ...configOf(folder, setting), ...policiesOf(program), ...own }
        return startRuntime({ application, broker, config, log })
      }),
    )
    try {
      if (setting.live) await feed(client, program)
      await Promise.all(runtimes.map((runtime) => untilIdle(runtime, withinMs)))
      for (const runtime of runtimes) await look?.(runtime)
      for (const runtime of runtimes) await runtime.stop()
    } catch (error) {
      problems.push((error as Error).message)
      for (const runtime of runtimes) await runtime.kill()
    }
    const letters = program.policy === 'dead-letter' ? await readLetters(client) : []
    return { results: await readResults(client, program), letters, problems }
  } finally {
    await broker.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
