/** One question to the HTTP interface of a running application, for the verbs that look at one. */
import { readFileSync } from 'node:fs'
import { loadConfig } from '../../config/load.ts'
import { EngineError } from '../../base/errors.ts'
import { blockedSentence, interfaceUrl, tokenSentence } from '../ha/ha-client.ts'

export interface AskArguments {
  readonly url: readonly string[]
  readonly tokenFile?: string
  readonly config?: string
  readonly set: readonly string[]
}

/** Somebody who can be asked. */
export interface Pod {
  readonly url: URL
  readonly token: string | null
}

export type Answer<T> =
  | { readonly ok: true; readonly value: T }
  /** `status` 0: nobody answered. */
  | {
      readonly ok: false
      readonly status: number
      readonly reason: string
      /** It was, and may do what it was asked for. */
      readonly reached?: true
      /** Of the process that has what was asked for. */
      readonly address?: string
    }

/** Longer than a lane is given for a question about its rows. */
const answerTimeoutMs = 15_000
/** Somebody listened there. An attempt to connect ends earlier than the wait for an answer, so that one counts, too. */
const codesOfReached = ['TimeoutError', 'UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'ECONNRESET', 'EPIPE']
const mostHops = 3
/** What a process serves only where its configuration says so. Where it is off, the path is unknown there. */
const switches: ReadonlyArray<readonly [path: RegExp, key: string]> = [
  [/^\/stores\/./, 'runtime.endpoints.stores.enabled'],
  [/^\/dead-letters/, 'runtime.endpoints.dead-letters.enabled'],
  [/^\/config/, 'runtime.endpoints.config.enabled'],
]

export function podsOf({ url, tokenFile, config: file, set }: AskArguments): Pod[] {
  const config = loadConfig({ environment: process.env, set, ...(file !== undefined && { file }) })
  const token = tokenFile === undefined ? config.get('runtime.http.auth.token') : tokenOf(tokenFile)
  const urls = url.length === 0 ? [undefined] : url
  return urls.map((each) => ({ url: interfaceUrl(config, each), token }))
}

function tokenOf(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new EngineError('USAGE', `--token-file: ${file} cannot be read (${code}); it is a file with the token.`)
  }
}

export interface Asking {
  readonly accept?: string
  readonly timeoutMs?: number
}

export async function ask<T>(
  { url, token }: Pod,
  path: string,
  method = 'GET',
  { accept = 'application/json', timeoutMs = answerTimeoutMs }: Asking = {},
): Promise<Answer<T>> {
  const address = new URL(`${url.pathname.replace(/\/$/, '')}${path}`, url)
  const headers = {
    accept,
    ...(token !== null && { authorization: `Bearer ${token}` }),
  }
  let response: Response
  let text: string
  try {
    response = await fetch(address, { method, headers, signal: AbortSignal.timeout(timeoutMs) })
    text = await response.text()
  } catch (error) {
    const blocked = blockedSentence(url)
    return blocked === undefined ? unanswered(url.origin, error, timeoutMs) : { ok: false, status: 0, reason: blocked }
  }
  const body = parsed(text)
  if (response.ok) return { ok: true, value: (body ?? text) as T }
  if (response.status === 401) {
    const reason = tokenSentence(url.origin, token, 'RUNTIME_HTTP_AUTH_TOKEN or --token-file <file>')
    return { ok: false, status: 401, reason }
  }
  const said = (body as { readonly error?: unknown } | undefined)?.error
  const key = switches.find(([of]) => of.test(path))?.[1]
  if (key !== undefined && response.status === 404 && String(said).startsWith('unknown path')) {
    const reason = `${url.origin} does not serve ${path.split('?')[0]}: set '${key}' there to true, and start it again.`
    return { ok: false, status: 404, reason }
  }
  const reason = `${path.split('?')[0]}: ${typeof said === 'string' ? said : `the answer is ${response.status}`}.`
  const { address: next } = (body ?? {}) as { readonly address?: unknown }
  const isElsewhere = response.status === 421 && typeof next === 'string'
  return { ok: false, status: response.status, reason, ...(isElsewhere && { address: next }) }
}

function unanswered(origin: string, error: unknown, timeoutMs: number): Answer<never> {
  const { cause, name } = error as { readonly cause?: { readonly code?: unknown }; readonly name?: string }
  const code = (typeof cause?.code === 'string' ? cause.code : name) ?? ''
  if (!codesOfReached.includes(code)) {
    const reason = `${origin} does not answer (${code}); --url names the process, as in http://localhost:8080.`
    return { ok: false, status: 0, reason }
  }
  const what = code === 'TimeoutError' ? `has not answered within ${timeoutMs / 1000} s` : `gave no answer (${code})`
  return { ok: false, status: 0, reason: `${origin} was reached, but ${what}.`, reached: true }
}

/** Asks whoever has it: as often as partitions move on meanwhile, and never in a circle. */
export async function askOwner<T>(pod: Pod, path: string): Promise<Answer<T>> {
  let [at, answer] = [pod, await ask<T>(pod, path)]
  for (let hops = 0; hops < mostHops && !answer.ok && answer.address !== undefined; hops++) {
    const url = URL.parse(answer.address)
    if (url === null) return answer
    // A token that went by TLS does not go on without.
    const isBare = at.url.protocol === 'https:' && url.protocol !== 'https:'
    at = { url, token: isBare ? null : at.token }
    answer = await ask<T>(at, path)
  }
  return answer
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
