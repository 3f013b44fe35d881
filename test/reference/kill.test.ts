/**
 * Random programs that are killed at random moments, on a machine kept busy: what they commit in the end is what the
 * model says, nothing lost and nothing twice. KILL_ROUNDS: how many rounds of each kind; KILL_SEED: the first one;
 * KILL_RECORDS: how long the input is; KILL_BUSY=0: the machine is busy already.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import { type EmbeddedBroker, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { eventually, startMillrace } from '../support/millrace.ts'
import { keepBusy } from './busy.ts'
import { generate } from './generate.ts'
import { differences, expectedOf } from './results.ts'
import { applicationOf, configOf, fill, readResults, untilIdle } from './run-engine.ts'
import type { Program } from './program.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 1)
const firstSeed = Number(process.env.KILL_SEED ?? 1)
const records = Number(process.env.KILL_RECORDS ?? 1000)
const kills = 3

const settingOf = (random: Random): Parameters<typeof configOf>[1] => ({
  lanes: random.pick([1, 2, 4]),
  store: random.chance(0.5) ? 'lmdb' : 'memory',
  commitMs: random.pick([5, 20, 100, 500]),
})

async function compare(program: Program, broker: EmbeddedBroker): Promise<void> {
  const found = await readResults(broker.client(), program)
  assert.deepEqual(differences(program, expectedOf(program).results, found), [])
}

describe('a program that is killed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-reference-kill-'))
  let rest: (() => Promise<void>) | undefined
  before(() => {
    if (process.env.KILL_BUSY !== '0') rest = keepBusy(60_000 + rounds * 120_000)
  })
  after(async () => {
    await rest?.()
    rmSync(folder, { recursive: true, force: true })
  })

  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    test(`in its process commits what the model says: seed ${seed}`, async () => {
      const random = new Random(seed ^ 0x1c111)
      const program = generate(seed, { records })
      const setting = settingOf(random)
      const own = mkdtempSync(join(folder, 'round-'))
      const broker = await startEmbeddedBroker({ partitions: program.partitions })
      try {
        await fill(broker.client(), program)
        const application = applicationOf(own, program)
        const start = () => startRuntime({ application, broker, config: configOf(own, setting), log: () => undefined })
        for (let kill = 0; kill < kills; kill++) {
          const runtime = await start()
          await sleep(random.int(800))
          await runtime.kill()
        }
        const runtime = await start()
        await untilIdle(runtime, 120_000)
        await runtime.stop()
        await compare(program, broker)
      } finally {
        await broker.close()
      }
    })

    test(`with its process commits what the model says: seed ${seed}`, async () => {
      const random = new Random(seed ^ 0x51641)
      const program = generate(seed, { records })
      const own = mkdtempSync(join(folder, 'round-'))
      const log = join(own, 'broker')
      const filling = await startEmbeddedBroker({ folder: log, partitions: program.partitions })
      await fill(filling.client(), program)
      await filling.close()
      const file = join(own, 'program.json')
      writeFileSync(file, JSON.stringify(program))
      const config = { ...configOf(own, settingOf(random)), 'broker.bootstrap-servers': `embedded:${log}` }
      const settings = Object.entries(config).flatMap(([key, value]) => ['--set', `${key}=${value}`])
      const app = join(import.meta.dirname, 'apps', 'program.ts')
      const start = (...more: string[]) =>
        startMillrace(['run', app, ...settings, ...more], { env: { REFERENCE_PROGRAM: file }, timeoutMs: 900_000 })
      for (let kill = 0; kill < kills; kill++) {
        const running = start()
        await eventually(
          'it runs',
          () => /→ RUNNING/.test(running.stderr()) || running.child.exitCode !== null,
          300_000,
        )
        await sleep(random.int(800))
        running.child.kill('SIGKILL')
        const { signal, stderr } = await running.result
        assert.equal(signal, 'SIGKILL', `life ${kill} ended by itself: ${stderr}`)
      }
      const { code, stderr } = await start('--until-idle').result
      assert.equal(code, 0, stderr)
      const broker = await startEmbeddedBroker({ folder: log, partitions: program.partitions })
      try {
        await compare(program, broker)
      } finally {
        await broker.close()
      }
    })
  }
})
