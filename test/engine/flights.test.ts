/** Real flights through the whole engine, held against a count that knows nothing of it. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { type FeedRecord, flights, ndjson } from '../../examples/flights/data.ts'
import { dropReasons, dropSlot } from '../../src/base/counters.ts'
import { Random } from '../../src/base/random.ts'
import { CommittedReader } from '../../src/cli/feed/committed-reader.ts'
import { Feeder } from '../../src/cli/feed/feed.ts'
import { parseFeed } from '../../src/cli/feed/feed-reader.ts'
import { keyBytesOf, valueBytesOf } from '../../src/cli/feed/print.ts'
import { ProgressLine } from '../../src/cli/progress.ts'
import { PrintDecoder } from '../../src/cli/feed/topic-codec.ts'
import { type Runtime, startRuntime } from '../../src/runtime/index.ts'
import { millrace } from '../support/millrace.ts'

const root = join(import.meta.dirname, '..', '..')
const app = join(import.meta.dirname, 'apps', 'late-windows.ts')
const minute = 60_000
const outOfOrderness = 10 * minute

const folder = mkdtempSync(join(tmpdir(), 'millrace-flights-'))
after(() => rmSync(folder, { recursive: true }))

type Counts = Readonly<Record<string, number>>

function independentCounts(...minutes: number[]): Counts {
  const script = join(root, 'examples', 'flights', 'count.mjs')
  const args = [script, ...minutes.map(String)]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })) as Counts
}

const inOrder = flights()

/** Every flight is delayed by less than the allowed out-of-orderness, so none of them is late. */
function shuffled(seed: number): Array<FeedRecord<unknown>> {
  const random = new Random(seed)
  return inOrder
    .map((flight) => ({ flight, arrival: flight.timestamp + random.int(outOfOrderness) }))
    .sort((a, b) => a.arrival - b.arrival)
    .map(({ flight }) => flight)
}

function feedFile(name: string, records: ReadonlyArray<FeedRecord<unknown>>): string {
  const file = join(folder, name)
  writeFileSync(file, ndjson(records))
  return file
}

interface Printed {
  readonly topic: string
  readonly key: { readonly key: string; readonly start: number; readonly end: number }
  readonly value: number
}

async function run(feed: string, lanes: number): Promise<Printed[]> {
  const args = ['run', app, '--feed', `flights=${feed}`, '--print', 'late-tumbling', '--print', 'late-hopping']
  const settings = [`engine.lanes.count=${lanes}`, 'runtime.http.enabled=false', 'engine.state.store=memory']
  const set = settings.flatMap((setting) => ['--set', setting])
  const { code, stdout, stderr } = await millrace([...args, '--until-idle', ...set])
  assert.equal(code, 0, stderr)
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Printed)
}

const idOf = ({ key }: Printed): string => `${key.key}@${key.start}`

/** The last update of each window counts. */
function lastPerWindow(printed: readonly Printed[]): Counts {
  return Object.fromEntries(printed.map((record) => [idOf(record), record.value]))
}

describe('late flights per airport and window', () => {
  const tumbling = independentCounts(60)
  const hopping = independentCounts(60, 15)
  const lastFlight = inOrder.at(-1)?.timestamp ?? 0
  const feeds = [
    ['in order', feedFile('in-order.ndjson', inOrder)],
    ['shuffled within the allowed out-of-orderness', feedFile('shuffled.ndjson', shuffled(7))],
  ] as const
  const finals: string[] = []

  for (const [order, feed] of feeds) {
    for (const lanes of [1, 2, 8]) {
      test(`are what an independent count gives: ${order}, ${lanes} lanes`, async () => {
        const printed = await run(feed, lanes)
        const updates = printed.filter((record) => record.topic === 'late-tumbling')
        assert.deepEqual(lastPerWindow(updates), tumbling)
        assert.ok(updates.every(({ key }) => key.end === key.start + 60 * minute))

        const closed = printed.filter((record) => record.topic === 'late-hopping')
        assert.equal(new Set(closed.map(idOf)).size, closed.length, 'a closed window is told once')
        for (const record of closed) assert.equal(record.value, hopping[idOf(record)], idOf(record))
        const told = new Set(closed.map(idOf))
        const certain = Object.keys(hopping).filter((id) => startOf(id) < lastFlight - 1440 * minute)
        assert.deepEqual(
          certain.filter((id) => !told.has(id)),
          [],
          'every window that the input closes is told',
        )
        finals.push(JSON.stringify(closed.map((record) => [idOf(record), record.value]).sort()))
      })
    }
  }

  test('are the same set of final results each time', () => {
    assert.equal(finals.length, 6)
    assert.equal(new Set(finals).size, 1)
  })

  test('leave out flights that come too late, and count them', async () => {
    const late = inOrder.filter((flight) => flight.value.delay > 15)
    const forgotten = late.slice(0, 50)
    const runtime = await startRuntime({
      application: app,
      config: { 'runtime.http.enabled': false, 'engine.lanes.count': 2 },
      log: () => undefined,
    })
    try {
      const feeder = new Feeder({
        broker: runtime.broker,
        topology: () => runtime.view.topology(),
        rate: undefined,
        progress: new ProgressLine(),
        note: () => undefined,
        warn: () => undefined,
        signal: new AbortController().signal,
      })
      await feeder.run([parseFeed(`flights=${feedFile('late.ndjson', [...inOrder, ...forgotten])}`)])
      await runtime.untilIdle()

      const updates: Array<readonly [id: string, count: number]> = []
      const reader = new CommittedReader({
        broker: runtime.broker,
        topics: ['late-tumbling'],
        onRecords: (topic, _partition, cursor) => {
          const decoder = new PrintDecoder(runtime.view.topology(), topic)
          while (cursor.next()) {
            const key = decoder.key(keyBytesOf(cursor)) as Printed['key']
            updates.push([`${key.key}@${key.start}`, decoder.value(valueBytesOf(cursor)) as number])
          }
        },
      })
      await reader.finish()
      assert.deepEqual(Object.fromEntries(updates), tumbling)
      assert.equal(updates.length, late.length)
      // Each of them is late twice: for the tumbling windows and for the hopping ones.
      assert.equal(droppedAsLate(runtime), forgotten.length * 2)
    } finally {
      await runtime.stop()
    }
  })
})

function startOf(id: string): number {
  return Number(id.slice(id.indexOf('@') + 1))
}

function droppedAsLate(runtime: Runtime): number {
  const counters = runtime.view.counters()
  assert.ok(counters)
  const reason = dropReasons.indexOf('late')
  let dropped = 0
  for (const lane of counters.lanes) {
    for (let subtopology = 0; subtopology < counters.layout.subtopologies; subtopology++) {
      dropped += lane[dropSlot(counters.layout, subtopology, reason)] ?? 0
    }
  }
  return dropped
}
