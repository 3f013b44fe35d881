/** A tab on the console of one process, and what must hold of all of them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, BrowserContext, Page, Request } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
const patienceMs = Number(process.env.BROWSER_PATIENCE_MS ?? 60_000)

export const pageNames = [
  'overview',
  'topology',
  'time',
  'lag',
  'commits',
  'threads',
  'stores',
  'ha',
  'config',
  'license',
  'endpoints',
  'dead-letters',
] as const

export interface VisitOptions {
  /** Answers that a page may be refused with: the browser notes each on its console. */
  readonly mayRefuse?: readonly number[]
  /** The process goes away on purpose. */
  readonly mayBeSilent?: boolean
  readonly dark?: boolean
  /** What the browser calls its language. */
  readonly language?: string
  /** Where the browser is, as the IANA names it. */
  readonly timezone?: string
  /** Origins beside that of the process. */
  readonly mayAsk?: readonly string[]
}

export class Visit {
  readonly page: Page
  readonly asked: string[] = []
  readonly #context: BrowserContext
  readonly #url: string
  readonly #faults: string[] = []
  readonly #pending = new Set<Request>()

  private constructor(context: BrowserContext, page: Page, url: string, options: VisitOptions) {
    this.#context = context
    this.page = page
    this.#url = url
    const origins = [new URL(url).origin, ...(options.mayAsk ?? [])]
    page.on('request', (request) => {
      this.asked.push(request.url())
      this.#pending.add(request)
      if (!/^(data|blob):/.test(request.url()) && !origins.includes(new URL(request.url()).origin)) {
        this.#faults.push(`asks another host: ${request.url()}`)
      }
    })
    page.on('requestfinished', (request) => this.#pending.delete(request))
    page.on('requestfailed', (request) => this.#pending.delete(request))
    page.on('pageerror', (error) => this.#faults.push(`throws: ${error.message}`))
    page.on('console', (message) => {
      if (message.type() !== 'error' && message.type() !== 'warning') return
      const refused = /status of (\d+)/.exec(message.text())?.[1]
      if (refused !== undefined && options.mayRefuse?.includes(Number(refused)) === true) return
      if (options.mayBeSilent === true && message.text().includes('net::ERR_')) return
      this.#faults.push(`console: ${message.text()} (${message.location().url})`)
    })
  }

  static async to(browser: Browser, url: string, options: VisitOptions = {}): Promise<Visit> {
    const context = await browser.newContext({
      colorScheme: options.dark === true ? 'dark' : 'light',
      locale: 'en-US',
      ...(options.timezone !== undefined && { timezoneId: options.timezone }),
      viewport: { width: 1280, height: 900 },
    })
    const page = await context.newPage()
    page.setDefaultTimeout(patienceMs)
    if (options.language !== undefined) {
      const getter = `{ get: () => ${JSON.stringify(options.language)}, configurable: true }`
      await page.addInitScript(`Object.defineProperty(Navigator.prototype, 'language', ${getter})`)
    }
    return new Visit(context, page, url, options)
  }

  async open(name: string): Promise<void> {
    await this.page.goto(`${this.#url}/console/#/${name}`)
    const page = name.split('?')[0]
    try {
      // The address changes first, and what the page before showed stands there for a moment longer.
      await this.page.locator(`nav a[aria-current=page][href="#/${page}"]`).waitFor()
      await this.page.locator('main h1').waitFor()
    } catch (error) {
      this.blameless()
      throw error
    }
  }

  /** Every panel has an answer, or says why not. */
  async settled(): Promise<void> {
    await this.page.locator('.panel').first().waitFor()
    await this.until('document.body.innerText.includes("Asking …")', false)
  }

  /** Waits for what an expression gives. The page's own policy forbids to evaluate text from inside it. */
  async until(expression: string, wanted: unknown): Promise<void> {
    for (const endMs = performance.now() + patienceMs; ; ) {
      const given = await this.page.evaluate<unknown>(expression)
      if (given === wanted) return
      if (performance.now() > endMs) assert.equal(given, wanted, expression)
      await sleep(50)
    }
  }

  /** Types into the field of the open dialog that wants it. */
  async confirm(word: string): Promise<void> {
    await this.page.locator('dialog[open] input[autocomplete=off]:focus').waitFor()
    await this.page.keyboard.type(word)
    await this.page.locator('dialog[open] button[type=submit]:enabled').waitFor()
    await this.page.keyboard.press('Enter')
  }

  /** Questions that are still under way. */
  get pending(): number {
    return this.#pending.size
  }

  /** Violations of the rules that axe knows, by rule and place. */
  async violations(): Promise<string[]> {
    await this.page.evaluate(axeSource)
    return await this.page.evaluate(async () => {
      type Axe = { run(): Promise<{ violations: Array<{ id: string; nodes: Array<{ html: string }> }> }> }
      const { violations } = await (globalThis as unknown as { axe: Axe }).axe.run()
      return violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 200)}`))
    })
  }

  /** No error, and no word to anybody else. */
  blameless(): void {
    assert.deepEqual(this.#faults, [])
  }

  /** Moves the focus with Tab until it is where it should be, once there is something enabled to go to. */
  async tabTo(name: string | RegExp): Promise<void> {
    const exact = typeof name === 'string'
    await this.page.getByRole('button', { name, exact, disabled: false }).first().waitFor()
    for (let keys = 0; keys < 200; keys++) {
      const focused = await this.page.evaluate<string>(
        "document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? ''",
      )
      if (typeof name === 'string' ? focused.trim() === name : name.test(focused)) return
      await this.page.keyboard.press('Tab')
    }
    assert.fail(`${name} cannot be reached by keyboard`)
  }

  async close(): Promise<void> {
    await this.#context.close()
  }
}
