/** How the console orders names. */
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
import { Visit } from './support/visit.ts'

const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
await refreshConsole()

after(async () => {
  if (typeof found !== 'string') await found.close()
})

interface Where {
  readonly situation?: Situation
  readonly engine?: FakeEngine
}

async function visitTo(t: TestContext, { situation, engine }: Where): Promise<Visit> {
  const instance = await startFake(situation, engine)
  t.after(() => instance.stop())
  const visit = await Visit.to(browser, instance.url)
  t.after(() => visit.close())
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
