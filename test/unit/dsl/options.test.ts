/** An option that there is not is told by the method that was given it, before anything runs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  defineApp,
  hopping,
  keyValueStore,
  serdes,
  session,
  sessionStore,
  sliding,
  tumbling,
  unlimited,
  versionedStore,
  windowStore,
  withRetry,
} from '../../../src/index.ts'

const text = { key: serdes.string, value: serdes.string }

/** As somebody writes it whom no types hold. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any
type Build = (stream: Untyped, topology: Untyped) => unknown

const compiled = (build: Build): unknown =>
  defineApp({
    applicationId: 'options',
    build: (topology) => void build(topology.stream('in', text), topology),
  }).compile()

const same = (value: unknown): unknown => value
const pair = (value: unknown, key: unknown): unknown => [key, value]
const zero = (): number => 0
const other = (t: Untyped): Untyped => t.stream('others', text)
const rows = (t: Untyped): Untyped => t.table('rows', text)
const everywhere = (t: Untyped): Untyped => t.globalTable('everywhere', text)
const grouped = (s: Untyped): Untyped => s.groupByKey()
const windowed = (s: Untyped): Untyped => grouped(s).windowedBy(tumbling('1m'))
const visits = (s: Untyped): Untyped => grouped(s).windowedBy(session('1m'))
const regrouped = (s: Untyped): Untyped => s.toTable().groupBy(pair)
const together = (s: Untyped): Untyped => grouped(s).cogroup(same)
const within = '1m'

/** By what the sentence names: a call with a misspelled option, and the option that is meant. */
const cases: ReadonlyArray<readonly [taker: string, meant: string, given: string, build: Build]> = [
  ['stream', 'watermark', 'watermrk', (_, t) => t.stream('a', { watermrk: {} })],
  ['stream', 'tombstones', 'tombstone', (_, t) => t.stream('a', { tombstone: true })],
  [
    'the watermark of stream',
    'maxOutOfOrderness',
    'maxOutOfOrdernes',
    (_, t) => t.stream('a', { watermark: { maxOutOfOrdernes: '1s' } }),
  ],
  [
    'the alignment of stream',
    'maxDrift',
    'maxDrft',
    (_, t) => t.stream('a', { watermark: { alignment: { group: 'g', maxDrft: '1s' } } }),
  ],
  ['table', 'store', 'stor', (_, t) => t.table('a', { stor: 'x' })],
  [
    'the store of table',
    'historyRetention',
    'historyRetension',
    (_, t) => t.table('a', { store: { historyRetension: 1 } }),
  ],
  ['the watermark of table', 'idleness', 'idlenes', (_, t) => t.table('a', { watermark: { idlenes: '1s' } })],
  ['globalTable', 'store', 'Store', (_, t) => t.globalTable('a', { Store: 'x' })],
  ['globalStore', 'timestamp', 'timestmp', (_, t) => t.globalStore('a', keyValueStore('a'), { timestmp: same })],
  ['scheduled', 'value', 'vlaue', (_, t) => t.scheduled('a', { every: '1s', emit: zero, vlaue: serdes.string })],

  ['filter', 'name', 'nam', (s) => s.filter(same, { nam: 'a' })],
  ['filterNot', 'timeout', 'timout', (s) => s.filterNot(same, { timout: '1s' })],
  ['map', 'value', 'valu', (s) => s.map(pair, { valu: serdes.string })],
  ['mapValues', 'concurrency', 'concurency', (s) => s.mapValues(same, { concurency: 2 })],
  ['the breaker of mapValues', 'after', 'aftr', (s) => s.mapValues(same, { breaker: { aftr: 2 } })],
  ['flatMap', 'key', 'ky', (s) => s.flatMap(pair, { ky: serdes.string })],
  ['flatMapValues', 'value', 'values', (s) => s.flatMapValues(pair, { values: serdes.string })],
  ['selectKey', 'key', 'keys', (s) => s.selectKey(same, { keys: serdes.string })],
  ['peek', 'rate', 'rat', (s) => s.peek(same, { rat: '1/s' })],
  ['foreach', 'breaker', 'braeker', (s) => s.foreach(same, { braeker: {} })],
  ['merge', 'name', 'nmae', (s, t) => s.merge(other(t), { nmae: 'a' })],
  ['split', 'default', 'defalt', (s) => s.split({ a: same }, { defalt: 'b' })],
  ['the default of split', 'name', 'nam', (s) => s.split({ a: same }, { default: { as: 'b', nam: 'c' } })],
  ["the branch 'a' of split", 'name', 'nam', (s) => s.split({ a: { when: same, nam: 'b' } })],
  ['repartition', 'name', 'nam', (s) => s.repartition({ nam: 'a' })],
  ['toTable', 'store', 'stor', (s) => s.toTable({ stor: 'a' })],
  ['the store of toTable', 'ttl', 'tll', (s) => s.toTable({ store: { tll: '1d' } })],
  ['groupByKey', 'order', 'ordr', (s) => s.groupByKey({ ordr: 'arrival' })],
  ['groupBy', 'order', 'oder', (s) => s.groupBy(same, { oder: 'arrival' })],
  ['to', 'value', 'valu', (s) => s.to('b', { valu: serdes.string })],
  ['join with a stream', 'grace', 'grce', (s, t) => s.join(other(t), same, { within, grce: 5 })],
  ['the window of a join', 'before', 'befor', (s, t) => s.join(other(t), same, { within: { befor: 5 } })],
  ['leftJoin with a stream', 'within', 'withn', (s, t) => s.leftJoin(other(t), same, { withn: '1m' })],
  [
    'outerJoin with a stream',
    'storeName',
    'storename',
    (s, t) => s.outerJoin(other(t), same, { within, storename: 'a' }),
  ],
  ['join with a table', 'grace', 'grase', (s, t) => s.join(rows(t), same, { grase: 5 })],
  ['leftJoin with a table', 'order', 'orders', (s, t) => s.leftJoin(rows(t), same, { orders: 'arrival' })],
  ['join with a global table', 'name', 'nam', (s, t) => s.join(everywhere(t), same, { on: same, nam: 'a' })],
  ['leftJoin with a global table', 'name', 'naem', (s, t) => s.leftJoin(everywhere(t), same, { on: same, naem: 'a' })],
  ['process', 'stores', 'store', (s) => s.process(() => same, { store: ['a'] })],
  ['processValues', 'timers', 'timer', (s) => s.processValues(() => same, { timer: true })],

  ['filter', 'emit', 'emits', (s) => s.toTable().filter(same, { emits: 'per-commit' })],
  ['filterNot', 'store', 'sotre', (s) => s.toTable().filterNot(same, { sotre: 'a' })],
  ['mapValues', 'value', 'valeu', (s) => s.toTable().mapValues(same, { valeu: serdes.string })],
  ['the store of mapValues', 'name', 'nam', (s) => s.toTable().mapValues(same, { store: { nam: 'a' } })],
  ['transformValues', 'store', 'stoer', (s) => s.toTable().transformValues(same, { stoer: 'a' })],
  ['toStream', 'key', 'kye', (s) => s.toTable().toStream({ kye: same })],
  ['groupBy', 'value', 'vale', (s) => s.toTable().groupBy(pair, { vale: serdes.string })],
  ['suppress', 'maxRecords', 'maxRecord', (s) => s.toTable().suppress({ until: '1m', maxRecord: 5 })],
  ['join', 'store', 'stre', (s, t) => s.toTable().join(rows(t), same, { stre: 'a' })],
  ['join', 'store', 'stroe', (s, t) => s.toTable().join(rows(t), same, { on: same, stroe: 'a' })],
  ['leftJoin', 'emit', 'emti', (s, t) => s.toTable().leftJoin(rows(t), same, { emti: 'per-commit' })],
  ['leftJoin', 'emit', 'emt', (s, t) => s.toTable().leftJoin(rows(t), same, { on: same, emt: 'per-commit' })],
  ['outerJoin', 'name', 'nme', (s, t) => s.toTable().outerJoin(rows(t), same, { nme: 'a' })],

  ['count', 'store', 'stor', (s) => grouped(s).count({ stor: 'x' })],
  ['the store of count', 'ttl', 'tl', (s) => grouped(s).count({ store: { tl: '1d' } })],
  ['reduce', 'rate', 'rte', (s) => grouped(s).reduce(same, { rte: '1/s' })],
  ['aggregate', 'store', 'stor', (s) => grouped(s).aggregate(zero, same, { stor: 'x' })],
  ['windowedBy', 'emit', 'emitt', (s) => grouped(s).windowedBy(tumbling('1m'), { emitt: 'on-close' })],
  ['count', 'store', 'stor', (s) => windowed(s).count({ stor: 'x' })],
  ['the store of count', 'retention', 'retension', (s) => windowed(s).count({ store: { retension: '1d' } })],
  ['reduce', 'store', 'stor', (s) => windowed(s).reduce(same, { stor: 'x' })],
  ['aggregate', 'store', 'stor', (s) => windowed(s).aggregate(zero, same, { stor: 'x' })],
  ['aggregate', 'store', 'stor', (s) => visits(s).aggregate(zero, same, same, { stor: 'x' })],
  ['count', 'store', 'stor', (s) => regrouped(s).count({ stor: 'x' })],
  ['reduce', 'store', 'stor', (s) => regrouped(s).reduce(same, same, { stor: 'x' })],
  ['aggregate', 'store', 'stor', (s) => regrouped(s).aggregate(zero, same, same, { stor: 'x' })],
  ['aggregate', 'store', 'stor', (s) => together(s).aggregate(zero, { stor: 'x' })],
  ['aggregate', 'emit', 'emits', (s) => together(s).windowedBy(tumbling('1m')).aggregate(zero, { emits: 'x' })],
  ['aggregate', 'name', 'nam', (s) => together(s).windowedBy(session('1m')).aggregate(zero, same, { nam: 'x' })],
]

const misspelled = (options: object): never => options as never

/** What needs no topology. */
const alone: ReadonlyArray<readonly [taker: string, meant: string, given: string, call: () => unknown]> = [
  ['tumbling', 'grace', 'grce', () => tumbling('1h', misspelled({ grce: 5 }))],
  ['hopping', 'grace', 'garce', () => hopping('1h', '1m', misspelled({ garce: 5 }))],
  ['sliding', 'closeAfterIdle', 'closeAfterIdel', () => sliding('1h', misspelled({ closeAfterIdel: 5 }))],
  ['session', 'grace', 'graces', () => session('1h', misspelled({ graces: 5 }))],
  ['unlimited', 'start', 'strat', () => unlimited(misspelled({ strat: 5 }))],
  ['keyValueStore', 'ttl', 'tll', () => keyValueStore('a', misspelled({ tll: '1d' }))],
  ['windowStore', 'windowSize', 'windowsize', () => windowStore('a', misspelled({ retention: 1, windowsize: 1 }))],
  ['sessionStore', 'retention', 'retension', () => sessionStore('a', misspelled({ retension: 1 }))],
  ['versionedStore', 'value', 'valu', () => versionedStore('a', misspelled({ historyRetention: 1, valu: 1 }))],
  ['withRetry', 'attempts', 'atempts', () => withRetry(same, misspelled({ atempts: 3 }))],
]

const refusal = (taker: string, given: string, instead: string) => ({
  code: 'TOPOLOGY_INVALID',
  message: new RegExp(`^${taker} has no option '${given}'; ${instead}`),
})

describe('an option that there is not', () => {
  for (const [taker, meant, given, build] of cases) {
    test(`${given} of ${taker}`, () => {
      assert.throws(() => compiled(build), refusal(taker, given, `did you mean '${meant}'\\?$`))
    })
  }
  for (const [taker, meant, given, call] of alone) {
    test(`${given} of ${taker}`, () => {
      assert.throws(call, refusal(taker, given, `did you mean '${meant}'\\?$`))
    })
  }

  test('is told with those that there are where none is near', () => {
    assert.throws(
      () => compiled((s) => grouped(s).count({ size: 5 })),
      refusal('count', 'size', 'it has name, store, emit$'),
    )
    assert.throws(
      () => compiled((s, t) => s.join(rows(t), same, { within })),
      refusal('join with a table', 'within', 'it has name, .*grace'),
    )
  })

  test('is no matter where it is undefined', () => {
    compiled((s) => s.mapValues(same, { nam: undefined, name: undefined }).to('out', { valu: undefined }))
    tumbling('1h', misspelled({ grce: undefined }))
  })
})

test('a key of another row that is no function is told, instead of a join by equal keys', () => {
  assert.throws(() => compiled((s, t) => s.toTable().join(rows(t), same, { on: 'city' })), {
    code: 'TOPOLOGY_INVALID',
    message: /has the text 'city' for the function that chooses the key of the other row/,
  })
  assert.throws(
    () => compiled((s, t) => s.toTable().outerJoin(rows(t), same, { on: same })),
    refusal('outerJoin', 'on', 'it has name, store, emit$'),
  )
})

test('one pair of serdes serves operators that have no use for both', () => {
  compiled((stream) => {
    const longer = stream.mapValues(String, text).filter(() => true, text)
    longer
      .groupByKey(text)
      .count({ store: 'counted', ...text })
      .toStream()
      .to('b', text)
  })
})
