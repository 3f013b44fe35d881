/** One of several applications: it fails alone, and a test says which one it means where that is open. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Application, type KeyValueStore, serdes, tumbling } from '../../../src/index.ts'
import { type DriverLogLine, TopologyTestDriver } from '../../../src/testing/index.ts'
import { appOf, checking, number, type Order, strict, totalling, totals, usage, values } from './pipeline.ts'

describe('the failure of one', () => {
  test('leaves the others at work; each call says so until it is started again', async () => {
    const driver = new TopologyTestDriver([strict('first', 'in', 'middle'), strict('second', 'in', 'out')], {
      applications: { first: { config: { 'errors.processing': 'skip' } } },
    })
    const { pipe } = driver.input<string, number>('in')
    await assert.rejects(pipe('a', 13), { code: 'PROCESSING_FAILED', message: /^The application second has failed: / })
    await assert.rejects(
      pipe('a', 1),
      usage(/^The application second has failed .*application\('second'\)\.restart\(\)/),
    )
    await assert.rejects(driver.advanceWallClock('1s'), usage(/^The application second has failed/))
    assert.deepEqual(values(driver, 'middle'), [1])
    assert.deepEqual(values(driver, 'out'), [])
    // What it cannot take still lies there.
    await assert.rejects(driver.application('second').restart(), { code: 'PROCESSING_FAILED' })
    await assert.rejects(driver.application('first').restart(), usage(/^The application second has failed/))
  })

  test('is told of each, and where nobody is left nothing is done', async () => {
    const driver = new TopologyTestDriver([strict('first', 'in', 'middle'), strict('second', 'middle', 'out')])
    const { pipe } = driver.input<string, number>('middle')
    await assert.rejects(pipe('a', 13), /second has failed/)
    await assert.rejects(driver.input<string, number>('in').pipe('a', 13), /first has failed: /)
    await assert.rejects(driver.input<string, number>('in').pipe('a', 1), usage(/first has failed/))
    await assert.rejects(driver.restart(), { code: 'PROCESSING_FAILED' })
  })

  test('of an application that has come right is over with its restart', async () => {
    let broken = true
    const mending = appOf('mending', (topology) => {
      topology
        .stream<string, number>('amounts', number)
        .mapValues((value) => {
          if (broken) throw new Error('the other side is down')
          return value
        })
        .to('out')
    })
    const driver = new TopologyTestDriver([checking, mending])
    const { pipe } = driver.input<string, Order>('orders')
    await assert.rejects(pipe('1', { customer: 'ann', amount: 5 }), { code: 'PROCESSING_FAILED' })
    await assert.rejects(pipe('2', { customer: 'ann', amount: 6 }), { code: 'USAGE' })
    broken = false
    await driver.application('mending').restart()
    assert.deepEqual(values(driver, 'out'), [5, 6])
    await pipe('3', { customer: 'ann', amount: 7 })
    assert.deepEqual(values(driver, 'out'), [7])
  })
})

describe('who is meant', () => {
  const counting = (id: string, topic: string): Application =>
    appOf(id, (topology) => {
      topology.stream(topic).groupByKey().count({ store: 'counts' }).toStream().to(`${id}-counts`)
    })

  test('is said by the id where several have a store of one name', async () => {
    const driver = new TopologyTestDriver([counting('one', 'a'), counting('two', 'b'), totalling])
    await driver.input('a').pipe('k', 1)
    type Counts = KeyValueStore<string, { value: number }>
    assert.equal(driver.application('one').store<Counts>('counts').get('k')?.value, 1)
    assert.equal(driver.application('two').store<Counts>('counts').get('k'), undefined)
    assert.equal(totals(driver).get('k'), undefined)
    assert.throws(() => driver.store('counts'), usage(/^The applications one, two have a store .*application\('one'\)/))
    assert.throws(() => driver.store('cuonts'), usage(/stores of one: counts; of two: counts; of totalling: totals/))
    assert.throws(() => driver.topology, usage(/application\('one'\)\.topology/))
    assert.throws(
      () => driver.application('three'),
      usage(/no application three \(applications: one, two, totalling\)/),
    )
    assert.throws(() => driver.input('c'), usage(/^None of the applications one, two, totalling reads the topic c/))
    assert.ok(driver.application('one').topology.stores.has('counts'))
  })

  test('stands before what each one says', async () => {
    const late = (id: string): Application =>
      appOf(id, (topology) => {
        topology.stream('clicks').groupByKey().windowedBy(tumbling('10s')).count().toStream().to(`${id}-out`)
      })
    const driver = new TopologyTestDriver([late('one'), late('two'), counting('three', 'clicks')])
    for (const timestamp of [60_000, 0]) await driver.input('clicks').pipe('a', 1, { timestamp })
    assert.deepEqual(
      driver.dropped().map(({ reason }) => reason),
      ['late', 'late'],
    )
    assert.equal(driver.application('one').dropped().length, 1)
    assert.equal(driver.application('three').dropped().length, 0)
    assert.match(driver.explain(), /^one:\nEvent time has come to .*\n[\s\S]*\n\ntwo:\n/)
    assert.equal(driver.explain().endsWith(driver.application('three').explain()), true)
    assert.match(driver.describe(), /^one:\n[\s\S]*\n\nthree:\n/)
    assert.ok(driver.describe().includes(driver.application('two').describe()))
  })

  test('stands before a warning', async () => {
    // A null that a function did not expect is worth a warning.
    const passing = appOf('passing', (topology) => {
      topology
        .stream<string, Order>('in')
        .mapValues(({ amount }) => amount)
        .to('out')
    })
    const driver = new TopologyTestDriver([checking, passing], { config: { 'errors.processing': 'skip' } })
    await driver.input<string, Order>('in').pipe('a', null)
    const [warning, ...more] = driver.application('passing').warnings()
    assert.ok(warning)
    assert.deepEqual(
      driver.warnings(),
      [warning, ...more].map((each) => `passing: ${each}`),
    )
    assert.deepEqual(driver.application('checking').warnings(), [])
  })

  test('is the one that names a topic: its serdes read what is written and write what is read', async () => {
    const driver = new TopologyTestDriver([
      appOf('any', (topology) =>
        topology.stream(/am.*/, { value: serdes.bytes }).to('copies', { value: serdes.bytes }),
      ),
      appOf('other', (topology) =>
        topology.stream('x').to((_value, key) => `${key}`, { value: serdes.bytes as never }),
      ),
      checking,
      totalling,
    ])
    await driver.input('amounts').pipe('ann', 1)
    await driver.input('orders').pipe('1', { customer: 'ann', amount: 5 })
    assert.deepEqual(values(driver, 'totals'), [1, 6])
    assert.deepEqual(values(driver, 'amounts'), [5])
    assert.deepEqual(
      values(driver, 'copies'),
      [Buffer.from('1'), Buffer.from('5')].map((bytes) => new Uint8Array(bytes)),
    )
  })

  test('of two applications with one id is not to be told', () => {
    assert.throws(
      () => new TopologyTestDriver([checking, totalling, checking]),
      usage(/^Two applications have the id checking: [^.]*\.$/),
    )
    assert.throws(() => new TopologyTestDriver([]), usage(/the list of them is empty/))
    const applications = { totaling: {} }
    assert.throws(() => new TopologyTestDriver([checking, totalling], { applications }), usage(/given for totaling/))
  })

  test('is told by who gets the log', async () => {
    const lines: string[] = []
    const saying = (id: string): Application =>
      appOf(id, (topology) => {
        topology
          .stream<string, number>('in', number)
          .mapValues((value, _key, _record, { logger }) => {
            logger.info(`${id} has ${value}`)
            return value
          })
          .to(`${id}-out`)
      })
    const noted = (prefix: string) => (line: DriverLogLine) => void lines.push(`${prefix} ${line.message}`)
    const driver = new TopologyTestDriver([saying('one'), saying('two')], {
      log: noted('all:'),
      applications: { two: { log: noted('two:'), lanes: 2 } },
    })
    await driver.input<string, number>('in').pipe('a', 1)
    assert.deepEqual(lines.sort(), ['all: one has 1', 'two: two has 1'])
  })
})
