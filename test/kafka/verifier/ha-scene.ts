/** A group of hot standbys under load: started, fed, judged, and measured. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Random } from '../../../src/base/random.ts'
import type { BrokerPort } from '../../../src/broker/port.ts'
import type { HaStatus } from '../../../src/http/ha-seam.ts'
import { transactionsSettled } from '../../support/broker-io.ts'
import { commitChain, longestGapMs, type OutputLog, outputLog } from './ha-log.ts'
import { Pods } from './ha-pods.ts'
import type { VerifierTool } from './harness.ts'

export const partitions = 4

export interface SceneOptions {
  readonly prefix: string
  readonly tool: VerifierTool
  /** Goes to the broker directly, past every proxy. */
  readonly port: BrokerPort
  readonly bootstrapOf: (podId: string) => string
  readonly settings: Readonly<Record<string, string>>
  readonly rate: number
  readonly random: Random
  readonly note: (line: string) => void
}

/** Something that was done to the group: when, and when its end was seen. */
interface Happening {
  readonly kind: string
  readonly fromMs: number
  readonly toMs: number
}

export class Scene {
  readonly pods: Pods
  readonly port: BrokerPort
  readonly prefix: string
  readonly random: Random
  readonly #happenings: Happening[] = []

  constructor(options: SceneOptions) {
    this.prefix = options.prefix
    this.port = options.port
    this.random = options.random
    this.pods = new Pods({ ...options, ids: ['pod-a', 'pod-b', 'pod-c'] })
  }

  /** Runs `act` and keeps when it began and ended, for the figures. */
  async timed<T>(kind: string, act: () => Promise<T>): Promise<T> {
    const fromMs = Date.now()
    const result = await act()
    this.#happenings.push({ kind, fromMs, toMs: Date.now() })
    return result
  }

  /** Whether every partition of the output has results beyond these ends. */
  async grewFrom(ends: readonly number[]): Promise<boolean> {
    return (await endsOf(this)).every((end, i) => end > (ends[i] ?? 0))
  }

  /** Waits until results come and enough pods are ready: what happens next is counted from a group at work. */
  async atWork(standbys?: number): Promise<HaStatus> {
    const ends = await endsOf(this)
    await this.pods.until('new results', () => this.grewFrom(ends))
    return await this.pods.untilReady(standbys)
  }

  get kinds(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { kind } of this.#happenings) counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return counts
  }

  /** Per happening of a kind: how long the slowest partition gave nothing new around it. */
  gapsMs(kind: string, logs: readonly OutputLog[]): number[] {
    const those = this.#happenings.filter((happening) => happening.kind === kind)
    return those.map(({ fromMs, toMs }) => longestGapMs(logs, fromMs, toMs))
  }

  durationsMs(kind: string): number[] {
    return this.#happenings.filter((happening) => happening.kind === kind).map(({ fromMs, toMs }) => toMs - fromMs)
  }
}

export interface Figures {
  /** Gaps by kind of happening. */
  readonly gapsMs: ReadonlyMap<string, readonly number[]>
}

/** From a group that is ready to the verdict on everything that it wrote while `faults` did its work. */
export async function withPods(options: SceneOptions, faults: (scene: Scene) => Promise<void>): Promise<Figures> {
  const { prefix, tool, rate, random, note } = options
  await tool.create(prefix, partitions)
  const scene = new Scene(options)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-ha-'))
  const through = join(folder, 'faults-are-through')
  let fed: Promise<number> | undefined
  try {
    await scene.pods.start()
    // As long as the faults last, however slow the machine is; the number is a bound that no run reaches.
    const load = { records: 5_000_000, keys: 500, rate, seed: random.int(1_000_000), until: through }
    fed = tool.produce(prefix, load)
    // Told where it is awaited; a fault that fails first must not leave it unhandled.
    fed.catch(() => undefined)
    await scene.pods.until('first results', async () => (await endsOf(options)).every((end) => end > 0))
    await faults(scene)
    scene.pods.assertNoCrash()
    writeFileSync(through, '')
    const written = await fed
    return await judge(scene, options, written)
  } finally {
    writeFileSync(through, '')
    await fed?.catch(() => note('the input ended with an error'))
    scene.pods.dispose()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Ends of the output's partitions, every transaction that was ended being visible. */
export async function endsOf({ port, prefix }: Pick<SceneOptions, 'port' | 'prefix'>): Promise<number[]> {
  return await Promise.all(Array.from({ length: partitions }, (_, i) => transactionsSettled(port, `${prefix}-echo`, i)))
}

async function judge(scene: Scene, { prefix, tool, port, note }: SceneOptions, written: number): Promise<Figures> {
  const verdict = await tool.verify(prefix, 180_000)
  assert.ok(verdict.ok, `${JSON.stringify(verdict, null, 1)}\n${await scene.pods.describe()}`)
  assert.equal(verdict.inputs, written)
  scene.pods.assertNoCrash()
  const codes = await Promise.all(scene.pods.all.map((pod) => pod.engine.stop()))
  assert.deepEqual(codes, [0, 0, 0], 'every pod ends in good order when all are told to at once')
  const chain = await commitChain(port, prefix)
  assert.deepEqual(chain.errors, [], 'the commits of the group form one chain')
  const logs = await Promise.all(Array.from({ length: partitions }, (_, i) => outputLog(port, `${prefix}-echo`, i)))
  const interleaved = logs.flatMap((log) => log.errors)
  assert.deepEqual(interleaved, [], 'no result of an older producer lies behind one of a newer')
  note(`${written} inputs, ${chain.commits} commits, ${chain.tokenEpochs.length} actives one after the other`)
  const gapsMs = new Map([...scene.kinds.keys()].map((kind) => [kind, scene.gapsMs(kind, logs)]))
  for (const [kind, gaps] of gapsMs) {
    note(`${kind}: gap of results ${spread(gaps)}; until seen ${spread(scene.durationsMs(kind))}`)
  }
  return { gapsMs }
}

/** The value that `share` of all do not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] ?? 0
}

function spread(values: readonly number[]): string {
  const [p50, p99, max] = [percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1)]
  return `p50 ${p50} ms, p99 ${p99} ms, max ${max} ms (${values.length})`
}
