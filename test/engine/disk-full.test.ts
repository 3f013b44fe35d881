/** A disk without room under durable stores: a small file system of its own is filled, and enlarged while the engine waits. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HealthReport } from '../../src/http/health.ts'
import { eventually } from '../support/millrace.ts'
import { noMount, remount, smallDisks } from '../support/small-disk.ts'
import { lastByKey, TestEngine } from './support/engine.ts'
import { flows, found, web } from './support/why.ts'

const smallDisk = smallDisks()
const text = 'x'.repeat(600)
const records = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => ({ key: `key-${(from + i) % 12_000}`, value: text }))

/** In pieces that a broker takes. */
async function feed(engine: TestEngine, from: number, to: number): Promise<void> {
  for (let at = from; at < to; at += 1000) await engine.put('in', records(at, Math.min(to, at + 1000)))
}

describe('a disk that is full under the embedded broker', () => {
  test('holds the engine until there is room, which restarts nothing, and no result is lost', async (t) => {
    const dir = smallDisk('broker', 'size=3m')
    if (dir === undefined) return t.skip(noMount)
    const engine = await TestEngine.start(t, 'large-rows', {
      'broker.bootstrap-servers': `embedded:${dir}`,
      // Less than the disk is full for: a transaction must not end meanwhile for its age.
      'producer.transaction.timeout.ms': 2000,
      ...web,
    })
    await engine.reaches('RUNNING')
    const fed = feed(engine, 0, 12_000)
    const { first } = await found(engine, 'BROKER_DISK_FULL')
    assert.match(first.sentence, /^The disk of the embedded broker has no room for .+ENOSPC.+ waits, and nothing of it/)
    assert.ok(first.next.includes(`the folder ${dir} is on`), first.next)
    const get = async (path: string) => {
      const answer = await fetch(`${engine.runtime.url}${path}`)
      return { status: answer.status, body: (await answer.json()) as HealthReport }
    }
    const ready = await get('/health/ready')
    const broker = ready.body.components.find(({ name }) => name === 'broker')
    assert.deepEqual([ready.status, broker?.status, broker?.details.code], [503, 'DOWN', 'BROKER_DISK_FULL'])
    assert.equal((await get('/health/live')).status, 200)
    await sleep(5000)
    assert.equal(engine.state, 'RUNNING')
    remount(dir, 'size=64m')
    await fed
    await engine.idle()
    const counts = lastByKey(await engine.read('counts'))
    assert.equal(Object.keys(counts).length, 12_000)
    for (const [key, count] of Object.entries(counts)) assert.equal(count, 1, key)
    assert.deepEqual(engine.runtime.view.barriers()?.restarts.causes, [])
    await flows(engine)
    assert.equal((await get('/health/ready')).status, 200)
  })
})

describe('a disk that is full under the stores', () => {
  for (const [how, buffer] of [
    ['with every commit', 0],
    ['behind the commits', 2_000_000],
  ] as const) {
    test(`holds the engine while it lasts, stores written ${how}, and no result is lost`, async (t) => {
      const dir = smallDisk(`disk-${buffer}`, 'size=3m')
      if (dir === undefined) return t.skip(noMount)
      const engine = await TestEngine.start(t, 'large-rows', {
        'engine.state.dir': dir,
        'engine.state.store': 'lmdb',
        'engine.state.write-buffer-bytes': buffer,
        'engine.state.write-interval-ms': 500,
        ...web,
      })
      await engine.reaches('RUNNING')
      await feed(engine, 0, 9000)
      await eventually('it says that the disk is full', () => engine.runtime.view.diskFull() !== null)
      const sentence = engine.runtime.view.diskFull() as string
      const { first } = await found(engine, 'STORE_DISK_FULL')
      assert.ok(first.sentence.includes(dir), first.sentence)
      assert.ok(first.place.store !== undefined && first.sentence.includes(first.place.store))
      assert.match(sentence, /^The disk has no room for the store .+ in .+partition-\d/)
      assert.ok(sentence.includes(dir), sentence)
      await feed(engine, 9000, 12_000)
      await sleep(3000)
      assert.equal(engine.state, 'RUNNING')
      // A little room may be left for one partition where there is none for another.
      await eventually('the disk is full still', () => engine.runtime.view.diskFull() !== null)
      assert.ok((await engine.read('counts')).length < 12_000, 'more was let in than there is room for')
      remount(dir, 'size=64m')
      await feed(engine, 12_000, 24_000)
      await engine.idle()
      await eventually('there is room', () => engine.runtime.view.diskFull() === null)
      const counts = lastByKey(await engine.read('counts'))
      assert.equal(Object.keys(counts).length, 12_000)
      for (const [key, count] of Object.entries(counts)) assert.equal(count, 2, key)
      assert.equal(engine.runtime.view.barriers()?.restarts.used, 0)
      assert.equal(engine.log.filter(({ message }) => /has no room/.test(message)).length > 0, true)
      await flows(engine)
    })
  }

  test('is waited for by a start, too', async (t) => {
    const dir = smallDisk('disk-start', 'size=1m')
    if (dir === undefined) return t.skip(noMount)
    writeFileSync(join(dir, 'ballast'), Buffer.alloc(1024 * 1024 - 40_000))
    const engine = await TestEngine.start(t, 'large-rows', { 'engine.state.dir': dir, 'engine.state.store': 'lmdb' })
    await feed(engine, 0, 3000)
    await eventually('it says that the disk is full', () => engine.runtime.view.diskFull() !== null)
    remount(dir, 'size=64m')
    await engine.reaches('RUNNING')
    await engine.idle()
    assert.equal(Object.keys(lastByKey(await engine.read('counts'))).length, 3000)
  })
})
