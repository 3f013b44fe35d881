/** A disk without room under the embedded broker: what is refused may be tried again, and what was decided is done later. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { NoRoomError } from '../../../src/broker/embedded/core/storage.ts'
import { openDiskStorage } from '../../../src/broker/embedded/disk-storage.ts'
import type { EmbeddedClient } from '../../../src/broker/embedded/embedded-client.ts'
import { startEmbeddedBroker } from '../../../src/broker/embedded/start.ts'
import { BrokerError, type ProducedPartition } from '../../../src/broker/port.ts'
import { eventually } from '../../support/millrace.ts'
import { noMount, remount, smallDisks } from '../../support/small-disk.ts'
import { directCluster, fastFolder } from './embedded-support.ts'
import { batchOf, outsider, Producer, refused, valuesOf } from './support.ts'
import { checkAfter, type Told, WatchedStorage, workload } from './watched-storage.ts'

const mount = smallDisks()
const segmentBytes = 400

/** Asks again for as long as there is no room. */
function patient(client: EmbeddedClient): EmbeddedClient {
  return new Proxy(client, {
    get: (target, name) => {
      const method = Reflect.get(target, name, target) as (...args: unknown[]) => Promise<unknown>
      if (typeof method !== 'function') return method
      return async (...args: unknown[]) => {
        for (let attempts = 1; ; attempts++) {
          try {
            return await method.apply(target, args)
          } catch (error) {
            if (!(error instanceof NoRoomError) || attempts > 5) throw error
          }
        }
      }
    },
  })
}

describe('a disk that is full', () => {
  for (const times of [1, 3]) {
    test(`whichever write has no room, ${times} times over: tried again it is done, once`, async (t) => {
      let refusals = 0
      for (let writes = 0; ; writes++) {
        const folder = fastFolder(t)
        let left = writes + times
        const storage = new WatchedStorage(openDiskStorage(folder, { fsync: false }), () => {
          if (left > 0 && left-- <= times) throw new NoRoomError('file', new Error('ENOSPC'))
        })
        const { client, cluster } = directCluster({ storage, segmentBytes })
        const told: Told = { committed: 0, begun: 0, fedLines: 0, finished: false }
        await workload(patient(client), told)
        assert.deepEqual([told.finished, told.committed, told.fedLines], [true, 8, 8])
        cluster.close()
        await checkAfter(folder, told)
        if (left > 0) break
        refusals++
      }
      assert.ok(refusals > 80, `${refusals} moments`)
    })
  }

  test('whichever write had no room when the process ended: what was acknowledged is there, nothing else is', async (t) => {
    for (let writes = 0; ; writes++) {
      const folder = fastFolder(t)
      let left = writes
      const storage = new WatchedStorage(openDiskStorage(folder, { fsync: false }), () => {
        if (left-- <= 0) throw new NoRoomError('file', new Error('ENOSPC'))
      })
      const { client, cluster } = directCluster({ storage, segmentBytes })
      const told: Told = { committed: 0, begun: 0, fedLines: 0, finished: false }
      try {
        await workload(client, told)
      } catch (error) {
        assert.ok(error instanceof NoRoomError, String(error))
      }
      cluster.close()
      await checkAfter(folder, told)
      if (told.finished) break
    }
  })

  test('what an attempt has stored of a call is not stored again', async (t) => {
    let full = false
    const storage = new WatchedStorage(openDiskStorage(fastFolder(t), { fsync: false }), (half) => {
      if (full && half !== undefined) throw new NoRoomError('file', new Error('ENOSPC'))
      full = half !== undefined
    })
    const { client, cluster } = directCluster({ storage })
    await client.createTopics([{ topic: 'log', partitions: 2 }])
    const batches = [0, 1].map((partition) => ({ topic: 'log', partition, records: batchOf(['a']) }))
    const done: ProducedPartition[] = []
    assert.throws(() => cluster.produce({ transactionalId: null, batches }, done), NoRoomError)
    assert.equal(done.length, 1)
    full = false
    assert.equal(cluster.produce({ transactionalId: null, batches }, done).length, 2)
    const ends = await client.listOffsets(batches, 'latest')
    assert.deepEqual(
      ends.map(({ offset }) => offset),
      [1, 1],
    )
    cluster.close()
  })

  test('no transaction ends for its age while a write waits, and one that could not be ended is not looked at all the time', async (t) => {
    let full = false
    const storage = new WatchedStorage(openDiskStorage(fastFolder(t), { fsync: false }), () => {
      if (full) throw new NoRoomError('file', new Error('ENOSPC'))
    })
    const { client, cluster, clock } = directCluster({ storage })
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    const producer = await Producer.start(client, 'tx')
    await producer.send('log', ['a'])
    full = true
    await clock.advance(16 * 60_000)
    cluster.tick()
    assert.ok(cluster.nextDeadline() > clock.monotonic(), 'it is due at once')
    await clock.advance(2000)
    await refused(client.commitOffsets(outsider('g'), []), 'KAFKA_STORAGE_ERROR')
    full = false
    cluster.tick()
    await producer.end(true)
    assert.deepEqual(await valuesOf(client, 'log'), ['a'])
    cluster.close()
  })

  test('is waited for by calls, in their order, and told; a feed is refused meanwhile', async (t) => {
    const folder = mount('broker', 'size=1m')
    if (folder === undefined) return t.skip(noMount)
    const broker = await startEmbeddedBroker({ folder, partitions: 1 })
    const client = broker.client()
    await client.createTopics([{ topic: 'log', partitions: 1 }])
    const producer = await Producer.start(client, 'tx')
    const text = 'x'.repeat(100_000)
    const sent = Array.from({ length: 12 }, (_, i) => producer.send('log', [`${i} ${text}`]))
    await eventually('it says so', () => broker.trouble?.isWaiting === true)
    assert.match(broker.trouble?.sentence ?? '', /has no room for .+broker.+ENOSPC.+: enlarge the volume/)
    const ended = Promise.all(sent).then(() => producer.end(true))
    const fed = client.produceFed([{ topic: 'log', partition: 0, records: batchOf(['fed']) }], {
      topic: 'log',
      file: 'file',
      lines: 1,
    })
    await refused(fed, 'KAFKA_STORAGE_ERROR')
    assert.equal(await Promise.race([ended, sleep(1500, 'waits')]), 'waits')
    assert.equal((await client.topics(null)).length, 1)
    remount(folder, 'size=8m')
    await ended
    await eventually('there is room', () => broker.trouble === null)
    const values = await valuesOf(client, 'log')
    assert.deepEqual(
      values.map((value) => value.split(' ')[0]),
      Array.from({ length: 12 }, (_, i) => `${i}`),
    )
    await broker.close()
    const again = await startEmbeddedBroker({ folder, partitions: 1 })
    assert.deepEqual(await valuesOf(again.client(), 'log'), values)
    await again.close()
  })

  test('a file that cannot be cut back behind a torn write is written to no more', async () => {
    const { OpenFiles } = await import('../../../src/broker/embedded/open-files.ts')
    const files = new OpenFiles(false)
    const isStop = (error: unknown): boolean => error instanceof BrokerError && error.errorClass === 'config'
    assert.throws(() => files.cutBack('/dev/null', 0), isStop)
    assert.throws(() => files.check(), isStop)
    files.closeAll()
  })
})
