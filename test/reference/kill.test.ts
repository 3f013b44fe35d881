/**
 * Random programs that are killed at random moments, on a machine kept busy, in the process and through topics: what they
 * commit in the end is what the model says, nothing lost and nothing twice. Each life has other settings. KILL_ROUNDS: how many rounds of each kind; KILL_SEED: the first one;
 * KILL_FAILS=1: with functions that fail on some records; KILL_RECORDS: how long the input is; KILL_BUSY=0: the machine is busy already.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import { type EmbeddedBroker, type Runtime, startEmbeddedBroker, startRuntime } from '../../src/runtime/index.ts'
import { keepBusy } from './busy.ts'
import { generate } from './generate.ts'
import { killed, programProcess } from './processes.ts'
import { differences, expectedOf, lettersWrong } from './results.ts'
import {
  applicationOf,
  configOf,
  fill,
  policiesOf,
  readLetters,
  readResults,
  type Setting,
  untilIdle,
} from './run-engine.ts'
import type { Program } from './program.ts'
import { forTopics, topicFaults } from './through-topics.ts'
import { unusualLimits } from './unusual.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 1)
const firstSeed = Number(process.env.KILL_SEED ?? 1)
const records = Number(process.env.KILL_RECORDS ?? 1000)
const fails = process.env.KILL_FAILS === '1'
const kills = 3

type Split = NonNullable<Setting['split']>
const splits: readonly Split[] = ['in-process', 'repartition-topics']

const settingOf = (random: Random, program: Program, split: Split): Setting => ({
  lanes: random.pick([1, 2, 4]),
  store: random.chance(0.5) ? 'lmdb' : 'memory',
  commitMs: random.pick([5, 20, 100, 500]),
  config: unusualLimits(random, program),
  split,
})

const programOf = (seed: number, split: Split): Program => {
  const program = generate(seed, { records, fails })
  return split === 'in-process' ? program : forTopics(program)
}

async function compare(program: Program, split: Split, broker: EmbeddedBroker): Promise<void> {
  const faults = split === 'in-process' ? differences : topicFaults
  const found = await readResults(broker.client(), program)
  const expected = expectedOf(program)
  assert.deepEqual(faults(program, expected.results, found), [])
  // What follows from a topic between sub-topologies is named by its place there.
  if (split === 'in-process') assert.deepEqual(lettersWrong(program, expected, await readLetters(broker.client())), [])
}

describe('a program that is killed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-reference-kill-'))
  let rest: (() => Promise<void>) | undefined
  before(() => {
    if (process.env.KILL_BUSY !== '0') rest = keepBusy(60_000 + rounds * splits.length * 120_000)
  })
  after(async () => {
    await rest?.()
    rmSync(folder, { recursive: true, force: true })
  })

  /** Each of the members, which share the work where there are several, is killed so often; then all come to the end. */
  async function inProcess(seed: number, split: Split): Promise<void> {
    const random = new Random(seed ^ 0x1c111)
    const program = programOf(seed, split)
    const own = mkdtempSync(join(folder, 'round-'))
    const broker = await startEmbeddedBroker({ partitions: program.partitions })
    try {
      await fill(broker.client(), program)
      const application = applicationOf(own, program)
      const start = (name: string) => {
        const settings = { 'engine.instance-id': name, 'engine.state.dir': join(own, name) }
        const config = { ...configOf(own, settingOf(random, program, split)), ...policiesOf(program), ...settings }
        return startRuntime({ application, broker, config, log: () => undefined })
      }
      const members = split === 'repartition-topics' && random.chance(0.5) ? ['one', 'two'] : ['one']
      const live = async (name: string): Promise<Runtime> => {
        for (let kill = 0; kill < kills; kill++) {
          const runtime = await start(name)
          await sleep(random.int(800))
          await runtime.kill()
        }
        return start(name)
      }
      const runtimes = await Promise.all(members.map(live))
      await Promise.all(runtimes.map((runtime) => untilIdle(runtime, 120_000)))
      for (const runtime of runtimes) await runtime.stop()
      await compare(program, split, broker)
    } finally {
      await broker.close()
    }
  }

  async function withItsProcess(seed: number, split: Split): Promise<void> {
    const random = new Random(seed ^ 0x51641)
    const program = programOf(seed, split)
    const own = mkdtempSync(join(folder, 'round-'))
    const log = join(own, 'broker')
    const filling = await startEmbeddedBroker({ folder: log, partitions: program.partitions })
    await fill(filling.client(), program)
    await filling.close()
    const start = programProcess(own, program, () => ({
      ...configOf(own, settingOf(random, program, split)),
      ...policiesOf(program),
      'broker.bootstrap-servers': `embedded:${log}`,
      // A life with another kind of store would have another name, and what its predecessor left open would hide results
      // until the transaction's time-out.
      'engine.instance-id': 'one',
    }))
    for (let kill = 0; kill < kills; kill++) await killed(start(), () => sleep(random.int(800)))
    const { code, stderr } = await start('--until-idle').result
    assert.equal(code, 0, stderr)
    const broker = await startEmbeddedBroker({ folder: log, partitions: program.partitions })
    try {
      await compare(program, split, broker)
    } finally {
      await broker.close()
    }
  }

  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    for (const split of splits) {
      const through = split === 'in-process' ? '' : ', through topics'
      test(`in its process commits what the model says${through}: seed ${seed}`, () => inProcess(seed, split))
      test(`with its process commits what the model says${through}: seed ${seed}`, () => withItsProcess(seed, split))
    }
  }
})
