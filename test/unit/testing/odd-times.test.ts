/** Times that are no whole milliseconds, as a division or a field that is missing gives them: refused, or taken down to such. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  defineApp,
  type ProcessorContext,
  serdes,
  sessionStore,
  type TimestampedKeyValueStore,
  versionedStore,
  windowStore,
} from '../../../src/index.ts'
import { TopologyTestDriver } from '../../../src/testing/index.ts'

const of = { key: serdes.string, value: serdes.number }
const windows = windowStore<string, number>('windows', { ...of, retention: '1h', windowSize: '1s' })
const sessions = sessionStore<string, number>('sessions', { ...of, retention: '1h' })
const versions = versionedStore<string, number>('versions', { ...of, historyRetention: '1h' })

type Context = ProcessorContext<string, string, unknown>
type Step = (context: Context) => unknown

/** That of a table beside the processor. */
const rowsOf = (context: Context) => context.store<TimestampedKeyValueStore<string, number>>('rows')

/** A driver whose processor does, for each record, the step of its key. */
function stepping(steps: Readonly<Record<string, Step>>): TopologyTestDriver {
  const app = defineApp({
    applicationId: 'times',
    config: { 'errors.processing': 'skip', 'errors.producing': 'skip' },
    build(topology) {
      topology.table('table', { ...of, store: 'rows' })
      topology
        .stream('in', { key: serdes.string, value: serdes.json() })
        .process<string, unknown>(
          (context) => (_, step) => {
            const told = steps[step]?.(context)
            if (told !== undefined) return context.forward(step, told)
          },
          { stores: [windows, sessions, versions, 'rows'] },
        )
        .to('out', { key: serdes.string, value: serdes.json() })
    },
  })
  return new TopologyTestDriver(app)
}

const all: Step = (context) => ({
  windows: [...context.store(windows).all()],
  sessions: [...context.store(sessions).all()],
  versions: [...context.store(versions).all()],
  rows: [...rowsOf(context).all()],
})

const noTimes = [Number.NaN, Infinity, -Infinity, -5, 1000.7, 2 ** 53, undefined as unknown as number]

describe('odd times', () => {
  const puts: Readonly<Record<string, (context: Context, time: number, value: number | null) => unknown>> = {
    'the start of a window': (context, time, value) => void context.store(windows).put('odd', value, time, 1000),
    'the start of a session': (context, time, value) => void context.store(sessions).put('odd', time, 2000, value),
    'the end of a session': (context, time, value) => void context.store(sessions).put('odd', 1000, time, value),
    'the time of a version': (context, time, value) => void context.store(versions).put('odd', value, time),
    'the timestamp of a row': (context, time, value) => void rowsOf(context).put('odd', value, time),
  }
  for (const [what, put] of Object.entries(puts)) {
    test(`${what} is a whole number of milliseconds, and what is none changes nothing`, async () => {
      const steps: Record<string, Step> = { all, good: (context) => put(context, 1500, 7) }
      // Nothing goes by the order of timestamps: those of nanoseconds are rows of a table as well.
      for (const time of noTimes.filter((each) => !(what === 'the timestamp of a row' && each === 2 ** 53))) {
        steps[`delete ${time}`] = (context) => put(context, time, null)
        steps[`put ${time}`] = (context) => put(context, time, 1)
      }
      const driver = stepping(steps)
      const input = driver.input<string, null>('in')
      await input.pipe('good', null, { timestamp: 5000 })
      await input.pipe('all', null, { timestamp: 5000 })
      const odd = Object.keys(steps).filter((step) => /^(put|delete)/.test(step))
      for (const step of odd) await input.pipe(step, null, { timestamp: 5000 })
      await input.pipe('all', null, { timestamp: 5000 })
      await driver.restart()
      await input.pipe('all', null, { timestamp: 5000 })
      const [before, after, restarted, ...others] = driver.output('out').readAll()
      assert.deepEqual(others, [])
      assert.match(JSON.stringify(before?.value), /odd/)
      assert.deepEqual(after?.value, before?.value)
      assert.deepEqual(restarted?.value, before?.value)
      driver.close()
    })
  }

  test('a put says what is wrong with its time, however old it is', async () => {
    const told: unknown[] = []
    const caught = (put: () => unknown): void => {
      try {
        put()
        told.push('taken')
      } catch (error) {
        told.push((error as { code?: string }).code, (error as Error).message)
      }
    }
    const driver = stepping({
      put: (context) => {
        caught(() => context.store(windows).put('a', 1, -1))
        caught(() => context.store(windows).put('a', 1, 1000, 0.5))
        caught(() => context.store(sessions).put('a', 100, 50, 1))
      },
    })
    await driver.input<string, null>('in').pipe('put', null, { timestamp: 1e12 })
    const advice = 'give whole milliseconds since 1970, from 0 on; Math.floor takes a fraction down to them.'
    assert.deepEqual(told, [
      'PROCESSING_FAILED',
      `The store 'windows' cannot keep a row whose start is -1: ${advice}`,
      'PROCESSING_FAILED',
      `The store 'windows' cannot keep a row whose timestamp is 0.5: ${advice}`,
      'PROCESSING_FAILED',
      "The store 'sessions' cannot keep a session that starts at 100 and ends at 50, before it begins: give its start first, then its end.",
    ])
    driver.close()
  })

  test('reads with any bounds end, and find what lies between them', async () => {
    const { NaN: none } = Number
    const starts = (context: Context, from: number, to: number): unknown => {
      const store = context.store(windows)
      const ofKey = [...store.fetchRange('a', from, to)].map(([start]) => start)
      const backward = [...store.fetchRange('a', from, to, true)].map(([start]) => start)
      assert.deepEqual(backward.reverse(), ofKey)
      assert.deepEqual(
        [...store.fetchAll(from, to)].map(([, start]) => start),
        ofKey,
      )
      return ofKey
    }
    const found = (context: Context, from: number, to: number): unknown =>
      [...context.store(sessions).findSessions('a', from, to)].map(([start]) => start)
    const driver = stepping({
      put: (context) => {
        for (const time of [0, 1000, 900_000]) {
          context.store(windows).put('a', 1, time)
          context.store(sessions).put('a', time, time + 10, 1)
        }
        context.store(versions).put('a', 1, 1000)
      },
      windows: (context) => [
        starts(context, -Infinity, Infinity),
        starts(context, 0.5, 1000.5),
        starts(context, 1000.5, 2 ** 60),
        starts(context, none, Infinity),
        starts(context, 0, none),
        starts(context, Infinity, Infinity),
        starts(context, 5000, 0),
        [1000, 1000.7, none, Infinity].map((start) => context.store(windows).fetch('a', start)?.value ?? null),
      ],
      sessions: (context) => [
        found(context, -Infinity, Infinity),
        found(context, 10.5, 1000.5),
        found(context, none, Infinity),
        found(context, 0, none),
        found(context, Infinity, Infinity),
        [1010, 1010.5, none, Infinity].map((end) => context.store(sessions).fetchSession('a', 1000, end) ?? null),
        [1000.5, none].map((start) => context.store(sessions).fetchSession('a', start, 1010) ?? null),
      ],
      versions: (context) =>
        [999.5, 1000.5, Infinity, -Infinity, none].map((at) => context.store(versions).get('a', at)?.value ?? null),
    })
    const input = driver.input<string, null>('in')
    for (const step of ['put', 'windows', 'sessions', 'versions']) await input.pipe(step, null, { timestamp: 5000 })
    const told = driver.output<string, unknown>('out').readAll()
    assert.deepEqual(driver.dropped(), [])
    assert.deepEqual(Object.fromEntries(told.map(({ key, value }) => [key, value])), {
      windows: [[0, 1000, 900_000], [1000], [900_000], [], [], [], [], [1, null, null, null]],
      sessions: [[0, 1000, 900_000], [1000], [], [], [], [1, null, null, null], [null, null]],
      versions: [null, 1, 1, null, null],
    })
    driver.close()
  })

  test('a timestamp that is forwarded is taken down to whole milliseconds at once', async () => {
    const seen: number[] = []
    const app = defineApp({
      applicationId: 'forwarded',
      build(topology) {
        topology
          .stream('in', { key: serdes.string, value: serdes.number })
          .processValues<number>((context) => (n) => context.forward(n, { timestamp: n }))
          .peek((_value, _key, { timestamp }) => void seen.push(timestamp))
          .groupByKey()
          .count()
          .toStream()
          .to('out')
      },
    })
    const driver = new TopologyTestDriver(app)
    for (const n of [3.7, 4]) await driver.input<string, number>('in').pipe('a', n, { timestamp: 2 })
    const told = driver.output('out').readAll()
    assert.deepEqual(
      told.map(({ timestamp }) => timestamp),
      [3, 4],
    )
    assert.deepEqual(seen, [3, 4])
    driver.close()
  })

  for (const [given, times] of [
    [1.5, [1, 1]],
    [Number.NaN, []],
  ] as const)
    test(`a scheduled source whose records have the timestamp ${given} gives ${times.length}`, async () => {
      const app = defineApp({
        applicationId: 'emitted',
        config: { 'errors.producing': 'skip' },
        build(topology) {
          const emit = () => ({ key: 'a', value: 1, timestamp: given })
          topology.scheduled('ticks', { every: '1s', key: serdes.string, value: serdes.number, emit }).to('out')
        },
      })
      const driver = new TopologyTestDriver(app)
      await driver.advanceWallClock('2s')
      assert.deepEqual(
        driver
          .output('out')
          .readAll()
          .map(({ timestamp }) => timestamp),
        times,
      )
      driver.close()
    })

  for (const [what, step, message] of [
    [
      'headers that are null',
      (context: Context) => context.forward('a', 1, { headers: null as never }),
      /forwards a record with headers that are none: headers are a list of pairs of name and value\.$/,
    ],
    [
      'a clock that there is not',
      (context: Context) => context.schedule('1s', 'nope' as never, () => undefined),
      /schedules by the clock "nope", which there is not; give 'event-time' or 'wall-clock'\.$/,
    ],
  ] as const)
    test(`a processor that gives ${what} is told so`, async () => {
      let told: unknown
      const driver = stepping({
        it: (context) => {
          try {
            step(context)
          } catch (error) {
            told = error
          }
        },
      })
      await driver.input<string, null>('in').pipe('it', null)
      assert.match((told as Error).message, message)
      driver.close()
    })
})
