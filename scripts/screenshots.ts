/**
 * Makes the pictures of the console's pages, dark and light, in `docs/console`: `node scripts/screenshots.ts`. They show an
 * application of the tests. `CHROMIUM` names a browser where none is found.
 */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBrowser } from '../test/console/support/browser.ts'
import { pageNames, Visit } from '../test/console/support/visit.ts'
import { endLeftThreads, startLive } from '../test/http/support/live.ts'
import { consoleDigest, refreshConsole } from './console.ts'

export const pictureFolder = join(import.meta.dirname, '..', 'docs', 'console')
/** Names the console that the pictures show. */
export const digestFile = join(pictureFolder, 'digest.txt')

async function makeAll(): Promise<void> {
  await refreshConsole()
  const browser = await startBrowser()
  if (typeof browser === 'string') throw new Error(browser)
  const live = await startLive({
    app: 'data-app',
    config: {
      'runtime.endpoints.stores.enabled': true,
      'runtime.endpoints.dead-letters.enabled': true,
      'errors.processing': 'dead-letter',
    },
  })
  await live.untilState('RUNNING')
  const now = Date.now()
  const events = Array.from({ length: 400 }, (_, i) => {
    return { key: `key-${i % 60}`, value: { amount: i % 9, fail: i % 80 === 0 }, timestamp: now - 200_000 + i * 500 }
  })
  await live.feed('events', events)
  await live.runtime.untilIdle()
  // The last quarter of an hour is told in steps of five seconds.
  await live.until('there is a history', async () => {
    const { history } = await live.get('/flow?history=true')
    return ((history as unknown as { atMs: number[] }).atMs.length ?? 0) > 3
  })
  mkdirSync(pictureFolder, { recursive: true })
  for (const file of readdirSync(pictureFolder).filter((name) => name.endsWith('.png')))
    rmSync(join(pictureFolder, file))
  for (const theme of ['light', 'dark'] as const) {
    const visit = await Visit.to(browser, live.url, { dark: theme === 'dark' })
    for (const name of pageNames) {
      await visit.open(name)
      await visit.settled()
      await visit.page.screenshot({ path: join(pictureFolder, `${name}-${theme}.png`) })
    }
    visit.blameless()
    await visit.close()
  }
  writeFileSync(digestFile, `${consoleDigest()}\n`)
  await browser.close()
  await live.stop()
  endLeftThreads()
}

if (import.meta.main) await makeAll()
