/** How the console orders names, and writes times into its charts. */
import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { refreshConsole } from '../../scripts/console.ts'
import type { PartitionKey } from '../../src/base/ids.ts'
import { FakeEngine, quietPartition } from '../http/support/fake-engine.ts'
import { startFake } from '../http/support/fake-subject.ts'
import { standby } from '../http/support/ha-samples.ts'
import type { Situation } from '../http/support/subject.ts'
import { startBrowser } from './support/browser.ts'
import { Visit, type VisitOptions } from './support/visit.ts'

const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
await refreshConsole()

after(async () => {
  if (typeof found !== 'string') await found.close()
})

interface Where extends VisitOptions {
  readonly situation?: Situation
  readonly engine?: FakeEngine
}

async function visitTo(t: TestContext, { situation, engine, ...options }: Where): Promise<Visit> {
  const instance = await startFake(situation, engine)
  let visit: Visit | undefined
  // The page first: it asks again and again.
  t.after(async () => {
    await visit?.close()
    await instance.stop()
  })
  visit = await Visit.to(browser, instance.url, options)
  return visit
}

async function firstCells(visit: Visit, table: string): Promise<string[]> {
  await visit.settled()
  return await visit.page.locator(`section[aria-label^="${table}"] tbody td:first-child`).allTextContents()
}

describe('names with numbers in them', { skip }, () => {
  test('order partitions that tie by topic, then by number', async (t) => {
    const engine = new FakeEngine()
    const names: PartitionKey[] = ['in:10', 'in:0', 'in-2:1', 'in:2', 'In:1', 'in-10:0', 'in:101']
    assert.ok(engine.watermarkSnapshot !== null)
    const partitions = Object.fromEntries(names.map((name) => [name, quietPartition]))
    engine.watermarkSnapshot = { ...engine.watermarkSnapshot, partitions }
    const visit = await visitTo(t, { engine })
    await visit.open('time')
    const sorted = ['in:0', 'in:2', 'in:10', 'in:101', 'In:1', 'in-2:1', 'in-10:0']
    assert.deepEqual(await firstCells(visit, 'Watermarks of partitions'), sorted)
    visit.blameless()
  })

  test('order pods', async (t) => {
    const [peer] = standby.peers
    assert.ok(peer)
    const peers = ['pod-10', 'pod-2'].map((podId) => ({ ...peer, podId }))
    const visit = await visitTo(t, { situation: { ha: { ...standby, selfPodId: 'pod-1', peers } } })
    await visit.open('ha')
    assert.deepEqual(await firstCells(visit, 'Pods of the group'), ['pod-1 (this one)', 'pod-2', 'pod-10'])
    visit.blameless()
  })
})

/** Keeps what is written into canvases, which no page can be asked for. */
const noteWriting = `(() => {
  const own = CanvasRenderingContext2D.prototype.fillText
  globalThis.written = []
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    globalThis.written.push(text)
    return own.call(this, text, ...place)
  }
})()`

/** Every line that charts have written since, and that tells a time. */
const writtenTimes = "[...new Set(written.splice(0).filter((text) => /[:-]\\d/.test(text)))].join(', ')"

/** The history ends five minutes behind midnight, in UTC. */
async function withHistory(visit: Visit, lines: number): Promise<void> {
  const endMs = Date.parse('2026-12-01T00:05:00Z')
  const atMs = Array.from({ length: lines }, (_, i) => endMs - (lines - 1 - i) * 5000)
  const column = atMs.map(() => 1)
  const columns = { recordsIn: column, recordsOut: column, lag: column, commitMs: column, watermarkDelayMs: column }
  await visit.page.route('**/flow?history=true', async (route) => {
    try {
      const response = await route.fetch()
      const body = (await response.json()) as object
      await route.fulfill({ response, json: { ...body, history: { atMs, ...columns } } })
    } catch (error) {
      // It may be closed with a question under way.
      if (!visit.page.isClosed()) throw error
    }
  })
}

describe('charts', { skip }, () => {
  test('write times as everything else does, in UTC and in local time', async (t) => {
    const visit = await visitTo(t, { timezone: 'America/New_York' })
    await visit.page.addInitScript(noteWriting)
    await withHistory(visit, 180)
    await visit.open('overview')
    await visit.page.locator('.chart canvas').first().waitFor()
    await visit.until(writtenTimes, '23:55 Z, 2026-11-30, 00:00 Z, 2026-12-01, 00:05 Z')
    await visit.page.getByRole('button', { name: 'UTC' }).click()
    await visit.until(writtenTimes, '18:55, 2026-11-30, 19:00, 19:05')
    visit.blameless()
  })

  test('tell seconds where a minute is wide', async (t) => {
    const visit = await visitTo(t, {})
    await visit.page.addInitScript(noteWriting)
    await withHistory(visit, 7)
    await visit.open('overview')
    await visit.page.locator('.chart canvas').first().waitFor()
    await visit.until("written.includes('00:04:40 Z')", true)
    visit.blameless()
  })
})
