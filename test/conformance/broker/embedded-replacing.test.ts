/** An end in the middle of a compaction: the old segments are there or the new one, and neither is taken for damage. */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import type { PartitionFiles, Storage } from '../../../src/broker/embedded/core/storage.ts'
import type { DiskSegment } from '../../../src/broker/embedded/disk-segment.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import { inspectFolder } from '../../../src/broker/embedded/files/inspection.ts'
import { JournalEnd } from '../../../src/broker/embedded/files/journal-end.ts'
import { framesIn } from '../../../src/broker/embedded/files/journal-frames.ts'
import { smallSegments } from './damage-support.ts'
import { directCluster, temporaryFolder } from './embedded-support.ts'
import { batchOf, readToEnd } from './support.ts'

const topic = 'latest'

/** Lets the test see the folder before and after each replacement of segments. */
function watched(inner: Storage, before: (old: readonly DiskSegment[]) => void, after: () => void): Storage {
  const files = (partition: PartitionFiles): PartitionFiles => ({
    isComplete: partition.isComplete,
    isForced: partition.isForced,
    list: () => partition.list(),
    create: (baseOffset) => partition.create(baseOffset),
    remove: (segment) => partition.remove(segment),
    replace: (old, content) => {
      before(old as readonly DiskSegment[])
      const segment = partition.replace(old, content)
      after()
      return segment
    },
  })
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'partition') return (id: string, n: number) => files(target.partition(id, n))
      const value = Reflect.get(target, name, target) as unknown
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

async function latest(folder: string): Promise<Map<string | null, string | null>> {
  const { client, cluster } = directCluster({ ...smallSegments, storage: openDiskStorage(folder, { fsync: false }) })
  const { records } = await readToEnd(client, topic)
  const [end] = await client.listOffsets([{ topic, partition: 0 }], 'latest')
  cluster.close()
  const rows = new Map(records.map(({ key, value }) => [key, value] as const))
  return rows.set('the end', String(end?.offset))
}

/** The journal up to the announcement of the last replacement. */
function cutBehindAnnouncement(folder: string): void {
  const path = join(folder, 'journal')
  const bytes = readFileSync(path)
  const { frames } = framesIn(bytes)
  const at = frames.findLastIndex(({ record }) => record.kind === 'replacing')
  const last = frames[at] ?? assert.fail('nothing was announced')
  writeFileSync(path, bytes.subarray(0, frames[at + 1]?.at))
  const end = new JournalEnd(`${path}.end`)
  end.write({ n: last.record.n ?? 0, crc: last.crc })
  end.close()
}

test('an end at any moment of a compaction', async (t) => {
  const at = temporaryFolder(t)
  const [live, before, after] = ['live', 'before', 'after'].map((name) => join(at, name)) as [string, string, string]
  let old: string[] = []
  const copy = (to: string): void => {
    rmSync(to, { recursive: true, force: true })
    cpSync(live, to, { recursive: true })
  }
  const seeOld = (segments: readonly DiskSegment[]): void => {
    copy(before)
    old = segments.map(({ path }) => relative(live, path))
  }
  const storage = watched(openDiskStorage(live, { fsync: false }), seeOld, () => copy(after))
  const { client, cluster } = directCluster({ ...smallSegments, storage })
  await client.createTopics([{ topic, partitions: 1, config: { 'cleanup.policy': 'compact' } }])
  for (let i = 0; i < 60; i++) {
    const records = batchOf([`${i}`.padEnd(180, '.')], `key ${i % 5}`)
    await client.produce({ transactionalId: null, batches: [{ topic, partition: 0, records }] })
  }
  cluster.close()
  assert.ok(old.length > 2, `${old.length} segments were replaced`)
  const [first, ...others] = old as [string, ...string[]]
  const whole = join(at, 'whole')
  cpSync(after, whole, { recursive: true })
  const expected = await latest(whole)

  // Step by step: announced, renamed, then one old segment after the other gone.
  for (let step = 0; step <= others.length + 1; step++) {
    const folder = join(at, `step-${step}`)
    cpSync(after, folder, { recursive: true })
    cutBehindAnnouncement(folder)
    if (step === 0) {
      cpSync(join(after, first), join(folder, `${first}.new`))
      cpSync(join(before, first), join(folder, first))
    }
    const gone = Math.max(0, step - 1)
    for (const file of others.slice(gone)) cpSync(join(before, file), join(folder, file))
    assert.deepEqual(inspectFolder(folder).findings, [], `step ${step}`)
    assert.deepEqual(await latest(folder), expected, `step ${step}`)
    const left = readdirSync(join(folder, first, '..'))
    assert.ok(step === 0 || others.every((file) => !left.includes(file.split('/').at(-1) as string)))
    assert.deepEqual(inspectFolder(folder).findings, [], `step ${step}, started`)
  }

  // What neither the old nor the new state explains is damage.
  const torn = join(at, 'torn')
  cpSync(after, torn, { recursive: true })
  cutBehindAnnouncement(torn)
  cpSync(join(before, first), join(torn, first))
  await assert.rejects(latest(torn), { code: 'BROKER_FILES_DAMAGED' })
})
