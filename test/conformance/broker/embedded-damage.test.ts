/** Files of the embedded broker that were damaged: a clear error, or what an undamaged folder would give. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { Random } from '../../../src/base/random.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import { brokerEntry, frameOf, framesIn } from '../../../src/broker/embedded/files/journal-frames.ts'
import { inspectFolder } from '../../../src/broker/embedded/files/inspection.ts'
import { BrokerError } from '../../../src/broker/port.ts'
import { contentOf, damage, fill, printOf, restorer } from './damage-support.ts'
import { directCluster, temporaryFolder } from './embedded-support.ts'
import { batchOf, outsider, readToEnd } from './support.ts'

const damages = Number(process.env.BROKER_DAMAGES ?? 500)
const seed = Number(process.env.BROKER_DAMAGE_SEED ?? 1)

/** What is refused is also shown; and where it is cut the broker starts, and goes on. */
async function checkRepair(folder: string, what: string): Promise<void> {
  // The lock is nothing that could be repaired; whoever deletes it loses nothing.
  if (what.includes('lock')) return
  const { findings, repair } = inspectFolder(folder)
  assert.ok(findings.length > 0, `${what}: refused, and not shown`)
  assert.ok(findings[0]?.losses.length, `${what}: says nothing of what is lost`)
  if (repair === undefined) return
  repair()
  assert.deepEqual(inspectFolder(folder).findings, [], what)
  await contentOf(folder).catch((error: unknown) => {
    throw new Error(`${what}: after the repair`, { cause: error })
  })
}

describe("a damaged file of the embedded broker's folder", () => {
  for (const [ends, fsync] of [
    ['cleanly', false],
    ['suddenly', false],
    ['suddenly', true],
  ] as const) {
    const how = `${ends}${fsync ? ' and had waited for the disk' : ''}`
    test(`is refused by name and place, or changes nothing, after a process that ended ${how} (seed ${seed})`, async (t) => {
      const at = temporaryFolder(t)
      const scene = await fill(at, 24, ends, { fsync })
      const copy = join(at, 'copy')
      cpSync(scene.folder, copy, { recursive: true })
      const fresh = restorer(copy)
      const expected = await contentOf(copy)
      fresh()
      const random = new Random(seed)
      const seen = { refused: 0, harmless: 0 }
      while (seen.refused + seen.harmless < damages / 3) {
        const done = damage(copy, scene.earlier, random)
        if (done === undefined) continue
        const print = printOf(copy)
        try {
          const content = await contentOf(copy)
          assert.ok(isDeepStrictEqual(content, expected), `${done.what}: read as if nothing were wrong`)
          seen.harmless++
          fresh()
        } catch (error) {
          if (!(error instanceof BrokerError)) throw error
          assert.equal(error.code, 'BROKER_FILES_DAMAGED', `${done.what}: ${error.message}`)
          const named = done.files.some((file) => error.message.includes(join(copy, file)))
          assert.ok(named && /at byte \d+/.test(error.message), `${done.what}: ${error.message}`)
          assert.equal(printOf(copy), print, `${done.what}: files were changed`)
          if (seen.refused % 3 === 0) await checkRepair(copy, done.what)
          fresh()
          seen.refused++
        }
      }
      t.diagnostic(JSON.stringify(seen))
      assert.ok(seen.refused > damages / 6, JSON.stringify(seen))
    })
  }
})

test('a journal of the same length from another course of things is refused: its offsets would be taken for these', async (t) => {
  const at = temporaryFolder(t)
  const [folder, other] = [join(at, 'data'), join(at, 'other')]
  const committed = async (of: string, offset: number): Promise<void> => {
    const { client, cluster } = directCluster({ storage: openDiskStorage(of, { fsync: false }) })
    await client.commitOffsets(outsider('readers'), [{ topic: 'lines', partition: 0, offset, metadata: '' }])
    cluster.close()
  }
  const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
  await client.createTopics([{ topic: 'lines', partitions: 1 }])
  const batches = [{ topic: 'lines', partition: 0, records: batchOf(['a', 'b', 'c']) }]
  await client.produce({ transactionalId: null, batches })
  cluster.close()
  cpSync(folder, other, { recursive: true })
  await committed(folder, 1)
  await committed(other, 3)
  cpSync(join(other, 'journal'), join(folder, 'journal'))
  await assert.rejects(committed(folder, 1), { code: 'BROKER_FILES_DAMAGED', message: /not the one that was written/ })
  assert.ok(inspectFolder(folder).findings.length > 0)
})

/** The folder as the version before wrote it: its journal neither numbered its entries nor named the segments. */
function inFirstFormat(folder: string): void {
  const path = join(folder, 'journal')
  const entries = framesIn(readFileSync(path)).frames.flatMap(({ record }) => brokerEntry(record) ?? [])
  writeFileSync(path, Buffer.concat(entries.map((entry) => frameOf(entry).bytes)))
  rmSync(`${path}.end`)
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] as number) ^ 4
  writeFileSync(path, bytes)
}

test('what follows from a loss is told: groups that go back, feeds that are not repeated, state that lacks changes', async (t) => {
  const at = temporaryFolder(t)
  const folder = join(at, 'data')
  const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
  const topic = 'app-sums-changelog'
  await client.createTopics([{ topic, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
  for (const value of ['a', 'b', 'c']) {
    const batches = [{ topic, partition: 0, records: batchOf([value], value) }]
    await client.produceFed(batches, { topic, file: 'sums.ndjson', lines: 1 })
  }
  await client.commitOffsets(outsider('readers'), [{ topic, partition: 0, offset: 3, metadata: '' }])
  cluster.close()
  const partition = join(folder, 'topics', inspectTopic(folder, topic), '0')
  truncateSync(join(partition, readdirSync(partition)[0] as string), 100)
  const { findings, consequences } = inspectFolder(folder)
  assert.deepEqual(
    findings.flatMap(({ losses }) => losses),
    [`the records of ${topic}:0 from offset 1 on, at least up to 3, which the group readers had reached`],
  )
  assert.deepEqual(consequences, [
    `the group readers goes back from offset 3 to 1 of ${topic}:0`,
    `state that is restored from ${topic} lacks these changes, and so do results that build on it`,
    `lines of sums.ndjson that were fed to ${topic} are not fed again by themselves`,
  ])
})

/** A topic of one partition with four segments of so many records; answers the paths of these. */
async function fourSegments(folder: string, topic: string, each = 1): Promise<string[]> {
  const storage = openDiskStorage(folder, { fsync: false })
  const { client, cluster } = directCluster({ segmentBytes: 100, storage })
  await client.createTopics([{ topic, partitions: 1 }])
  for (const value of ['a', 'b', 'c', 'd']) {
    const records = batchOf(Array.from({ length: each }, () => value.repeat(100)))
    await client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records }] })
  }
  cluster.close()
  const partition = join(folder, 'topics', inspectTopic(folder, topic), '0')
  const segments = readdirSync(partition).sort()
  assert.equal(segments.length, 4)
  return segments.map((name) => join(partition, name))
}

test('the repair keeps all records behind a file of which nobody knows', async (t) => {
  const folder = join(temporaryFolder(t), 'data')
  const [first] = await fourSegments(folder, 'log', 2)
  const stray = join(dirname(first as string), `${'1'.padStart(20, '0')}.log`)
  writeFileSync(stray, '')
  const { findings, repair } = inspectFolder(folder)
  assert.deepEqual(
    findings.map(({ path, losses }) => [path, losses]),
    [[stray, ['no record of log:0']]],
  )
  repair?.()
  assert.ok(!existsSync(stray))
  const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
  const { records } = await readToEnd(client, 'log')
  cluster.close()
  assert.equal(records.map(({ value }) => value?.[0]).join(''), 'aabbccdd')
})

test('the repair keeps all that lies behind a missing beginning, and cuts only behind a gap', async (t) => {
  for (const [missing, what, left] of [
    [[0], 'before offset 1', ['b', 'c', 'd']],
    [[0, 1], 'before offset 2', ['c', 'd']],
    [[2], 'from offset 2 on', ['a', 'b']],
    [[0, 2], 'before offset 1 and from offset 2 on', ['b']],
  ] as const) {
    const folder = join(temporaryFolder(t), 'data')
    const segments = await fourSegments(folder, 'log')
    for (const i of missing) rmSync(segments[i] as string)
    const { findings, repair } = inspectFolder(folder)
    assert.equal(findings.length, missing.length)
    assert.deepEqual(findings[0]?.losses, [`the records of log:0 ${what}`])
    repair?.()
    const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: false }) })
    const [begin] = await client.listOffsets([{ topic: 'log', partition: 0 }], 'earliest')
    const { records } = await readToEnd(client, 'log', { from: begin?.offset ?? 0 })
    cluster.close()
    assert.deepEqual(
      records.map(({ value }) => value?.[0]),
      left,
    )
  }
})

describe("a folder of the embedded broker's first format", () => {
  const damagesOfOld: ReadonlyArray<readonly [what: string, harm: (folder: string, last: string) => void]> = [
    ['a bit in the length of the first journal entry', (folder) => flip(join(folder, 'journal'), 1)],
    ['the journal emptied', (folder) => writeFileSync(join(folder, 'journal'), '')],
    ['the journal removed', (folder) => rmSync(join(folder, 'journal'))],
    ['a cut of the last segment', (_, last) => truncateSync(last, 70)],
    ['the last segment removed', (_, last) => rmSync(last)],
    ['a bit in a batch of the last segment', (_, last) => flip(last, 80)],
  ]

  test('opens with all that it holds, and is of the present format then', async (t) => {
    const at = temporaryFolder(t)
    const { folder } = await fill(at, 10, 'suddenly')
    const old = join(at, 'old')
    cpSync(folder, old, { recursive: true })
    inFirstFormat(old)
    assert.deepEqual(await contentOf(old), await contentOf(folder))
    assert.ok(existsSync(join(old, 'journal.end')))
    assert.deepEqual(inspectFolder(old).findings, [])
  })

  for (const [what, harm] of damagesOfOld) {
    test(`is refused with ${what}, which offsets and whole entries behind give away`, async (t) => {
      const { folder } = await fill(temporaryFolder(t), 10, 'cleanly')
      const topic = inspectTopic(folder, 'left')
      inFirstFormat(folder)
      const partition = join(folder, 'topics', topic, '0')
      harm(folder, join(partition, readdirSync(partition).sort().at(-1) as string))
      const print = printOf(folder)
      await assert.rejects(contentOf(folder), { code: 'BROKER_FILES_DAMAGED' })
      assert.equal(printOf(folder), print)
      assert.ok(inspectFolder(folder).findings.length > 0)
    })
  }
})

function inspectTopic(folder: string, name: string): string {
  const { frames } = framesIn(readFileSync(join(folder, 'journal')))
  for (const { record } of frames) if (record.kind === 'topic' && record.topic === name) return record.topicId
  throw new Error(`no topic ${name}`)
}
