/** The console in every state that a process can be in: lifecycle, license, high availability, size, silence. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { brotliCompressSync } from 'node:zlib'
import type { Browser } from 'playwright-core'
import { consoleFolder, refreshConsole } from '../../scripts/console.ts'
import { compile } from '../../src/index.ts'
import type { HaStatus } from '../../src/http/ha-seam.ts'
import type { PartitionKey } from '../../src/base/ids.ts'
import { lifecycleStates } from '../../src/view/view.ts'
import { epochMs, FakeEngine, quietPartition } from '../http/support/fake-engine.ts'
import { startFake } from '../http/support/fake-subject.ts'
import { standby } from '../http/support/ha-samples.ts'
import { startBrowser } from './support/browser.ts'
import { pageNames, Visit } from './support/visit.ts'

const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
const built = consoleFolder
await refreshConsole()

after(async () => {
  if (typeof found !== 'string') await found.close()
})

describe('the files of the console', () => {
  const files = readdirSync(built)
  const text = (file: string): string => readFileSync(join(built, file), 'utf8')

  test('take less than 120 KB compressed, name no other host and make no code from text', () => {
    const bytes = files.reduce((all, file) => all + brotliCompressSync(readFileSync(join(built, file))).length, 0)
    assert.ok(bytes < 120_000, `${bytes} bytes`)
    for (const file of files.filter((name) => name !== 'licenses.txt')) {
      const hosts = [...text(file).matchAll(/https?:\/\/([\w.-]+\.\w+)/g)].map(([, host]) => host)
      assert.deepEqual(
        hosts.filter((host) => host !== 'www.w3.org'),
        [],
        file,
      )
      assert.doesNotMatch(text(file), /\beval\(|new Function\(|\bFunction\("/, file)
    }
    for (const name of ['preact', 'uplot', '@dagrejs/dagre']) assert.ok(text('licenses.txt').includes(name))
  })

  test('are served with a policy that allows nothing else, to browsers that go to / as well', async (t) => {
    const instance = await startFake({ config: { token: 'open-sesame' } })
    t.after(() => instance.stop())
    const page = await instance.ask({ path: '/console/' })
    assert.equal(page.status, 200)
    assert.match(String(page.headers['content-security-policy']), /default-src 'none'; script-src 'self';/)
    assert.match(page.body, /data-token="true"/)
    assert.equal((await instance.ask({ path: '/console/', method: 'POST' })).status, 405)
    const way = await instance.ask({ path: '/', headers: { accept: 'text/html,*/*;q=0.8' } })
    assert.deepEqual([way.status, way.headers.location], [302, 'console/'])
    assert.equal((await instance.ask({ path: '/', headers: { authorization: 'Bearer open-sesame' } })).status, 404)
    assert.equal((await instance.ask({ path: '/state' })).status, 401)
    const off = await startFake({ config: { consoleEnabled: false } })
    t.after(() => off.stop())
    for (const path of ['/console/', '/console', '/console/app.js', '/']) {
      assert.equal((await off.ask({ path, headers: { accept: 'text/html' } })).status, 404, path)
    }
  })
})

describe('the console', { skip }, () => {
  for (const state of lifecycleStates) {
    test(`shows every page while the process is ${state}`, async (t) => {
      const instance = await startFake({ state })
      t.after(() => instance.stop())
      const visit = await Visit.to(browser, instance.url, { mayRefuse: [503] })
      t.after(() => visit.close())
      for (const name of pageNames) {
        await visit.open(name)
        await visit.settled()
      }
      await visit.open('overview')
      await visit.page.getByText(state).first().waitFor()
      visit.blameless()
    })
  }

  for (const status of ['PENDING', 'VALID', 'GRACE_PERIOD', 'EXPIRED', 'REVOKED', 'INVALID'] as const) {
    test(`shows a license that is ${status}, and who bought it only when asked`, async (t) => {
      const license = {
        status,
        licenseId: 'lic-1',
        tier: 'team',
        customerName: 'Northern Lines',
        expiresAt: '2027-01-01T00:00:00.000Z',
        daysRemaining: 300,
        machinesUsed: 1,
        machinesAllowed: 4,
        lastValidatedAt: null,
        cachedJwtExpiresAt: null,
        heartbeatLastSuccessAt: null,
        consecutiveFailures: 0,
        graceRemainingSeconds: 0,
        modeOnline: true,
        up: status === 'VALID',
      }
      const instance = await startFake({ license })
      t.after(() => instance.stop())
      const visit = await Visit.to(browser, instance.url, { mayRefuse: [503] })
      t.after(() => visit.close())
      await visit.open('license')
      await visit.page.getByText(status, { exact: true }).first().waitFor()
      assert.equal(await visit.page.getByText('Northern Lines').count(), 0)
      await visit.page.getByRole('button', { name: 'Show' }).click()
      await visit.page.getByText('Northern Lines').waitFor()
      visit.blameless()
    })
  }

  test('comes up in a browser whose language is none, as under the locale C', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    for (const language of ['en-US@posix', 'c', '']) {
      const visit = await Visit.to(browser, instance.url, { language })
      t.after(() => visit.close())
      await visit.open('overview')
      await visit.settled()
      visit.blameless()
    }
  })

  test('says that a process runs alone, and asks it nothing about a group', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url)
    t.after(() => visit.close())
    await visit.open('ha')
    await visit.page.getByText('ha.mode').waitFor()
    assert.deepEqual(
      visit.asked.filter((url) => url.includes('/ha/')),
      [],
    )
    visit.blameless()
  })

  test('gives a command once its pod is typed, by keyboard alone, of a standby and of an active pod', async (t) => {
    const active: HaStatus = { ...standby, selfRole: 'ACTIVE', selfState: 'ACTIVE' }
    for (const [ha, button] of [
      [standby, /^Promote /],
      [active, /^Demote /],
    ] as const) {
      const instance = await startFake({ ha })
      const visit = await Visit.to(browser, instance.url, { mayRefuse: [409, 503] })
      t.after(async () => {
        await visit.close()
        await instance.stop()
      })
      const held = Promise.withResolvers<void>()
      await visit.page.route(/\/ha\/(promote|demote)\?/, async (route) => {
        await held.promise
        await route.continue()
      })
      await visit.open('ha')
      await visit.page.getByRole('button', { name: 'Switch' }).waitFor()
      assert.deepEqual(await visit.violations(), [])
      await visit.tabTo(button)
      await visit.page.keyboard.press('Enter')
      await visit.confirm(String(await visit.page.locator('dialog label b').textContent()))
      // A second Enter before the answer.
      await visit.page.keyboard.press('Enter')
      held.resolve()
      await visit.page
        .getByText(/Published at offset|not READY_STANDBY|not the active|no caught-up/)
        .first()
        .waitFor()
      assert.equal(visit.asked.filter((url) => /\/ha\/(promote|demote)\?/.test(url)).length, 1)
      visit.blameless()
    }
  })

  test('shows what readiness says now, and not what it said while it was UP', async (t) => {
    const instance = await startFake({ schemaRegistry: 'up' })
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url, { mayRefuse: [503] })
    t.after(() => visit.close())
    await visit.open('overview')
    const broker = visit.page.locator('section[aria-label^="Indicators"] tr', { hasText: 'broker' })
    await broker.getByText('UP', { exact: true }).waitFor()
    instance.fake.link = { ...instance.fake.link, connected: false, sinceMs: epochMs - 60_000 }
    await broker.getByText('DOWN', { exact: true }).waitFor()
    await visit.page.getByText(/not ready: broker has been unreachable for \d+ s\./).waitFor()
    visit.blameless()
  })

  test('a command is not forced because the one before was', async (t) => {
    const instance = await startFake({ ha: standby })
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url)
    t.after(() => visit.close())
    await visit.open('ha')
    const force = visit.page.locator('dialog[open] input[type=checkbox]')
    await visit.page.getByRole('button', { name: 'Switch' }).click()
    await force.check()
    await visit.page.getByRole('button', { name: 'Cancel' }).click()
    await visit.page
      .getByRole('button', { name: /^Promote / })
      .first()
      .click()
    assert.equal(await force.isChecked(), false)
    visit.blameless()
  })

  test('tells a length of time without a minute of sixty seconds', async (t) => {
    const engine = new FakeEngine()
    assert.ok(engine.watermarkSnapshot !== null)
    const partitions = { 'flights:0': { ...quietPartition, watermarkMs: epochMs + 119_700 } }
    engine.watermarkSnapshot = { ...engine.watermarkSnapshot, globalMs: epochMs, partitions }
    const instance = await startFake({}, engine)
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url)
    t.after(() => visit.close())
    await visit.open('time')
    await visit.settled()
    const row = visit.page.locator('tr', { hasText: 'flights:0' })
    assert.equal(await row.locator('td').nth(2).textContent(), '2 min 0 s')
    visit.blameless()
  })

  test('offers no action where it is read-only', async (t) => {
    const instance = await startFake({ ha: standby, config: { consoleReadOnly: true } })
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url, { mayRefuse: [503] })
    t.after(() => visit.close())
    for (const name of ['overview', 'ha', 'dead-letters']) {
      await visit.open(name)
      await visit.settled()
      const actions = visit.page.getByRole('button', { name: /^(Pause|Resume|Switch|Promote|Demote|Put back)/ })
      assert.equal(await actions.count(), 0, name)
    }
    visit.blameless()
  })

  test('shows nothing before one signs in, where there is a token', async (t) => {
    const instance = await startFake({ config: { token: 'open-sesame' } })
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url, { mayRefuse: [401] })
    t.after(() => visit.close())
    await visit.page.goto(`${instance.url}/console/`)
    const field = visit.page.locator('input[type=password]')
    await field.waitFor()
    assert.deepEqual(await visit.violations(), [])
    await field.fill('guess')
    await visit.page.keyboard.press('Enter')
    await visit.page.getByText('This is not the token.').waitFor()
    await field.fill('open-sesame')
    await visit.page.keyboard.press('Enter')
    await visit.page.getByRole('heading', { name: 'Overview' }).waitFor()
    await visit.settled()
    visit.blameless()
  })

  test('is readable with 300 nodes and 1,000 partitions', async (t) => {
    const engine = new FakeEngine()
    engine.compiled = manyNodes()
    const partitions = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [
        `flights:${i}` as PartitionKey,
        { ...quietPartition, idle: i % 3 === 0 },
      ]),
    )
    assert.ok(engine.watermarkSnapshot !== null)
    engine.watermarkSnapshot = { ...engine.watermarkSnapshot, partitions }
    const instance = await startFake({}, engine)
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url)
    t.after(() => visit.close())
    await visit.open('topology')
    await visit.page.locator('g.node').first().waitFor()
    assert.ok((await visit.page.locator('g.node').count()) >= 300)
    await visit.page.getByRole('searchbox').fill('out-77')
    await visit.page.getByText('1 found').waitFor()
    await visit.open('time')
    await visit.page.getByText('1000 of 1000').waitFor()
    await visit.page.getByRole('searchbox').fill('flights:99')
    await visit.page.getByText('11 of 1000').waitFor()
    visit.blameless()
  })

  test('says since when nobody answers, keeps what it knew, and goes on when the process is back', async (t) => {
    const first = await startFake()
    const { port } = new URL(first.url)
    const visit = await Visit.to(browser, first.url, { mayBeSilent: true })
    t.after(() => visit.close())
    await visit.open('lag')
    await visit.settled()
    await first.stop()
    await visit.page.getByText(/^No answer since /).waitFor()
    await visit.page
      .getByText(/^Stale since /)
      .first()
      .waitFor()
    assert.ok((await visit.page.locator('section[aria-label^="Partitions"] tbody tr').count()) > 0)
    const second = await startFake({ config: { port: Number(port) } })
    t.after(() => second.stop())
    await visit.page.getByText(/^No answer since /).waitFor({ state: 'detached' })
    await visit.page
      .getByText(/^Stale since /)
      .first()
      .waitFor({ state: 'detached' })
    visit.blameless()
  })

  test('asks nothing while it cannot be seen', async (t) => {
    const instance = await startFake()
    t.after(() => instance.stop())
    const visit = await Visit.to(browser, instance.url)
    t.after(() => visit.close())
    await visit.page.clock.install()
    await visit.open('overview')
    await visit.settled()
    const asked = async (seconds: number): Promise<number> => {
      const before = visit.asked.length
      for (let second = 0; second < seconds; second++) await visit.page.clock.runFor(1000)
      return visit.asked.length - before
    }
    assert.ok((await asked(10)) > 0, 'it asks while it is seen')
    await visit.page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })")
    // What was asked while it was seen is answered first.
    for (const endMs = performance.now() + 60_000; visit.pending > 0 && performance.now() < endMs; ) await asked(1)
    assert.equal(visit.pending, 0)
    assert.equal(await asked(30), 0)
    visit.blameless()
  })
})

function manyNodes(): ReturnType<typeof compile> {
  return compile((topology) => {
    for (let i = 0; i < 100; i++) {
      topology
        .stream(`in-${i}`)
        .filter(() => true)
        .to(`out-${i}`)
    }
  })
}
