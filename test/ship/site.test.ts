/** The documentation site: it builds, its links lead somewhere, its search is its own, and its results come of running. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type BuiltSite, buildSite } from '../../scripts/site.ts'
import { anchorsOf, type Page, relinked } from '../../scripts/site/links.ts'
import { startBrowser } from '../console/support/browser.ts'
import { repositoryRoot } from '../groups.ts'

const work = join(repositoryRoot, '.cache', `site-test-${process.pid}`)
const target = join(work, 'built')

const types: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/** Gives the files of a folder, as any server of files does. */
function serverOf(folder: string): ReturnType<typeof createServer> {
  return createServer((request, response) => {
    const file = join(folder, new URL(request.url ?? '/', 'http://site').pathname)
    if (!existsSync(file)) return void response.writeHead(404).end()
    response.setHeader('content-type', types[extname(file)] ?? 'application/octet-stream').end(readFileSync(file))
  })
}

describe('the documentation site', () => {
  let site: BuiltSite
  before(async () => {
    site = await buildSite(target, work, false)
  })
  after(() => rmSync(work, { recursive: true, force: true }))

  test('has every page, and they ask no other place for anything', () => {
    for (const path of site.pages.keys()) {
      const file = join(target, path.replace(/\.md$/, '.html'))
      assert.ok(existsSync(file), path)
      const asked = [
        ...readFileSync(file, 'utf8').matchAll(/(?:src|href)="(https?:[^"]+)"[^>]*(?:rel="stylesheet"|><\/script>)/g),
      ]
      assert.deepEqual(
        asked.map(([, url]) => url),
        [],
        path,
      )
    }
  })

  test('shows of each operator its code, what goes in, and what came out when it ran', () => {
    assert.ok(site.operators.length > 50, `${site.operators.length} operators`)
    for (const { handle, name, text } of site.operators) {
      assert.match(text, /## Example\n\n```ts/, `${handle}.${name}`)
      assert.match(text, /\| Out of \| Key \| Value \|\n\|---\|---\|---\|\n\| /, `${handle}.${name}`)
    }
    const filter = site.operators.find(({ handle, name }) => handle === 'Stream' && name === 'filter')
    assert.match(filter?.text ?? '', /\| `orders` \| `"ann"` \| `\{"amount":50\}` \| 0 s \|/)
    assert.match(filter?.text ?? '', /gives\n\n.*\n.*\n\| `large` \| `"bob"` \| `\{"amount":150\}` \|/)
  })

  test('is searched without a server', () => {
    const chunks = readdirSync(join(target, 'assets', 'chunks')).filter((name) => name.includes('localSearchIndex'))
    assert.ok(chunks.length > 0)
    const index = readFileSync(join(target, 'assets', 'chunks', chunks[0] as string), 'utf8')
    for (const word of ['grace', 'traceparent', 'operators/Stream-filter']) assert.ok(index.includes(word), word)
  })

  test('draws every diagram, with a script of its own', async (t) => {
    const browser = await startBrowser()
    if (typeof browser === 'string') return t.skip(browser)
    const server = serverOf(target)
    try {
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const page = await browser.newPage()
      const strangers: string[] = []
      page.on('request', (request) => {
        if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(address)) strangers.push(request.url())
      })
      let diagrams = 0
      for (const [path, { text }] of site.pages) {
        const count = [...text.matchAll(/^```mermaid$/gm)].length
        if (count === 0) continue
        diagrams += count
        await page.goto(`${address}/${path.replace(/\.md$/, '.html')}`)
        const drawn = "document.querySelectorAll('.language-mermaid figure svg').length"
        await page.waitForFunction(`${drawn} === ${count}`, undefined, { timeout: 120_000 })
        assert.equal(await page.locator('.language-mermaid .error-icon').count(), 0, path)
      }
      assert.ok(diagrams >= 5, `${diagrams} diagrams`)
      assert.deepEqual(strangers, [])
    } finally {
      await browser.close()
      server.close()
    }
  })

  test('leads to pages from everywhere: no link of a page is that of the repository', () => {
    const html = readFileSync(join(target, 'guide', 'shipping.html'), 'utf8')
    assert.match(html, /href="\/guide\/standstills\.html/)
  })
})

test('a link to nowhere is found: a page, a heading, a picture; what is only in the repository keeps its text', () => {
  const page = (source: string, text: string): Page => ({ source, text })
  const pages = new Map([
    [
      'a.md',
      page(
        'docs/a.md',
        '[b](b.md#two-words) [c](c.md) [d](b.md#none) ![e](e.png) [f](../package.json) `[g](g.md)`\n```\n[h](h.md)\n```',
      ),
    ],
    ['b.md', page('docs/b.md', '# One\n## Two `words`\n```sh\n# None\n```')],
  ])
  const dead: string[] = []
  const text = relinked('a.md', pages, repositoryRoot, dead)
  assert.deepEqual(dead, ['a.md: c.md', 'a.md: b.md#none', 'a.md: e.png', 'a.md: g.md'])
  assert.match(text, /^\[b\]\(\.\/b\.md#two-words\) c d e f /)
  assert.match(text, /\[h\]\(h\.md\)/)
  assert.deepEqual([...anchorsOf('# A\n# A\n# What `it` does, now')], ['a', 'a-1', 'what-it-does-now'])
})
