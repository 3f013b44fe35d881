/** Every page of the console in a real browser, over the running engine. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { refreshConsole } from '../../scripts/console.ts'
import { endLeftThreads, type Live, startLive } from '../http/support/live.ts'
import { startBrowser } from './support/browser.ts'
import { pageNames, Visit } from './support/visit.ts'

await refreshConsole()
const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
const t0 = 1_700_000_000_000

after(async () => {
  if (typeof found !== 'string') await found.close()
  endLeftThreads()
})

describe('the console over a running engine', { skip }, () => {
  let live: Live

  before(async () => {
    live = await startLive({
      app: 'data-app',
      config: {
        'runtime.endpoints.stores.enabled': true,
        'runtime.endpoints.dead-letters.enabled': true,
        'errors.processing': 'dead-letter',
      },
    })
    await live.untilState('RUNNING')
    const events = Array.from({ length: 120 }, (_, i) => {
      return { key: `key-${i}`, value: { amount: i % 9, fail: i % 40 === 0 }, timestamp: t0 + i * 500 }
    })
    await live.feed('events', events)
    await live.runtime.untilIdle()
  })
  after(() => live.stop())

  for (const dark of [false, true]) {
    test(`shows every page ${dark ? 'dark' : 'light'}, with nothing that axe objects to`, async (t) => {
      const visit = await Visit.to(browser, live.url, { dark })
      t.after(() => visit.close())
      for (const name of pageNames) {
        await visit.open(name)
        await visit.settled()
        assert.deepEqual(await visit.violations(), [], name)
      }
      visit.blameless()
    })
  }

  test('leads a browser from / to the first page, where the verdict stands first', async (t) => {
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.page.goto(`${live.url}/`)
    await visit.settled()
    assert.match(visit.page.url(), /\/console\//)
    assert.equal(await visit.page.locator('.panel h2').first().textContent(), 'Verdict')
    await visit.page.getByText('FLOWING').first().waitFor()
    visit.blameless()
  })

  test('draws the topology, and says of a node what it is, by keyboard', async (t) => {
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.open('topology')
    const node = visit.page.getByRole('button', { name: /^events *topic/ })
    await node.press('Enter')
    await visit.page.getByRole('region', { name: 'About events' }).waitFor()
    await visit.page.getByRole('searchbox', { name: 'Search' }).fill('by-amount')
    await visit.page.getByText(/^[1-9]\d* found$/).waitFor()
    visit.blameless()
  })

  test('looks up a key, and pages through rows', async (t) => {
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.open('stores?store=counts')
    await visit.page.getByRole('button', { name: 'Read', exact: true }).click()
    await visit.page.getByRole('cell', { name: 'key-1', exact: true }).waitFor()
    for (const key of ['key-55', 'key-99']) {
      await visit.page.getByRole('button', { name: 'Next page' }).click()
      await visit.page.getByRole('cell', { name: key, exact: true }).waitFor()
    }
    await visit.page.getByLabel('Key', { exact: true }).fill('key-7')
    await visit.page.getByLabel('From').fill('')
    await visit.page.keyboard.press('Enter')
    const rows = '\'section[aria-label="Rows, table"] tbody tr\''
    await visit.until(`document.querySelectorAll(${rows}).length`, 1)
    await visit.page.getByRole('cell', { name: 'key-7', exact: true }).waitFor()
    visit.blameless()
  })

  test('shows dead letters with their reason, and puts them back once confirmed', async (t) => {
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.open('dead-letters')
    await visit.page.getByText('cannot take').first().waitFor()
    await visit.page.getByRole('button', { name: 'Put back …' }).click()
    const confirm = visit.page.getByRole('button', { name: 'Put back', exact: true })
    await confirm.waitFor()
    assert.ok(await confirm.isDisabled())
    assert.deepEqual(await visit.violations(), [])
    await visit.confirm('redrive')
    await visit.page.getByText('3 put back.').waitFor()
    await visit.until('document.activeElement.innerText', 'Put back …')
    visit.blameless()
  })

  test('pauses and resumes by keyboard alone', async (t) => {
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.open('overview')
    await visit.settled()
    await visit.tabTo('Pause')
    await visit.page.keyboard.press('Enter')
    await visit.page.locator('dialog[open] button[type=submit]:focus').waitFor()
    await visit.page.keyboard.press('Enter')
    await live.untilState('PAUSED')
    await visit.page.getByRole('dialog').waitFor({ state: 'detached' })
    await visit.page.getByText('PAUSED').first().waitFor()
    await visit.tabTo('Resume')
    await visit.page.keyboard.press('Enter')
    await visit.page.locator('dialog[open] button[type=submit]:focus').waitFor()
    await visit.page.keyboard.press('Enter')
    await live.untilState('RUNNING')
    visit.blameless()
  })
})

describe('a lane that is stuck', { skip }, () => {
  test('is found within two clicks: the verdict, then the threads', async (t) => {
    const live = await startLive({ app: 'scenario-app' })
    t.after(() => live.stop())
    await live.untilState('RUNNING')
    await live.feed('orders', [{ key: 'a', value: { loop: true }, timestamp: t0, partition: 0 }])
    await live.until('it is found', async () => String((await live.get('/why')).status) === 'STANDING')
    const visit = await Visit.to(browser, live.url)
    t.after(() => visit.close())
    await visit.open('overview')
    await visit.page.locator('.verdict.standing').waitFor()
    await visit.page.getByRole('link', { name: 'What the lanes are in' }).first().click()
    await visit.page
      .getByText(/loopWithoutEnd/)
      .first()
      .waitFor()
    visit.blameless()
  })
})
