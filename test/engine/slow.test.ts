/** Slow is not stuck: commits come as long as functions return, and a function that does not is named with its record. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventually } from '../support/millrace.ts'
import { byKey, firstTime, type In, TestEngine } from './support/engine.ts'

interface Answer {
  readonly n: number
  readonly began: number
  readonly ended: number
}

/** What all records together take is many times this. */
const config = { 'commit-barrier.timeout-ms': 2000, 'commit-barrier.max-engine-restarts': 0 }

async function commitsOf(engine: TestEngine): Promise<number> {
  await engine.idle()
  const complaints = engine.log.filter(({ level }) => level !== 'info').map(({ message }) => message)
  assert.deepEqual(complaints, [])
  assert.equal(engine.state, 'RUNNING')
  return engine.runtime.view.barriers()?.epoch ?? 0
}

function inOrder(answers: Record<string, Answer[]>): void {
  for (const [key, list] of Object.entries(answers)) {
    list.forEach(({ n, began }, i) => {
      const before = list[i - 1]
      if (before) assert.ok(n > before.n && began >= before.ended, `${key}: ${n} after ${before.n}`)
    })
  }
}

describe('slow functions over a backlog', () => {
  test('a synchronous one: commits come within its timeout, whatever lies at the broker', async (t) => {
    const engine = await TestEngine.start(t, 'costly', config)
    const records = Array.from({ length: 1200 }, (_, n): In => {
      return { key: `k${n % 100}`, value: { n, ms: 5 }, timestamp: firstTime + n }
    })
    await engine.put('calls', records)
    const commits = await commitsOf(engine)
    const answers = byKey<Answer>(await engine.read('answers'))
    assert.equal(Object.values(answers).flat().length, records.length)
    inOrder(answers)
    assert.ok(commits >= 6, `${commits} commits`)
  })

  test('an asynchronous one with most records of one key: these too are committed as they come through', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', config)
    const records = Array.from({ length: 120 }, (_, n): In => {
      return { key: n % 2 === 0 ? 'hot' : `k${n}`, value: { n, ms: 80 }, timestamp: firstTime + n }
    })
    await engine.put('calls', records)
    const commits = await commitsOf(engine)
    const answers = byKey<Answer>(await engine.read('answers'))
    assert.equal(answers.hot?.length, 60)
    assert.equal(Object.values(answers).flat().length, records.length)
    inOrder(answers)
    assert.ok(commits >= 6, `${commits} commits`)
  })

  test('many records of one key in a row, behind others that came through quickly', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', config)
    const quick = Array.from({ length: 4000 }, (_, n) => ({ key: `k${n}`, n, ms: 1 }))
    const hot = Array.from({ length: 40 }, (_, n) => ({ key: 'hot', n: 4000 + n, ms: 100 }))
    const records = [...quick, ...hot].map(
      ({ key, n, ms }): In => ({ key, value: { n, ms }, timestamp: firstTime + n }),
    )
    await engine.put('calls', records)
    await commitsOf(engine)
    const answers = byKey<Answer>(await engine.read('answers'))
    assert.equal(answers.hot?.length, 40)
    inOrder(answers)
  })

  test('behind a re-key: keys of lanes that call no such function are let in all the same', async (t) => {
    const engine = await TestEngine.start(t, 'slow-below', config)
    const records = Array.from({ length: 20 }, (_, n): In => {
      return { key: 'abcd'[n % 4] as string, value: n, timestamp: firstTime + n }
    })
    await engine.put('calls', records)
    await commitsOf(engine)
    const answers = byKey<number>(await engine.read('answers'))
    assert.deepEqual(
      answers.one,
      records.map(({ value }) => value),
    )
  })
})

describe('one record that has a slow function called many times', () => {
  // All calls of a series take longer than the timeout, each of them much less.
  const calls = 50
  const ms = 80
  for (const by of ['records', 'timers'] as const) {
    for (const asynchronous of [false, true]) {
      test(`${by}, ${asynchronous ? 'asynchronously' : 'synchronously'}: each call that returns is progress`, async (t) => {
        const engine = await TestEngine.start(t, 'slow-series', { ...config, 'broker.embedded.partitions': 1 })
        const value = { by, asynchronous, calls, ms }
        const nothing = { ...value, calls: 0 }
        await engine.put('series', [
          { key: 'a', value, timestamp: firstTime },
          // Timers are due with it.
          { key: 'b', value: nothing, timestamp: firstTime + 60_000 },
          { key: 'c', value: nothing, timestamp: firstTime + 120_000 },
        ])
        await commitsOf(engine)
        assert.equal((await engine.read('answers')).length, calls)
      })
    }
  }
})

describe('a function that does not return', () => {
  test('is found although other keys come through, and named with its record', async (t) => {
    const engine = await TestEngine.start(t, 'slow-calls', config)
    await engine.put('calls', [{ key: 'lost', value: { n: 0, ms: 1e8 } }])
    let n = 1
    const others = setInterval(() => void engine.put('calls', [{ key: `k${n}`, value: { n: n++, ms: 1 } }]), 50)
    t.after(() => clearInterval(others))
    await eventually('it is found', () => engine.log.some(({ message }) => /did not reach the barrier/.test(message)))
    const found = engine.log.find(({ message }) => /did not reach the barrier/.test(message))?.message ?? ''
    assert.match(found, /waited \d+\.\d s for the answer of a function of \S+, at the record calls\/\d at offset 0/)
    clearInterval(others)
    await engine.reaches('FAILED')
  })
})
