/** The pages of `GET /stores/{name}` where one key lies in several partitions, and what it shows of versions. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { ShownRow, StoreRows } from '../../src/http/data-seam.ts'
import { endLeftThreads, type Live, startLive } from './support/live.ts'

after(() => endLeftThreads())

const t0 = 1_700_000_000_000
const keys = Array.from({ length: 30 }, (_, i) => `key-${String(i).padStart(2, '0')}`)

async function startScattered(): Promise<Live> {
  const live = await startLive({
    app: 'scattered-app',
    config: { 'runtime.endpoints.stores.enabled': true, 'broker.embedded.partitions': 4, 'engine.lanes.count': 2 },
  })
  await live.untilState('RUNNING')
  await live.feed(
    'events',
    keys.map((key, i) => ({ key, value: `v${i}`, timestamp: t0 + i })),
  )
  await live.runtime.untilIdle()
  return live
}

async function page(live: Live, path: string): Promise<StoreRows> {
  const answer = await live.ask({ path })
  assert.equal(answer.status, 200, answer.body)
  return answer.json as unknown as StoreRows
}

/** All rows, page by page. */
async function paged(live: Live, store: string, query: string): Promise<ShownRow[]> {
  const found: ShownRow[] = []
  let next: string | null = null
  for (let pages = 0; pages < 100; pages++) {
    const from: string = next === null ? '' : `&from=${encodeURIComponent(next)}`
    const shown: StoreRows = await page(live, `/stores/${store}?${query}${from}`)
    found.push(...shown.rows)
    assert.equal(shown.more, shown.next !== null)
    next = shown.next
    if (next === null) return found
  }
  assert.fail(`the pages of ${store} do not end: ${next}`)
}

describe('GET /stores/{name}', () => {
  test('shows each row once where a key lies in several partitions, whatever the size of a page', async (t) => {
    const live = await startScattered()
    t.after(() => live.stop())
    for (const [store, rows] of [
      ['shared', keys.length + 5 * 4],
      ['numbered', 4],
    ] as const) {
      const all = (await page(live, `/stores/${store}?limit=1000`)).rows
      assert.equal(all.length, rows)
      for (const limit of [1, 2, 7]) assert.deepEqual(await paged(live, store, `limit=${limit}`), all)
    }
    const hot = [0, 1, 2, 3].map((partition) => ({ key: 'hot', value: `hot of ${partition}` }))
    assert.deepEqual(await paged(live, 'shared', 'key=hot&limit=1'), hot)
    assert.deepEqual((await paged(live, 'shared', 'to=hot&limit=3')).slice(-4), hot)

    const { next } = await page(live, '/stores/shared?from=hot&limit=1')
    assert.equal(next, '"hot"@partition:1')
    assert.equal((await page(live, '/stores/shared?from=hot&limit=4')).next, '"hot@partition:1"')
    const typed = (await page(live, '/stores/shared?from=hot@partition:1&limit=1')).rows
    assert.deepEqual(typed[0]?.key, 'hot@partition:1', 'a key that looks like it')
  })

  test('shows of a version since when it holds, asked by its key as in the list', async (t) => {
    const live = await startScattered()
    t.after(() => live.stop())
    const { rows } = await page(live, '/stores/versions?limit=1000')
    assert.equal(rows.length, keys.length)
    assert.deepEqual((await page(live, '/stores/versions?key=key-07')).rows, [
      { key: 'key-07', value: 'v7', timestamp: t0 + 7 },
    ])
    for (const row of rows)
      assert.deepEqual((await page(live, `/stores/versions?key=${row.key as string}`)).rows, [row])
    assert.deepEqual((await page(live, '/stores/versions?key=nobody')).rows, [])
  })
})
