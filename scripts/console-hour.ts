/**
 * What the console is like when it stays open: `node scripts/console-hour.ts [minutes]` (60). Runs a re-key and count under
 * a steady feed, opens the first page in a real Chromium, and prints the first paint, the heap and the elements of the
 * page as they go, and the questions asked while the tab is hidden.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startBrowser } from '../test/console/support/browser.ts'
import { startLive } from '../test/http/support/live.ts'

const minutes = Number(process.argv[2] ?? 60)
const looks = 6
const paints = 5
const hiddenForMs = 20_000

const browser = await startBrowser()
if (typeof browser === 'string') throw new Error(browser)
const live = await startLive({ app: 'load-app', config: { 'broker.embedded.partitions': 4, 'log.level': 'error' } })
await live.untilState('RUNNING')
let fed = 0
let isOver = false
const feeding = (async () => {
  while (!isOver) {
    const batch = Array.from({ length: 50 }, (_, i) => ({
      key: `k${(fed + i) % 5000}`,
      value: { page: fed + i, agent: 'a browser', at: Date.now() },
      timestamp: Date.now(),
    }))
    fed += batch.length
    await live.feed('hits', batch)
    await sleep(500)
  }
})()

const page = await browser.newPage({ locale: 'en-US' })
let asked = 0
page.on('request', () => asked++)
for (let i = 0; i < paints; i++) {
  await page.goto(`${live.url}/console/`)
  await page.waitForSelector('h1')
  await page.screenshot()
  const paintMs = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1)
  process.stdout.write(`first paint after ${Math.round(paintMs)} ms\n`)
}
const devtools = await page.context().newCDPSession(page)
await devtools.send('HeapProfiler.enable')
const startedAt = Date.now()
for (let i = 0; i <= looks; i++) {
  await sleep(i === 0 ? 30_000 : (minutes * 60_000 - 30_000) / looks)
  await devtools.send('HeapProfiler.collectGarbage')
  const { usedSize } = await devtools.send('Runtime.getHeapUsage')
  const { nodes, jsEventListeners } = await devtools.send('Memory.getDOMCounters')
  const openFor = Math.round((Date.now() - startedAt) / 1000)
  process.stdout.write(
    `${openFor} s: heap ${(usedSize / 1024 / 1024).toFixed(2)} MiB, ${nodes} elements, ${jsEventListeners} listeners, ${asked} questions\n`,
  )
}
await page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true })")
await sleep(3000)
const before = asked
await sleep(hiddenForMs)
process.stdout.write(`hidden for ${hiddenForMs / 1000} s: ${asked - before} questions\n`)
isOver = true
await feeding
await browser.close()
await live.stop()
process.exit()
