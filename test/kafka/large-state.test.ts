/**
 * State that takes long to rebuild: a killed process replays the tail alone, and one whose files are gone restores
 * everything, and shows how far it is. `LARGE_STATE_MB` sets the size of the state.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Random } from '../../src/base/random.ts'
import { connectKafka } from '../../src/broker/kafka/kafka-broker.ts'
import type { BrokerPort } from '../../src/broker/port.ts'
import { RecordBatchBuilder } from '../../src/broker/wire/record-batch.ts'
import { kafkaForTests } from '../support/kafka.ts'
import { eventually } from '../support/millrace.ts'
import { EngineProcess } from './verifier/harness.ts'

const megabytes = Number(process.env.LARGE_STATE_MB ?? 48)
const valueBytes = 1024
const records = Math.floor((megabytes * 1024 * 1024) / valueBytes)
const partitions = 4
/** The longest any step may take: a slow machine writes a megabyte a second. */
const patienceMs = 120_000 + megabytes * 1000

const kafka = await kafkaForTests()
const skip = 'skip' in kafka ? kafka.skip : false

interface RestoreBlock {
  readonly restoredRecords: number
  readonly remainingRecords: number
}

describe(`${megabytes} MiB of state (LARGE_STATE_MB)`, { skip }, () => {
  const prefix = `large-${process.pid}`
  const folder = mkdtempSync(join(tmpdir(), 'millrace-large-'))
  const bootstrap = 'skip' in kafka ? '' : kafka.bootstrap
  let port: BrokerPort
  let engine: EngineProcess

  before(async () => {
    port = connectKafka({ bootstrapServers: [bootstrap], clientId: 'large-state' })
    await port.createTopics([{ topic: `${prefix}-in`, partitions }])
    engine = new EngineProcess({
      prefix,
      bootstrap,
      stateFolder: folder,
      application: 'large-app.ts',
      settings: { 'engine.state.store': 'lmdb' },
    })
  })
  after(async () => {
    engine.dispose()
    await port.close()
    rmSync(folder, { recursive: true, force: true })
    if (!('skip' in kafka)) await kafka.stop()
  })

  async function write(from: number, to: number): Promise<void> {
    const random = new Random(from + 1)
    const value = Buffer.alloc(valueBytes)
    for (let at = from; at < to; ) {
      const builder = new RecordBatchBuilder()
      const partition = random.int(partitions)
      for (const end = Math.min(to, at + 512); at < end; at++) {
        for (let i = 0; i < valueBytes; i += 4) value.writeUInt32LE(random.int(2 ** 32 - 1), i)
        builder.append(1_700_000_000_000 + at, Buffer.from(`key-${at}`), value, [])
      }
      await port.produce({
        transactionalId: null,
        batches: [{ topic: `${prefix}-in`, partition, records: builder.finish() }],
      })
    }
  }

  async function committed(): Promise<number> {
    const offsets = await port.committedOffsets(prefix, null, true)
    return offsets.reduce((sum, { offset }) => sum + Math.max(0, offset), 0)
  }

  async function restoredRecords(): Promise<number> {
    const text = (await engine.ask('/metrics')) ?? ''
    const rows = [...text.matchAll(/^engine_store_restored_records_total\{[^}]*\} (\d+)$/gm)]
    return rows.reduce((sum, row) => sum + Number(row[1]), 0)
  }

  const sizeOf = (path: string): number =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).blocks * 512, 0)

  test('a killed process replays the tail; one without its files restores all of it and shows how far it is', async (t) => {
    const most = Math.floor(records * 0.97)
    await write(0, most)
    await engine.start()
    await engine.untilReady(patienceMs)
    const filledAt = performance.now()
    await eventually('most of the state is there', async () => (await committed()) >= most, patienceMs)
    const held = async (): Promise<number> => {
      const rows = ((await engine.ask('/metrics')) ?? '').matchAll(/^engine_lane_unwritten_bytes\{[^}]*\} (\d+)$/gm)
      return [...rows].reduce((sum, row) => sum + Number(row[1]), 0)
    }
    await eventually('what is committed is written', async () => (await held()) === 0, patienceMs)
    t.diagnostic(`${(sizeOf(folder) / 2 ** 20).toFixed(0)} MiB on the disk in ${seconds(performance.now() - filledAt)}`)

    // Killed while it works: what is committed and not yet in the store is the tail.
    const writing = write(most, records)
    await eventually('it has gone on', async () => (await committed()) > most, patienceMs)
    engine.kill()
    await writing
    const killedAt = performance.now()
    await engine.start()
    await engine.untilReady(patienceMs)
    const restartMs = performance.now() - killedAt
    const replayed = await restoredRecords()
    t.diagnostic(`running again ${seconds(restartMs)} after kill -9, with ${replayed} of ${records} records replayed`)
    assert.ok(replayed < records / 10, `${replayed} of ${records} records were replayed where the tail was wanted`)
    await eventually('all of the state is there', async () => (await committed()) >= records, patienceMs)

    engine.kill()
    await sleep(100)
    rmSync(folder, { recursive: true, force: true })
    const lostAt = performance.now()
    await engine.start()
    const shown: RestoreBlock[] = []
    let lagsShown = 0
    while ((await engine.health()) !== 'ready') {
      assert.ok(performance.now() - lostAt < patienceMs, `not restored; its log:\n${engine.log.slice(-3000)}`)
      const { current, restore } = JSON.parse((await engine.ask('/state')) ?? '{}') as {
        current?: string
        restore?: RestoreBlock[]
      }
      if (current === 'RESTORING' && restore !== undefined) {
        const sum = (of: (block: RestoreBlock) => number): number => restore.reduce((all, block) => all + of(block), 0)
        shown.push({ restoredRecords: sum((b) => b.restoredRecords), remainingRecords: sum((b) => b.remainingRecords) })
        if (((await engine.ask('/offsets')) ?? '').includes(`${prefix}-newest-changelog`)) lagsShown++
      }
      await sleep(10)
    }
    const restoreMs = performance.now() - lostAt
    t.diagnostic(`restored in full in ${seconds(restoreMs)}, seen ${shown.length} times on the way`)
    assert.ok((await restoredRecords()) >= records, 'every key came back')
    const points = new Set(shown.map((each) => each.restoredRecords))
    assert.ok(points.size > 2, `progress was shown: ${[...points].join(', ')}`)
    assert.ok(shown.every((each, i) => each.restoredRecords >= (shown[i - 1]?.restoredRecords ?? 0)))
    assert.ok(shown.every((each) => each.restoredRecords + each.remainingRecords > 0))
    assert.ok(lagsShown > 0, '/offsets names the changelog while it is restored')
    assert.match(engine.log, /→ RESTORING/)
    // On a small state the start of the process outweighs everything else.
    if (megabytes >= 512) assert.ok(restartMs * 3 < restoreMs, 'a restart is no restore')
    assert.equal(await engine.stop(), 0)
  })
})

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
