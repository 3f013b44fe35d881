/** The console's files, as they were built. They hold nothing of the application: no token is asked for them. */
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants } from 'node:zlib'
import Negotiator from 'negotiator'
import { error, type Reply } from '../routes/reply.ts'

/** As the repository and the package have it. */
const builtFolder = fileURLToPath(new URL('../../../console/dist', import.meta.url))

const files = {
  '/console/': { file: 'index.html', contentType: 'text/html; charset=utf-8' },
  '/console/app.js': { file: 'app.js', contentType: 'text/javascript; charset=utf-8' },
  '/console/app.css': { file: 'app.css', contentType: 'text/css; charset=utf-8' },
  '/console/icon.svg': { file: 'icon.svg', contentType: 'image/svg+xml' },
  '/console/licenses.txt': { file: 'licenses.txt', contentType: 'text/plain; charset=utf-8' },
} as const

/** Nothing but what this process serves: no other host but the pods that are configured, no text made to code. */
function policyOf(pods: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    ["connect-src 'self'", ...pods].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}

export interface PagesOptions {
  readonly enabled: boolean
  readonly readOnly: boolean
  readonly tokenNeeded: boolean
  /** Origins that the page may ask beside its own. */
  readonly pods: readonly string[]
  /** Default: where they are built to. */
  readonly folder?: string
}

interface Page {
  readonly contentType: string
  readonly plain: Buffer
  brotli?: Buffer
}

export interface Pages {
  /** Where the console begins; none where it is off or not built. */
  readonly endpoints: readonly string[]
  /** Answers for the console's paths, and for `/` where a browser asks; undefined for all others. */
  readonly answer: (method: string, path: string, headers: IncomingHttpHeaders) => Reply | undefined
}

export function pagesOf(options: PagesOptions): Pages {
  if (!options.enabled) return { endpoints: [], answer: () => undefined }
  const folder = options.folder ?? builtFolder
  const known = new Map<string, Page>()
  const policy = policyOf(options.pods)
  const isBuilt = existsSync(join(folder, 'index.html'))
  const answer: Pages['answer'] = (method, path, headers) => {
    const toConsole = path === '/console' ? 'console/' : path === '/' && wantsHtml(headers) ? 'console/' : undefined
    const isOurs = Object.hasOwn(files, path)
    if (toConsole === undefined && !isOurs) return undefined
    if (method !== 'GET') return error(405, `method not allowed; ${path} accepts GET`, { Allow: 'GET' })
    if (!isBuilt) return error(404, 'the console is not built in this copy; `npm run console` builds it')
    if (toConsole !== undefined) return moved(toConsole)
    const page = known.get(path) ?? load(folder, path as keyof typeof files, options)
    if (page === undefined) return error(404, 'a file of the console is missing; `npm run console` builds it anew')
    known.set(path, page)
    return replyOf(page, policy, headers)
  }
  return { endpoints: isBuilt ? ['/console/'] : [], answer }
}

function wantsHtml({ accept }: IncomingHttpHeaders): boolean {
  return accept !== undefined && /\btext\/html\b/i.test(accept)
}

function moved(location: string): Reply {
  const headers = { Location: location, Vary: 'Accept' }
  return { status: 302, contentType: 'text/plain; charset=utf-8', body: `see ${location}\n`, headers }
}

/** Undefined where the file is gone, as it is while the console is built. */
function load(folder: string, path: keyof typeof files, options: PagesOptions): Page | undefined {
  const { readOnly, tokenNeeded, pods } = options
  const { file, contentType } = files[path]
  const place = join(folder, file)
  if (!existsSync(place)) return undefined
  const bytes = readFileSync(place)
  if (file !== 'index.html') return { contentType, plain: bytes }
  const text = bytes
    .toString()
    .replace('data-read-only="false"', `data-read-only="${readOnly}"`)
    .replace('data-token="false"', `data-token="${tokenNeeded}"`)
    .replace('data-pods=""', `data-pods="${pods.join(' ')}"`)
  return { contentType, plain: Buffer.from(text) }
}

function replyOf(page: Page, policy: string, headers: IncomingHttpHeaders): Reply {
  const common = { 'Content-Security-Policy': policy, Vary: 'Accept-Encoding' }
  const encodings = new Negotiator({ headers }).encodings(['br', 'identity'])
  if (headers['accept-encoding'] === undefined || encodings[0] !== 'br') {
    return { status: 200, contentType: page.contentType, body: page.plain, headers: common }
  }
  page.brotli ??= brotliCompressSync(page.plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })
  const body = page.brotli
  return { status: 200, contentType: page.contentType, body, headers: { ...common, 'Content-Encoding': 'br' } }
}
