/**
 * A cluster of three brokers, one of which at a time is lost with everything that it leads and comes back: the
 * verifier finds nothing, and the application goes on. `CLUSTER_KILLS` lengthens the run; every second time the
 * application is killed as well.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalKafka } from '../../scripts/kafka/local-kafka.ts'
import { Random } from '../../src/base/random.ts'
import { EngineProcess, VerifierTool } from '../kafka/verifier/harness.ts'
import { threeBrokers } from './three-brokers.ts'

const kills = Number(process.env.CLUSTER_KILLS ?? 1)
const seed = Number(process.env.CLUSTER_SEED ?? Date.now() % 1_000_000)
const { cluster: brokers, skip, end } = await threeBrokers()

describe(`three brokers (CLUSTER_SEED=${seed})`, { skip }, () => {
  const random = new Random(seed)
  const prefix = `cluster-${process.pid}`
  let tool: VerifierTool

  before(async () => {
    tool = await VerifierTool.compile(brokers)
    await tool.create(prefix)
  })
  after(async () => {
    tool.dispose()
    await end()
  })

  test(`brokers killed in turn, ${kills} in all`, async (t) => {
    const stateFolder = mkdtempSync(join(tmpdir(), 'millrace-state-'))
    const engine = new EngineProcess({ prefix, bootstrap: brokers.bootstrap, stateFolder })
    try {
      await engine.start()
      await engine.untilReady()
      const through = join(stateFolder, 'faults-are-through')
      const load = { records: 60_000, keys: 200, rate: 100, seed: random.int(1_000_000), until: through }
      const fed = tool.produce(prefix, load)
      // Told where it is awaited; a fault that fails first must not leave it unhandled.
      fed.catch(() => undefined)
      const first = random.int(brokers.brokers.length)
      for (let i = 0; i < kills; i++) {
        const broker = brokers.brokers[(first + i) % brokers.brokers.length] as LocalKafka
        await sleep(1000 + random.int(1500))
        await broker.kill()
        if (i % 2 === 1) {
          engine.kill()
          await engine.start()
        }
        await sleep(2000 + random.int(3000))
        await broker.start()
        await engine.untilReady()
      }
      writeFileSync(through, '')
      const late = sleep(120_000, 'late' as const, { ref: false })
      const written = await Promise.race([fed, late])
      assert.notEqual(
        written,
        'late',
        `the input is not written two minutes after the last loss\n${engine.log.slice(-4000)}`,
      )
      assert.deepEqual(engine.crashes, [], engine.log.slice(-4000))
      const verdict = await tool.verify(prefix, 240_000)
      assert.ok(verdict.ok, `${JSON.stringify(verdict, null, 1)}\n${engine.log.slice(-4000)}`)
      assert.equal(verdict.inputs, written)
      t.diagnostic(`${written} records, longest stand-still of a partition ${verdict.maxGapMs} ms`)
      assert.equal(await engine.stop(), 0)
    } finally {
      engine.dispose()
      rmSync(stateFolder, { recursive: true, force: true })
    }
  })
})
