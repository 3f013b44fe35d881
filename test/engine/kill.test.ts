/** A run that is killed again and again gives what an uninterrupted one gives: nothing twice, nothing lost. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { flights, ndjson } from '../../examples/flights/data.ts'
import { Random } from '../../src/base/random.ts'
import { lmdbBackends } from '../../src/state/backends.ts'
import { eventually, millrace, startMillrace } from '../support/millrace.ts'

const root = join(import.meta.dirname, '..', '..')
const app = join(import.meta.dirname, 'apps', 'late-sessions.ts')
const folder = mkdtempSync(join(tmpdir(), 'millrace-kill-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const kills = 20
/** Spread over the run; the number of records that a life gets done goes with it. */
const seed = Number(process.env.KILL_SEED ?? 1)

interface Printed {
  readonly topic: string
  readonly key: { readonly key: string; readonly start: number }
  readonly value: number
}

function argumentsFor(name: string, feed: string): string[] {
  const settings = [
    `broker.bootstrap-servers=embedded:${join(folder, name, 'broker')}`,
    `engine.state.dir=${join(folder, name, 'state')}`,
    'engine.state.store=lmdb',
    'engine.lanes.count=2',
    'runtime.http.enabled=false',
  ]
  return ['run', app, '--feed', `flights=${feed}`, ...settings.flatMap((setting) => ['--set', setting])]
}

function parse(stdout: string): Printed[] {
  const lines = stdout.trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Printed)
}

/** All results of each window, in the order in which they were committed. */
function resultsPerWindow(records: readonly Printed[], topic: string): Record<string, number[]> {
  const results: Record<string, number[]> = {}
  for (const record of records) {
    if (record.topic !== topic) continue
    const id = `${record.key.key}@${record.key.start}`
    const list = results[id] ?? []
    results[id] = list
    list.push(record.value)
  }
  return results
}

/** The rows of the durable stores that a run leaves behind, by store, partition and key. */
function storeRows(name: string): Record<string, string> {
  const backends = lmdbBackends({ dir: join(folder, name, 'state'), applicationId: 'late-sessions' })
  const rows: Record<string, string> = {}
  for (const store of ['late-tumbling', 'late-hopping', 'late-sessions']) {
    for (let partition = 0; partition < 4; partition++) {
      const backend = backends.open(store, partition)
      for (const [key, value] of backend.range(undefined, undefined)) {
        rows[`${store}/${partition}/${Buffer.from(key).toString('latin1')}`] = Buffer.from(value).toString('hex')
      }
      backend.close()
    }
  }
  return rows
}

describe('a run that is killed', () => {
  test(`${kills} times at random moments commits every result once`, async (t) => {
    t.diagnostic(`KILL_SEED=${seed}`)
    const random = new Random(seed)
    const feed = join(folder, 'flights.ndjson')
    writeFileSync(feed, ndjson(flights()))
    const args = argumentsFor('killed', feed)
    let livesWithProgress = 0

    for (let kill = 0; kill < kills; kill++) {
      const running = startMillrace([...args, '--feed-rate', '1500'])
      // Every other life gets as far as processing, however long a busy machine takes to start it.
      if (kill % 2 === 1) {
        await eventually('it runs', () => /→ RUNNING/.test(running.stderr()) || running.child.exitCode !== null)
        await sleep(random.int(900))
      } else {
        await sleep(600 + random.int(1800))
      }
      running.child.kill('SIGKILL')
      const { signal, stderr } = await running.result
      assert.equal(signal, 'SIGKILL', `life ${kill} ended by itself: ${stderr}`)
      if (/are stored already/.test(stderr)) livesWithProgress++
    }
    // Lives that are over before the engine runs are part of the test, but not all of it.
    t.diagnostic(`${livesWithProgress} lives went on from an earlier one`)
    assert.ok(livesWithProgress > kills / 4)
    const topics = ['late-tumbling', 'late-hopping', 'late-sessions']
    const prints = [...topics.flatMap((topic) => ['--print', topic]), '--until-idle']
    const result = await millrace([...args, ...prints])
    assert.equal(result.code, 0, result.stderr)
    const killed = parse(result.stdout)

    const counts = JSON.parse(
      execFileSync(process.execPath, [join(root, 'examples', 'flights', 'count.mjs'), '60'], { encoding: 'utf8' }),
    ) as Record<string, number>
    const updates = resultsPerWindow(killed, 'late-tumbling')
    const expected = Object.fromEntries(
      Object.entries(counts).map(([id, count]) => [id, Array.from({ length: count }, (_, i) => i + 1)]),
    )
    assert.deepEqual(updates, expected)

    const whole = await millrace([...argumentsFor('uninterrupted', feed), ...prints])
    assert.equal(whole.code, 0, whole.stderr)
    for (const topic of topics.slice(1)) {
      assert.deepEqual(
        resultsPerWindow(killed, topic),
        resultsPerWindow(parse(whole.stdout), topic),
        `each closed window is told once, with the same result: ${topic}`,
      )
    }
    const rows = storeRows('killed')
    assert.ok(Object.keys(rows).length > 0)
    assert.deepEqual(rows, storeRows('uninterrupted'), 'the stores hold the same rows')
  })
})
