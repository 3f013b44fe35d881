/**
 * Random programs in two processes of one group, through topics, each process killed at random moments: what they commit in
 * the end is what the model says. Each life has other settings. KILL_ROUNDS, KILL_SEED and KILL_RECORDS as in `test/reference/kill.test.ts`.
 */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { Random } from '../../src/base/random.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import { generate } from '../reference/generate.ts'
import { killed, programProcess, type Start } from '../reference/processes.ts'
import type { Program } from '../reference/program.ts'
import { expectedOf } from '../reference/results.ts'
import { configOf, fill, readResults, type Setting } from '../reference/run-engine.ts'
import { forTopics, topicFaults } from '../reference/through-topics.ts'
import { unusualLimits } from '../reference/unusual.ts'
import { kafkaForTests } from '../support/kafka.ts'

const rounds = Number(process.env.KILL_ROUNDS ?? 1)
const firstSeed = Number(process.env.KILL_SEED ?? 1)
const records = Number(process.env.KILL_RECORDS ?? 1000)
const kills = 2

const kafka = await kafkaForTests({ own: true })
const skip = 'skip' in kafka ? kafka.skip : false

/** With topics of its own. */
function prefixed(program: Program, prefix: string): Program {
  const named = <T extends { readonly topic?: string }>(each: T): T =>
    each.topic === undefined ? each : { ...each, topic: `${prefix}${each.topic}` }
  return { ...program, nodes: program.nodes.map(named), topics: program.topics.map(named) }
}

describe('two processes of one program that are killed in turn', { skip }, () => {
  const broker = ('skip' in kafka ? undefined : kafka.broker) as LocalKafka
  const port = connectKafka({ bootstrapServers: skip ? ['127.0.0.1:1'] : [broker.bootstrap], clientId: 'killed' })
  const folder = mkdtempSync(join(tmpdir(), 'millrace-killed-programs-'))
  after(async () => {
    rmSync(folder, { recursive: true, force: true })
    await port.close()
    if (!('skip' in kafka)) await kafka.stop()
  })

  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    test(`commit what the model says: seed ${seed}`, async () => {
      const random = new Random(seed ^ 0x2f00d)
      const program = prefixed(forTopics(generate(seed, { records })), `s${seed}-`)
      await fill(port, program)
      const member = (name: string): Start => {
        const own = join(folder, `${seed}-${name}`)
        mkdirSync(own)
        const setting = (): Setting => ({
          lanes: random.pick([1, 2, 4]),
          store: random.chance(0.5) ? 'lmdb' : 'memory',
          commitMs: random.pick([20, 100, 500]),
          split: 'repartition-topics',
          config: unusualLimits(random, program),
        })
        const config = () => ({
          ...configOf(own, setting()),
          'broker.bootstrap-servers': broker.bootstrap,
          'engine.instance-id': name,
          'consumer.session.timeout.ms': '6000',
          'consumer.heartbeat.interval.ms': '1000',
        })
        return programProcess(own, program, config, `reference-${seed}`)
      }
      // Each is killed at moments of its own: while the other runs, is killed itself, or takes over.
      const lives = async (start: Start): Promise<void> => {
        for (let kill = 0; kill < kills; kill++) await killed(start(), () => sleep(random.int(2500)))
        const { code, stderr } = await start('--until-idle').result
        assert.equal(code, 0, stderr)
      }
      const ends = await Promise.allSettled(['one', 'two'].map(member).map(lives))
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      assert.deepEqual(topicFaults(program, expectedOf(program).results, await readResults(port, program)), [])
    })
  }
})
