import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreWriter } from '../../../src/lanes/stores/store-writer.ts'
import type { Checkpoint, StoreBackend } from '../../../src/state/contract.ts'
import { DiskBackend } from '../../simulation/durable-backends.ts'

const checkpoint: Checkpoint = { changelogOffset: 1, commitId: '1.1', topicId: 'topic' }

function writerOf(options: { bytes: number; intervalMs?: number; rowsPerStep?: number }, partitions: number) {
  const writes: number[] = []
  let held = 0
  const writer = new StoreWriter(
    { intervalMs: 1000, rowsPerStep: 10, ...options },
    {
      together: (partition, write) => {
        writes.push(partition)
        write()
      },
      holding: (bytes) => {
        held = bytes
      },
      passed: () => undefined,
    },
  )
  const disks = Array.from({ length: partitions }, () => new DiskBackend())
  const backends = disks.map((disk, partition) => writer.open('store', partition, disk))
  const put = (partition: number, rows: number): void => {
    const changes = Array.from({ length: rows }, (_, i) => [Buffer.from(`k${i}`), Buffer.from('v')] as const)
    ;(backends[partition] as StoreBackend).apply(changes, checkpoint)
  }
  return { writer, writes, disks, put, held: () => held }
}

test('what is held long enough is written, the partitions one after the other', () => {
  const { writer, writes, put, held } = writerOf({ bytes: 1e6 }, 2)
  put(0, 3)
  put(1, 3)
  writer.notice(100)
  assert.ok(held() > 0)
  assert.equal(writer.step(200), false)
  assert.deepEqual(writes, [])
  assert.equal(writer.nextAt, 1100)
  writer.step(1100)
  assert.deepEqual(writes, [0])
  assert.equal(writer.step(1101), false)
  assert.equal(writer.nextAt, 1600, 'half an interval later')
  writer.step(1600)
  assert.deepEqual(writes, [0, 1])
  assert.equal(held(), 0)
  assert.equal(writer.nextAt, Number.POSITIVE_INFINITY)
})

test('what takes too much memory is written at once, the largest first, in steps', () => {
  const { writer, writes, put, disks } = writerOf({ bytes: 5000 }, 2)
  put(0, 5)
  put(1, 25)
  writer.notice(0)
  assert.equal(writer.step(0), true)
  assert.equal(disks[1]?.entries(), 10)
  assert.equal(writer.step(0), true)
  assert.equal(writer.step(0), false)
  assert.equal(disks[1]?.entries(), 25)
  assert.deepEqual(writes, [1, 1, 1])
  assert.equal(writer.step(0), false, 'what is left takes little')
})

test('room is made at once, for as much as may be held, where nothing comes between', () => {
  const { writer, disks, put, held } = writerOf({ bytes: 5000 }, 2)
  put(0, 5)
  put(1, 25)
  writer.notice(0)
  assert.ok(held() > 3750)
  writer.makeRoom(0)
  const written = disks[1]?.entries() ?? 0
  assert.ok(written >= 10, 'of the largest')
  assert.equal(disks[0]?.entries(), 0, 'what takes little stays')
  writer.makeRoom(0)
  assert.equal(disks[1]?.entries(), written, 'there is room')
})

test('without memory for it every commit is written at once', () => {
  const { writer, put, disks } = writerOf({ bytes: 0 }, 1)
  put(0, 25)
  writer.notice(0)
  assert.equal(disks[0]?.entries(), 25)
  assert.deepEqual(disks[0]?.checkpoint(), checkpoint)
})

test('a clock that is set back delays nothing for longer than the interval', () => {
  const { writer, writes, put } = writerOf({ bytes: 1e6 }, 1)
  put(0, 1)
  writer.notice(1_000_000)
  put(0, 2)
  writer.notice(0)
  assert.ok(writer.nextAt <= 1000)
  writer.step(1000)
  assert.deepEqual(writes, [0])
})
