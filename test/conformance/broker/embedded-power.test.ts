/** A power cut under the embedded broker: files keep what was forced to the disk, and of the rest whatever came there. */
import assert from 'node:assert/strict'
import fs, { cpSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { Random } from '../../../src/base/random.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { contentOf, fill, filesOf } from './damage-support.ts'
import { directCluster, fastFolder, temporaryFolder } from './embedded-support.ts'
import { type Image, PoweredFolder, printOfImage, writeImage } from './power-model.ts'
import { checkLeft, leftIn, makeTopics, nothingTold, rounds, small, type Told } from './power-workload.ts'
import { batchOf, outsider, Producer } from './support.ts'

/** Notes how long each file was, by its inode, when it was forced to the disk last. */
function watchSyncs(t: TestContext): ReadonlyMap<number, number> {
  const synced = new Map<number, number>()
  const { fdatasyncSync, writeFileSync: writeFile } = fs
  t.after(() => {
    Object.assign(fs, { fdatasyncSync, writeFileSync: writeFile })
    syncBuiltinESMExports()
  })
  fs.fdatasyncSync = (descriptor) => {
    fdatasyncSync(descriptor)
    const { ino, size } = fs.fstatSync(descriptor)
    synced.set(ino, size)
  }
  fs.writeFileSync = (path, data, options) => {
    writeFile(path, data, options)
    const flushes = typeof options === 'object' && options?.flush === true
    if (flushes && typeof path === 'string') synced.set(statSync(path).ino, statSync(path).size)
  }
  syncBuiltinESMExports()
  return synced
}

test('with fsync all that was acknowledged is there after a power cut, in transactions and outside of them', async (t) => {
  const at = temporaryFolder(t)
  const synced = watchSyncs(t)
  let syncedThen: ReadonlyMap<number, number> = new Map()
  const copied = (): void => {
    syncedThen = new Map(synced)
  }
  const { folder, earlier } = await fill(at, 9, 'suddenly', { fsync: true, copied })
  const copy = join(at, 'copy')
  cpSync(folder, copy, { recursive: true })
  const expected = await contentOf(copy)
  const kept = new Map(filesOf(folder).map((file) => [file, syncedThen.get(statSync(join(at, 'live', file)).ino) ?? 0]))
  const random = new Random(7)
  let cuts = 0
  for (let i = 0; i < 40; i++) {
    rmSync(copy, { recursive: true })
    cpSync(folder, copy, { recursive: true })
    for (const [file, least] of kept) {
      if (file === 'owner' || file === 'lock') continue
      const { size } = statSync(join(folder, file))
      if (file === 'journal.end') {
        // Written in place: any of its contents may have come to the disk.
        const older = join(earlier.at(-1) as string, file)
        if (random.next() < 0.5) writeFileSync(join(copy, file), readFileSync(older))
        continue
      }
      const left = least + Math.floor(random.next() * (size - least + 1))
      if (left < size) cuts++
      truncateSync(join(copy, file), left)
    }
    assert.deepEqual(await contentOf(copy), expected)
  }
  assert.ok(cuts > 40, `${cuts} files were cut`)
})

type Noted = (step: string) => void

test('with fsync whatever step was the last before a power cut, nothing is refused, lost, doubled or half done', async (t) => {
  const at = fastFolder(t)
  const told = nothingTold()
  const seen = new Map<string, { readonly what: string; readonly image: Image; readonly told: Map<string, Told> }>()
  const steps: string[] = []
  const note = (folder: PoweredFolder, step: string): void => {
    steps.push(step)
    for (const [what, image] of folder.images()) {
      const print = printOfImage(image)
      const known = seen.get(print) ?? { what: `step ${steps.length}, ${step}: ${what}`, image, told: new Map() }
      seen.set(print, known)
      known.told.set(JSON.stringify(told), { ...told })
    }
  }
  // The process is killed before power goes: when the second transaction came as far as the journal, and at the end.
  const killed: Array<{ readonly folder: PoweredFolder; readonly told: Told; readonly rounds: number }> = []
  const kill = (folder: PoweredFolder, more: number): void => {
    const path = join(at, `killed-${killed.length}`)
    killed.push({ folder: folder.copyTo(path), told: { ...told }, rounds: more })
  }
  const run = async (folder: PoweredFolder, work: (client: EmbeddedClient) => Promise<void>, noteMore?: Noted) => {
    folder.watch((step) => {
      note(folder, step)
      noteMore?.(step)
    })
    try {
      const storage = openDiskStorage(folder.root, { fsync: true })
      const { client, cluster } = directCluster({ ...small, storage })
      await work(client)
      cluster.close()
    } finally {
      folder.unwatch()
    }
  }
  const first = new PoweredFolder(join(at, 'first'))
  const makeAndFill = async (client: EmbeddedClient): Promise<void> => {
    await makeTopics(client, told)
    await rounds(client, told, 3)
    kill(first, 1)
  }
  await run(first, makeAndFill, (step) => {
    if (step === 'writeSync journal' && told.committed === 1 && told.begun === 2) kill(first, 0)
  })
  assert.ok(killed.length > 3, `killed ${killed.length} times`)
  for (const { folder, told: then, rounds: more } of killed) {
    Object.assign(told, then)
    await run(folder, (client) => rounds(client, told, more))
  }
  t.diagnostic(`${steps.length} steps, ${seen.size} images`)
  assert.ok(seen.size > 250, `${seen.size} images`)
  // Compactions, retention and a topic that goes.
  const deletions = steps.filter((step) => /^rmSync .*\.log$/.test(step)).length
  assert.ok(steps.some((step) => /^renameSync .*\.log\.new$/.test(step)) && deletions > 5, `${deletions} deletions`)
  const folder = join(at, 'left')
  for (const { what, image, told: toldThen } of seen.values()) {
    writeImage(folder, image)
    try {
      const left = await leftIn(folder)
      for (const each of toldThen.values()) checkLeft(left, each)
    } catch (cause) {
      throw new Error(what, { cause })
    }
  }
})

test('with fsync damage to what was acknowledged is refused also behind a power cut, though what follows it may be broken', async (t) => {
  const live = new PoweredFolder(join(temporaryFolder(t), 'live'))
  live.watch(() => undefined)
  try {
    const { client, cluster } = directCluster({ storage: openDiskStorage(live.root, { fsync: true }) })
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    const send = async (value: string): Promise<unknown> =>
      client.produce({
        transactionalId: null,
        batches: [{ topic: 'log', partition: 0, records: batchOf([value]) }],
      })
    for (const value of ['a', 'b', 'c']) await send(value)
    const [[, image] = assert.fail()] = live.images()
    const [path = ''] = [...image.keys()].filter((each) => each.endsWith('.log'))
    const content = image.get(path) as Buffer
    const folder = join(live.root, '..', 'left')
    for (let at = 0; at < content.length; at += 7) {
      const harmed = Buffer.from(content)
      harmed[at] = (harmed[at] as number) ^ 4
      writeImage(folder, new Map([...image, [path, harmed]]))
      const storage = openDiskStorage(folder, { fsync: true })
      assert.throws(() => directCluster({ storage }), { code: 'BROKER_FILES_DAMAGED' }, `a bit at ${at}`)
      storage.close()
    }
    cluster.close()
  } finally {
    live.unwatch()
  }
})

describe('a disk that does not take what it was to take', () => {
  const topic = 'log'
  const batches = [{ topic, partition: 0, records: batchOf(['lost']) }]
  const writes: ReadonlyArray<readonly [what: string, write: (client: EmbeddedClient, producer: Producer) => unknown]> =
    [
      ['a record outside of transactions', (client) => client.produce({ transactionalId: null, batches })],
      ['a line that is fed', (client) => client.produceFed(batches, { topic, file: 'file', lines: 1 })],
      [
        "a group's offset",
        (client) => client.commitOffsets(outsider('group'), [{ topic, partition: 0, offset: 1, metadata: '' }]),
      ],
      ['a new topic', (client) => client.createTopics([{ topic: 'new', partitions: 1 }])],
      ['the deletion of a topic', (client) => client.deleteTopics([topic])],
      ['the end of a transaction', (_, producer) => producer.end(true)],
    ]

  for (const [what, write] of writes) {
    test(`ends the broker: ${what} is not acknowledged, and not when it is tried again`, async (t) => {
      const folder = temporaryFolder(t)
      const { fdatasyncSync } = fs
      let fails = false
      t.after(() => {
        Object.assign(fs, { fdatasyncSync })
        syncBuiltinESMExports()
      })
      fs.fdatasyncSync = (descriptor) => {
        if (!fails) return fdatasyncSync(descriptor)
        // As Linux does: the next one succeeds, and what this one was about is lost.
        fails = false
        throw new Error('EIO: i/o error, fdatasync')
      }
      syncBuiltinESMExports()
      const { client, cluster } = directCluster({ storage: openDiskStorage(folder, { fsync: true }) })
      await client.createTopics([{ topic, partitions: 1 }])
      const producer = await Producer.start(client, 'tx')
      await producer.send(topic, ['in a transaction'])
      fails = true
      const refusal = {
        code: 'KAFKA_STORAGE_ERROR',
        errorClass: 'config',
        message: /stopped, because \S+ could not be forced to the disk: EIO.*start the process again/,
      }
      for (let i = 0; i < 2; i++) await assert.rejects(async () => write(client, producer), refusal)
      await assert.rejects(client.createTopics([{ topic: 'another', partitions: 1 }]), refusal)
      cluster.close()
      // The folder is free again, and nothing in it is taken for damaged.
      const again = directCluster({ storage: openDiskStorage(folder, { fsync: true }) })
      await Producer.start(again.client, 'tx')
      again.cluster.close()
    })
  }
})
