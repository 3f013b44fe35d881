/** Several applications on one set of topics: what one writes another reads, each with commits and stores of its own. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Application, serdes, tumbling } from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'
import { appOf, checking, number, type Order, told, totalling, totals, values } from './pipeline.ts'

describe('what one application writes', () => {
  for (const [order, apps] of [
    ['the writer first', [checking, totalling]],
    ['the reader first', [totalling, checking]],
  ] as const) {
    for (const lanes of [1, 3]) {
      test(`is read by another within the same call, and by the test: ${order}, ${lanes} lanes`, async () => {
        const driver = new TopologyTestDriver(apps, { lanes, partitions: lanes })
        const { pipe } = driver.input<string, Order>('orders')
        await pipe('1', { customer: 'ann', amount: 5 })
        await pipe('2', { customer: 'ann', amount: 0 })
        await pipe('3', { customer: 'ann', amount: 7 })
        assert.deepEqual(told(driver.readAllOutputs()), [
          ['amounts', 'ann', 5],
          ['totals', 'ann', 5],
          ['amounts', 'ann', 7],
          ['totals', 'ann', 12],
        ])
      })
    }
  }

  test('stands beside what the test feeds into the same topic', async () => {
    const driver = new TopologyTestDriver([checking, totalling])
    await driver.input<string, number>('amounts').pipe('ann', 1)
    await driver.input<string, Order>('orders').pipe('1', { customer: 'ann', amount: 5 })
    assert.deepEqual(values(driver, 'amounts'), [5])
    assert.deepEqual(values(driver, 'totals'), [1, 6])
  })

  test('comes all the way through many applications, and through tasks between', async () => {
    const step = (n: number): Application =>
      appOf(
        `step-${n}`,
        (topology) => {
          topology
            .stream<string, number>(`topic-${n}`, number)
            .selectKey((value) => `${value % 3}`)
            .groupByKey()
            .reduce((a, b) => a + b)
            .toStream()
            .to(`topic-${n + 1}`, number)
        },
        { 'topology.sub-topology-split': n % 2 === 0 ? 'repartition-topics' : 'in-process' },
      )
    const apps = Array.from({ length: 6 }, (_, n) => step(n)).reverse()
    const driver = new TopologyTestDriver(apps, { partitions: 2, lanes: 2 })
    await driver.input<string, number>('topic-0').pipe('a', 3)
    assert.deepEqual(values(driver, 'topic-6'), [3])
  })

  test('fills a global table of another', async () => {
    const pricing = appOf('pricing', (topology) => {
      topology.stream<string, number>('offers', number).to('prices', number)
    })
    const selling = appOf('selling', (topology) => {
      const prices = topology.globalTable<string, number>('prices', number)
      topology
        .stream<string, string>('sales')
        .join(prices, (product, price) => `${product} at ${price}`, { on: (product) => product })
        .to('sold')
    })
    const driver = new TopologyTestDriver([selling, pricing], { lanes: 2 })
    await driver.input<string, number>('offers').pipe('tea', 3)
    await driver.input<string, string>('sales').pipe('ann', 'tea')
    await driver.input<string, number>('offers').pipe('tea', 4)
    await driver.input<string, string>('sales').pipe('ann', 'tea')
    assert.deepEqual(values(driver, 'sold'), ['tea at 3', 'tea at 4'])
  })

  test('goes round until the applications have nothing left to do', async () => {
    const halving = appOf('halving', (topology) => {
      topology
        .stream<string, number>('whole', number)
        .mapValues((value) => Math.floor(value / 2))
        .to('half')
    })
    const returning = appOf('returning', (topology) => {
      topology
        .stream<string, number>('half', number)
        .filter((value) => value > 0)
        .to('whole')
    })
    const driver = new TopologyTestDriver([halving, returning])
    await driver.input<string, number>('whole').pipe('a', 20)
    assert.deepEqual(told(driver.readAllOutputs()), [
      ['half', 'a', 10],
      ['whole', 'a', 10],
      ['half', 'a', 5],
      ['whole', 'a', 5],
      ['half', 'a', 2],
      ['whole', 'a', 2],
      ['half', 'a', 1],
      ['whole', 'a', 1],
      ['half', 'a', 0],
    ])
  })

  test('is refused where it goes round for ever', async () => {
    const handing = (from: string, to: string): Application =>
      appOf(`from-${from}`, (topology) => topology.stream(from).to(to))
    const driver = new TopologyTestDriver([handing('a', 'b'), handing('b', 'a')])
    await assert.rejects(driver.input('a').pipe('k', 1), {
      code: 'USAGE',
      message: /^The applications from-a, from-b write records to one another without end/,
    })
  })

  test('is found by the pattern of another, under a name that came with a record', async () => {
    const merging = appOf('merging', (topology) => {
      topology.stream<string, string>(/region-.*/, { value: serdes.string }).to('out', { value: serdes.string })
    })
    const routing = appOf('routing', (topology) => {
      topology
        .stream<string, number>('in', number)
        .mapValues((value) => `${value}`)
        .to((_value, key) => `region-${key}`, { value: serdes.string })
    })
    const driver = new TopologyTestDriver([routing, merging])
    await driver.input<string, number>('in').pipe('north', 1)
    await driver.input<string, number>('in').pipe('south', 2)
    assert.deepEqual(told(driver.readAllOutputs()), [
      ['region-north', 'north', '1'],
      ['out', 'north', '1'],
      ['region-south', 'south', '2'],
      ['out', 'south', '2'],
    ])
  })
})

describe('the clock', () => {
  test('is one for all, and event time each application has its own', async () => {
    const perMinute = (id: string, topic: string): Application =>
      appOf(id, (topology) => {
        topology
          .stream(topic)
          .groupByKey()
          .windowedBy(tumbling('1m'), { emit: 'on-close' })
          .count()
          .toStream()
          .to(`${topic}-per-minute`)
        topology
          .scheduled(`${id}-tick`, { every: '10s', emit: ({ count }) => ({ key: id, value: count }) })
          .to(`${id}-ticks`)
      })
    const driver = new TopologyTestDriver([perMinute('one', 'a'), perMinute('two', 'b')], { startAt: 1000 })
    await driver.input('a').pipe('k', 1, { timestamp: 0 })
    await driver.input('b').pipe('k', 1, { timestamp: 0 })
    await driver.input('a').pipe('k', 1, { timestamp: 60_000 })
    assert.deepEqual(values(driver, 'a-per-minute'), [1])
    assert.deepEqual(values(driver, 'b-per-minute'), [])
    await driver.advanceWallClock('20s')
    assert.equal(driver.now(), 21_000)
    assert.equal(values(driver, 'one-ticks').length, 2)
    assert.equal(values(driver, 'two-ticks').length, 2)
  })

  test('lets what one writes at an instant be read at that instant', async () => {
    const ticking = appOf('ticking', (topology) => {
      topology
        .stream<string, string>('in')
        .process<string, string>((context) => {
          context.schedule('10s', 'wall-clock', (at) => context.forward('wall', `${at}`))
          return () => undefined
        })
        .to('ticks')
    })
    const stamping = appOf('stamping', (topology) => {
      topology
        .stream<string, string>('ticks')
        .process<string, string>(
          (context) => (value, key) => context.forward(key, `${value} at ${context.wallClock()}`),
        )
        .to('out')
    })
    const driver = new TopologyTestDriver([stamping, ticking], {
      commits: 'interval',
      config: { 'commit-barrier.interval-ms': '1s' },
    })
    await driver.input<string, string>('in').pipe('a', 'x')
    await driver.advanceWallClock('25s')
    assert.deepEqual(values(driver, 'out'), ['10000 at 11000', '20000 at 21000'])
  })
})

describe('commits', () => {
  test('of all are at one moment: what one reads by it belongs to the next', async () => {
    for (const apps of [
      [checking, totalling],
      [totalling, checking],
    ]) {
      const driver = new TopologyTestDriver(apps, {
        commits: 'interval',
        config: { 'commit-barrier.interval-ms': '9s' },
      })
      const { pipe } = driver.input<string, Order>('orders')
      // The first record is committed at once.
      await pipe('1', { customer: 'bob', amount: 1 })
      await driver.commit()
      driver.readAllOutputs()
      await pipe('2', { customer: 'ann', amount: 5 })
      assert.equal(totals(driver).get('ann'), undefined)
      await driver.commit()
      assert.equal(totals(driver).get('ann')?.value, 5)
      assert.deepEqual(told(driver.readAllOutputs()), [['amounts', 'ann', 5]])
      await driver.commit()
      assert.deepEqual(told(driver.readAllOutputs()), [['totals', 'ann', 5]])
    }
  })

  test('come in the time of each application', async () => {
    const driver = new TopologyTestDriver([checking, totalling], {
      commits: 'interval',
      config: { 'commit-barrier.interval-ms': '1s', 'commit-barrier.idle-interval-ms': '1s' },
      applications: {
        totalling: { config: { 'commit-barrier.interval-ms': '5s', 'commit-barrier.idle-interval-ms': '5s' } },
      },
    })
    const { pipe } = driver.input<string, Order>('orders')
    await pipe('1', { customer: 'bob', amount: 1 })
    await driver.commit()
    driver.readAllOutputs()
    await pipe('2', { customer: 'ann', amount: 5 })
    await driver.advanceWallClock('2s')
    assert.deepEqual(told(driver.readAllOutputs()), [['amounts', 'ann', 5]])
    await driver.advanceWallClock('4s')
    assert.deepEqual(told(driver.readAllOutputs()), [['totals', 'ann', 5]])
  })
})

describe('restarts', () => {
  test('of one leave the others as they are, and of all bring all back', async () => {
    const driver = new TopologyTestDriver([checking, totalling], {
      commits: 'interval',
      config: { 'commit-barrier.interval-ms': '9s' },
    })
    const { pipe } = driver.input<string, Order>('orders')
    await pipe('1', { customer: 'ann', amount: 5 })
    await driver.commit()
    assert.equal(totals(driver).get('ann')?.value, 5)
    await driver.application('totalling').restart()
    assert.equal(totals(driver).get('ann')?.value, 5)
    await pipe('2', { customer: 'ann', amount: 7 })
    await driver.restart()
    await driver.commit()
    await driver.commit()
    assert.deepEqual(values(driver, 'amounts'), [5, 7])
    assert.deepEqual(values(driver, 'totals'), [5, 12])
  })
})
