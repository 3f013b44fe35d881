/** Functions below a table that is told once per commit: their order is that of the rows, whichever of them answers first. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, test } from 'node:test'
import { type KeyValueStore, keyValueStore, serdes, session, tumbling } from '../../../src/index.ts'
import { driverOf, feed, number, numbers, perCommit, told } from './per-commit.ts'

describe('functions below a table told once per commit', () => {
  test('are called for windows of one key one after the other', async () => {
    const driver = await driverOf((topology) => {
      const sums = keyValueStore<string, number>('sums', { key: serdes.string, ...number })
      topology.addStore(sums)
      numbers(topology)
        .groupByKey()
        .windowedBy(tumbling('10s'))
        .count(perCommit)
        .toStream()
        .process<string, number>(
          (context) => {
            const store = context.store(sums)
            return async (_, { key }) => {
              const old = store.get(key) ?? 0
              await sleep(2)
              store.put(key, old + 1)
            }
          },
          { stores: [sums] },
        )
    })
    await feed(driver, ['a', 1, 1000], ['a', 1, 11_000], ['b', 1, 12_000], ['a', 1, 21_000])
    await driver.commit()
    const store = driver.store<KeyValueStore<string, number>>('sums')
    assert.deepEqual([store.get('a'), store.get('b')], [3, 1])
  })

  test('tell the end of a session before the one that it went into, however long they take', async () => {
    const driver = await driverOf((topology) =>
      numbers(topology)
        .groupByKey()
        .windowedBy(session('5s'))
        .count(perCommit)
        .toStream()
        .mapValues(async (count) => {
          await sleep(count === null ? 20 : 1)
          return count
        })
        .selectKey((_, { key }) => key)
        .to('out', { key: serdes.string }),
    )
    await feed(driver, ['a', 1, 1000])
    await driver.commit()
    told(driver)
    await feed(driver, ['a', 1, 2000])
    await driver.commit()
    assert.deepEqual(told(driver), ['a null @1000', 'a 2 @2000'])
  })

  for (const lanes of [1, 3])
    test(`give a group of all keys their rows in the order in which these changed first: ${lanes} lanes`, async () => {
      const slow = new Set(['a', 'c'])
      const driver = await driverOf(
        (topology) =>
          numbers(topology)
            .groupByKey()
            .count(perCommit)
            .toStream()
            .mapValues(async (count, key) => {
              await sleep(slow.has(key) ? 20 : 1)
              return `${key}${count}`
            })
            .groupBy(() => 'all')
            .reduce((all, each) => `${all} ${each}`)
            .toStream()
            .to('out'),
        { lanes },
      )
      await feed(driver, ['a', 1, 1000], ['b', 1, 1000], ['c', 1, 1000], ['d', 1, 1000], ['b', 1, 1000])
      await driver.commit()
      assert.match(told(driver).at(-1) as string, /"a1 b2 c1 d1"/)
    })

  test('are no more at once than a lane may have under way', async () => {
    let [atWork, most] = [0, 0]
    const areFive = Promise.withResolvers<void>()
    const driver = await driverOf(
      (topology) =>
        numbers(topology)
          .groupByKey()
          .count(perCommit)
          .toStream()
          .process<string, number>((context) => async (count, key) => {
            most = Math.max(most, ++atWork)
            if (atWork === 5) areFive.resolve()
            await areFive.promise
            await sleep(1)
            atWork--
            await context.forward(key, count)
          })
          .to('out'),
      { config: { 'lane.max-in-flight': 5 } },
    )
    await feed(driver, ...Array.from({ length: 40 }, (_, i): [string, number, number] => [`k${i}`, 1, i]))
    await driver.commit()
    assert.equal(most, 5)
    assert.equal(told(driver).length, 40)
  })

  test('leave in a dead letter the row that was told', async () => {
    const driver = await driverOf(
      (topology) =>
        numbers(topology)
          .groupByKey()
          .count(perCommit)
          .mapValues((count) => {
            if (count === 2) throw new Error('no two')
            return count
          })
          .toStream()
          .to('out'),
      { config: { 'errors.processing': 'dead-letter' } },
    )
    await feed(driver, ['a', 1, 1], ['a', 1, 2], ['b', 1, 3])
    await driver.commit()
    assert.deepEqual(told(driver), ['b 1 @3'])
    const letters = driver.output('test-dead-letters', number).readAll()
    assert.deepEqual(
      letters.map(({ value }) => value),
      [2],
    )
  })
})

test('a session of one instant that takes in another record is told as what it was before as well', async () => {
  for (const options of [{}, perCommit]) {
    const driver = await driverOf((topology) =>
      numbers(topology)
        .groupByKey()
        .windowedBy(session('5s'))
        .count(options)
        .groupBy((count) => ['all', count] as const, { key: serdes.string, ...number })
        .aggregate(
          () => 0,
          (sum, count) => sum + count,
          (sum, count) => sum - count,
        )
        .toStream()
        .to('out'),
    )
    await feed(driver, ['a', 1, 1000], ['a', 1, 1000], ['a', 1, 1000])
    await driver.commit()
    // One of the record with which the driver began.
    assert.equal(told(driver).at(-1), 'all 4 @1000')
  }
})
