/** What is forgotten goes by the record at hand: not by those that overtook it, nor by those that other stages have done. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Random } from '../../src/base/random.ts'
import { byKey, firstTime, type In, TestEngine } from './support/engine.ts'

for (const slow of [0, 300]) {
  const how = slow === 0 ? 'at once' : 'beside ones that wait'

  test(`a late version is refused by its own watermark: ${how}`, async (t) => {
    const engine = await TestEngine.start(t, 'versions-late', { 'broker.embedded.partitions': 1 })
    const rate = (key: string, n: number, at: number, wait = 0): In => ({
      key,
      value: { n, slow: wait },
      timestamp: firstTime + at,
    })
    await engine.put('rates', [
      rate('ann', 1, 0, slow),
      rate('bob', 2, 60_000),
      // Event time has come to 58 s, and what is older than 48 s is history.
      rate('cid', 3, 47_999),
      rate('cid', 4, 48_000, slow),
      rate('ann', 5, 55_000, slow),
      rate('bob', 6, 200_000),
      rate('ann', 7, 187_999, slow),
      rate('ann', 8, 188_000, slow),
      rate('bob', 9, 400_000),
    ])
    await engine.idle()
    // The newest version is always there.
    assert.deepEqual(byKey(await engine.read('joined')), { ann: [1, 5, 5, 8], bob: [2, 6, 9], cid: [0, 4] })
    assert.deepEqual(byKey(await engine.read('processed')), { ann: [1, 5, -5, 8], bob: [2, 6, 9], cid: [0, 4] })
    assert.equal(engine.dropped('expired'), 2)
  })

  test(`while a partition is silent a row is over by the record's own time: ${how}`, async (t) => {
    const engine = await TestEngine.start(t, 'remembered', {
      'broker.embedded.partitions': 2,
      'commit-barrier.interval-ms': 5,
    })
    const visit = (key: string, n: number, at: number, wait = 0): In => ({
      key,
      value: { n, slow: wait },
      timestamp: firstTime + at,
      partition: 0,
    })
    await engine.put('visits', [
      visit('ann', 1, 0),
      visit('ann', 2, 9_000, slow),
      visit('ann', 3, 19_000),
      visit('ann', 4, 28_999),
      visit('bob', 5, 35_000),
      visit('ann', 6, 36_000, slow),
      visit('bob', 7, 100_000),
      visit('ann', 8, 46_000),
    ])
    await engine.idle()
    const expected = { ann: [0, 1, 0, 3, 4, 0], bob: [0, 0] }
    assert.deepEqual(byKey(await engine.read('before')), expected)
    const counts = { ann: [1, 2, 1, 2, 3, 1], bob: [1, 1] }
    assert.deepEqual(byKey(await engine.read('counted')), counts)
  })
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-forgotten-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const keys = ['ann', 'bob', 'cid', 'dan', 'eve', 'fay']

/** The first that differ: of thousands nobody reads more. */
function same(told: readonly unknown[], expected: readonly string[]): void {
  const wrong = told.filter((pair) => !expected.includes(pair as string))
  assert.deepEqual([told.length, wrong.slice(0, 10)], [expected.length, []])
}

for (const store of ['memory', 'lmdb']) {
  test(`a deeper stage finds rows as they were for its record, whatever has gone meanwhile: ${store}`, async (t) => {
    const engine = await TestEngine.start(t, 'seats-behind', {
      'broker.embedded.partitions': 1,
      'engine.state.store': store,
      'engine.state.dir': folder,
      'commit-barrier.interval-ms': 5,
    })
    const random = new Random(7)
    const rows = new Map<string, { readonly n: number; readonly at: number }>()
    const expected: string[] = []
    const seats: In[] = []
    let at = 0
    for (let n = 0; n < 3_000; n++) {
      at += random.chance(0.02) ? 8_000 + random.int(8_000) : random.int(1_500)
      const [key, beside] = [random.pick(keys), random.pick(keys)]
      seats.push({
        key,
        value: { n, beside, slow: random.chance(0.02) ? 1 + random.int(20) : 0 },
        timestamp: firstTime + at,
      })
      rows.set(key, { n, at })
      const found = rows.get(beside)
      expected.push(`${n}:${found === undefined || at >= found.at + 10_000 ? 'nobody' : found.n}`)
    }
    await engine.put('seats', seats)
    await engine.idle()
    const pairs = (await engine.read('pairs')).map(({ value }) => value)
    same(pairs, expected)
  })
}

test('a deeper stage finds no version that was put behind its record, though it is older', async (t) => {
  const engine = await TestEngine.start(t, 'prices-behind', {
    'broker.embedded.partitions': 1,
    'commit-barrier.interval-ms': 5,
  })
  const random = new Random(8)
  const rows = new Map<string, Map<number, { readonly n: number }>>(keys.map((key) => [key, new Map()]))
  const expected: string[] = []
  const prices: In[] = []
  let now = 0
  for (let n = 1; n <= 3_000; n++) {
    now += random.int(3_000)
    const at = Math.max(0, now - (random.chance(0.4) ? random.int(29_000) : 0))
    const [key, beside] = [random.pick(keys), random.pick(keys)]
    prices.push({ key, value: { n, beside }, timestamp: firstTime + at })
    rows.get(key)?.set(at, { n })
    const times = [...(rows.get(beside)?.keys() ?? [])].filter((time) => time <= at)
    expected.push(`${n}:${rows.get(beside)?.get(Math.max(...times))?.n ?? 'none'}`)
  }
  await engine.put('prices', prices)
  await engine.idle()
  const pairs = (await engine.read('pairs')).map(({ value }) => value)
  same(pairs, expected)
})
