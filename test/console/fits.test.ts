/** What is long or large has its place: names of 70 letters on a telephone, topologies of a hundred nodes. */
import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { refreshConsole } from '../../scripts/console.ts'
import { compile, serdes, type Topology, tumbling } from '../../src/index.ts'
import type { Refused } from '../../src/http/data-seam.ts'
import { FakeEngine } from '../http/support/fake-engine.ts'
import { startFake } from '../http/support/fake-subject.ts'
import { startBrowser } from './support/browser.ts'
import { pageNames, Visit } from './support/visit.ts'

const found = await startBrowser()
const skip = typeof found === 'string' ? found : false
const browser = found as Browser
await refreshConsole()

after(async () => {
  if (typeof found !== 'string') await found.close()
})

const longName = 'customers-with-a-rather-long-name-that-goes-on-and-on-and-never-ends-1'

async function visitTo(t: TestContext, build: (topology: Topology) => void, wide: number, high: number) {
  const engine = new FakeEngine()
  engine.compiled = compile(build)
  assert.ok(engine.offsetsSnapshot !== null)
  const changelogs = [...engine.compiled.stores.keys()].map((store) => {
    return { store, topic: `application-${store}-changelog`, partitions: [] }
  })
  engine.offsetsSnapshot = { ...engine.offsetsSnapshot, changelogs }
  const refused = async (): Promise<Refused> => ({ refused: 404, reason: 'nobody asks for rows here' })
  const data = { rows: refused, deadLetters: refused, redrive: refused }
  const instance = await startFake({ config: { storesEndpointEnabled: true } }, engine, { data })
  t.after(() => instance.stop())
  const visit = await Visit.to(browser, instance.url)
  t.after(() => visit.close())
  await visit.page.setViewportSize({ width: wide, height: high })
  return visit
}

/** Steps one behind another, of which each counts twice; and a table that is met by the last one only. */
function large(topology: Topology): void {
  let events = topology.stream('events', { key: serdes.string, value: serdes.json<{ n: number }>() })
  const customers = topology.table(longName, { key: serdes.string, value: serdes.json<{ n: number }>() })
  for (let i = 0; i < 12; i++) {
    events = events.mapValues((value) => value).filter(() => true)
    const counts = events.groupBy(({ n }) => `g${n % (i + 3)}`).count({ store: `counts-${i}` })
    counts.toStream().to(`out-${i}`)
    const windows = events
      .groupByKey()
      .windowedBy(tumbling('10s'))
      .count({ store: `windows-${i}` })
    windows.toStream().to(`windows-out-${i}`)
  }
  events.leftJoin(customers, (value, customer) => ({ ...value, customer })).to('joined')
}

interface Box {
  readonly left: number
  readonly top: number
  readonly right: number
  readonly bottom: number
}

interface Shown {
  readonly canvas: Box
  readonly nodes: ReadonlyArray<Box & { readonly told: string }>
  /** How high letters are on the screen, in pixels. */
  readonly letters: number
}

const shown = `(() => {
  const box = (element) => {
    const { left, top, right, bottom } = element.getBoundingClientRect()
    return { left, top, right, bottom }
  }
  const canvas = document.querySelector('.canvas')
  const text = canvas.querySelector('g.node text')
  return {
    canvas: box(canvas),
    nodes: [...canvas.querySelectorAll('g.node')].map((node) => ({ ...box(node), told: node.textContent })),
    letters: Math.round(Number.parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a),
  }
})()`

const linesOfCells = `[...document.querySelectorAll('section[aria-label^="State stores"] :is(th, td)')].map((cell) => {
  const range = document.createRange()
  range.selectNodeContents(cell)
  const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)))
  return { text: cell.textContent, lines: tops.size }
})`

const isWithin = (inner: Box, outer: Box): boolean =>
  inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom

describe('the console', { skip }, () => {
  test('shows every page on a telephone without moving it sideways, whatever names are like', async (t) => {
    const visit = await visitTo(t, large, 320, 640)
    for (const name of pageNames) {
      await visit.open(name)
      await visit.settled()
      const over = await visit.page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      assert.equal(over, 0, `${name} is ${over} px wider than the screen`)
    }
    visit.blameless()
  })

  for (const wide of [320, 820, 1280]) {
    test(`gives the columns of a table room for their words on a screen of ${wide} pixels`, async (t) => {
      const visit = await visitTo(t, large, wide, 640)
      await visit.open('stores')
      await visit.page.getByRole('combobox', { name: 'Store' }).waitFor()
      const cells = await visit.page.evaluate<Array<{ text: string; lines: number }>>(linesOfCells)
      assert.ok(cells.length > 25 * 8)
      for (const { text, lines } of cells) {
        assert.ok(lines <= Math.max(1, text.length / 4), `${text} takes ${lines} lines`)
      }
      visit.blameless()
    })
  }

  test('opens a large topology at its sources, such that it can be read; a button shows all of it', async (t) => {
    const visit = await visitTo(t, large, 1280, 800)
    await visit.open('topology')
    await visit.page.locator('g.node').first().waitFor()
    const { canvas, nodes, letters } = await visit.page.evaluate<Shown>(shown)
    assert.ok(nodes.length > 60)
    const source = nodes.find(({ told }) => told.startsWith('events'))
    assert.ok(source && isWithin(source, canvas), 'the source is in view')
    assert.ok(letters >= 9, `letters are ${letters} px high`)
    await visit.page.getByRole('button', { name: 'Fit all' }).click()
    await visit.until(`document.querySelector('.graph .tools span').textContent === '75 %'`, false)
    const all = await visit.page.evaluate<Shown>(shown)
    assert.deepEqual(
      all.nodes.filter((node) => !isWithin(node, all.canvas)),
      [],
    )
    visit.blameless()
  })

  test('opens a small topology as a whole', async (t) => {
    const small = (topology: Topology): void =>
      topology
        .stream('in')
        .filter(() => true)
        .to('out')
    const visit = await visitTo(t, small, 1280, 800)
    await visit.open('topology')
    await visit.page.locator('g.node').first().waitFor()
    const { canvas, nodes } = await visit.page.evaluate<Shown>(shown)
    assert.ok(nodes.length >= 4 && nodes.every((node) => isWithin(node, canvas)))
    visit.blameless()
  })
})
