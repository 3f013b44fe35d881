/**
 * Random programs in hot standby, over topics that are full at the start: the active pod is killed, ended or told to give
 * its role away at random moments, others come with other settings, and what is committed in the end is what the model says.
 * STANDBY_ROUNDS: how many programs; STANDBY_SEED: the first one; STANDBY_RECORDS: how long the input is.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import type { ConfigInput } from '../../src/index.ts'
import { type EmbeddedBroker, type Runtime, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { generate } from './generate.ts'
import type { Program } from './program.ts'
import { differences, expectedOf } from './results.ts'
import { applicationOf, configOf, fill, readResults, untilIdle } from './run-engine.ts'

const rounds = Number(process.env.STANDBY_ROUNDS ?? 1)
const firstSeed = Number(process.env.STANDBY_SEED ?? 1)
const records = Number(process.env.STANDBY_RECORDS ?? 1000)
const events = 4
const patienceMs = 120_000

const settings: ConfigInput = {
  'ha.mode': 'hot-standby',
  'ha.heartbeat-interval': 150,
  'ha.failover-timeout': 1500,
  'ha.min-promotion-interval': 200,
  'ha.claim-stagger': 100,
  'runtime.http.enabled': true,
  'runtime.http.host': '127.0.0.1',
  'runtime.http.port': 0,
}

class Pods {
  readonly #program: Program
  readonly #broker: EmbeddedBroker
  readonly #folder: string
  readonly #random: Random
  readonly #lanes: number
  readonly #living = new Set<Runtime>()
  #started = 0

  constructor(program: Program, broker: EmbeddedBroker, folder: string, random: Random) {
    this.#program = program
    this.#broker = broker
    this.#folder = folder
    this.#random = random
    this.#lanes = random.pick([1, 2, 4])
  }

  async add(): Promise<void> {
    const random = this.#random
    const id = `pod-${++this.#started}`
    const own = join(this.#folder, id)
    const setting = {
      lanes: this.#lanes,
      store: random.chance(0.5) ? 'lmdb' : 'memory',
      commitMs: random.pick([5, 20, 100, 500]),
    } as const
    const runtime = await startRuntime({
      application: applicationOf(this.#folder, this.#program),
      broker: this.#broker,
      config: { ...configOf(own, setting), ...settings, 'ha.pod-id': id },
      log: (line) => {
        if (process.env.STANDBY_LOG === '1')
          process.stderr.write(`${id} ${line.level} ${line.component} ${line.message}\n`)
      },
    })
    this.#living.add(runtime)
  }

  async active(): Promise<Runtime> {
    const until = performance.now() + patienceMs
    while (performance.now() < until) {
      const [one] = [...this.#living].filter(
        ({ ha, view }) => ha?.status()?.selfState === 'ACTIVE' && view.state().current === 'RUNNING',
      )
      if (one !== undefined) return one
      await sleep(10)
    }
    throw new Error(`no pod has become active within ${patienceMs} ms`)
  }

  async disturb(): Promise<void> {
    const active = await this.active()
    await sleep(this.#random.int(600))
    const kind = this.#random.int(3)
    if (kind === 0) await fetch(`${active.url}/ha/switch`, { method: 'POST' })
    else {
      this.#living.delete(active)
      await (kind === 1 ? active.kill() : active.stop())
      await this.add()
    }
  }

  /** The role may go to another pod while one waits: a busy machine hears of heartbeats late. */
  async untilIdle(): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const active = await this.active()
      try {
        return await untilIdle(active, patienceMs)
      } catch (error) {
        const isStillActive = active.ha?.status()?.selfState === 'ACTIVE'
        if (isStillActive || attempt === 5) throw error
      }
    }
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#living].map((runtime) => runtime.stop()))
  }
}

describe('a program in hot standby', () => {
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    test(`commits what the model says, whoever is active: seed ${seed}`, async () => {
      const random = new Random(seed ^ 0x57a4d)
      const program = generate(seed, { records })
      const folder = mkdtempSync(join(tmpdir(), 'millrace-reference-standby-'))
      const broker = await startEmbeddedBroker({ partitions: program.partitions })
      const pods = new Pods(program, broker, folder, random)
      try {
        await fill(broker.client(), program)
        await pods.add()
        await pods.add()
        if (random.chance(0.5)) await pods.add()
        for (let event = 0; event < events; event++) await pods.disturb()
        await pods.untilIdle()
        await pods.stop()
        const found = await readResults(broker.client(), program)
        assert.deepEqual(differences(program, expectedOf(program).results, found), [])
      } finally {
        await pods.stop()
        await broker.close()
        rmSync(folder, { recursive: true, force: true })
      }
    })
  }
})
