/** Several processes in one console: two real ones, each with a token of its own, side by side in a real browser. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { refreshConsole } from '../../scripts/console.ts'
import { freePorts } from '../../scripts/free-ports.ts'
import { eventually, type RunningCommand, startMillrace } from '../support/millrace.ts'
import { startBrowser } from './support/browser.ts'
import { Visit } from './support/visit.ts'

await refreshConsole()
const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
const app = join(import.meta.dirname, '..', 'http', 'apps', 'data-app.ts')
const patienceMs = 240_000

after(async () => {
  if (typeof found !== 'string') await found.close()
})

function start(url: string, token: string, pods: readonly string[]): RunningCommand {
  const settings = {
    'runtime.http.host': '127.0.0.1',
    'runtime.http.port': new URL(url).port,
    'runtime.http.auth.token': token,
    'runtime.http.console.pods': pods.join(','),
    'engine.lanes.count': '1',
    'engine.state.store': 'memory',
  }
  const set = Object.entries(settings).flatMap(([key, value]) => ['--set', `${key}=${value}`])
  return startMillrace(['run', app, ...set], { timeoutMs: 600_000 })
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/health/ready`).then(
    ({ ok }) => ok,
    () => false,
  )
}

describe('a console of several processes', { skip }, () => {
  test('shows them side by side, and the pages of the one that is chosen, to be read', async (t) => {
    const [one, two] = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`) as [string, string]
    const first = start(one, 'token-one', [one, two])
    const second = start(two, 'token-two', [one, two])
    t.after(async () => {
      for (const each of [first, second]) each.child.kill('SIGKILL')
      await Promise.all([first.result, second.result])
    })
    for (const [url, { stderr }] of [
      [one, first],
      [two, second],
    ] as const) {
      await eventually(`${url} is ready\n${stderr()}`, () => isReady(url), patienceMs)
    }
    const visit = await Visit.to(browser, one, { mayRefuse: [401], mayBeSilent: true, mayAsk: [two] })
    t.after(() => visit.close())
    const { page } = visit
    await page.goto(`${one}/console/`)
    await page.locator('input[type=password]').fill('token-one')
    await page.keyboard.press('Enter')
    const row = (url: string) => page.getByRole('row', { name: new RegExp(url) })
    await row(one).getByRole('cell', { name: 'FLOWING', exact: true }).waitFor()
    await page.getByLabel(`Token of ${two}`).fill('token-two')
    assert.deepEqual(await visit.violations(), [])
    await page.keyboard.press('Enter')
    await row(two).getByRole('cell', { name: 'FLOWING', exact: true }).waitFor()

    const show = page.getByRole('button', { name: `Show ${two}` })
    await show.focus()
    await page.keyboard.press('Enter')
    await page.getByText(`at ${two}, read only`).waitFor()
    await visit.open('overview')
    await page.getByText('Indicators of readiness').waitFor({ state: 'attached' })
    assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0)
    await visit.open('config')
    await page.getByRole('searchbox', { name: 'Search' }).fill('runtime.http.port')
    await page.getByText(new URL(two).port, { exact: true }).first().waitFor()

    second.child.kill('SIGKILL')
    await page.getByText(/^No answer since /).waitFor()
    // The page is loaded anew: who goes elsewhere meanwhile is taken back to where the button was.
    const loaded = page.waitForEvent('load')
    await page.getByRole('button', { name: 'Back to this process' }).click()
    await loaded
    await visit.open('overview')
    await row(two).getByRole('cell', { name: 'SILENT', exact: true }).waitFor()
    await row(one).getByRole('cell', { name: 'FLOWING', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    visit.blameless()
  })
})
