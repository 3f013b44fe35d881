/** One question to the HTTP interface of a running application, for the verbs that look at one. */
import { readFileSync } from 'node:fs'
import { loadConfig } from '../../config/load.ts'
import { EngineError } from '../../base/errors.ts'
import { interfaceUrl } from '../ha/ha-client.ts'

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
  | { readonly ok: false; readonly status: number; readonly reason: string }

/** Longer than a lane is given for a question about its rows. */
const answerTimeoutMs = 15_000

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

export async function ask<T>({ url, token }: Pod, path: string, method = 'GET', accept?: string): Promise<Answer<T>> {
  const address = new URL(`${url.pathname.replace(/\/$/, '')}${path}`, url)
  const headers = {
    accept: accept ?? 'application/json',
    ...(token !== null && { authorization: `Bearer ${token}` }),
  }
  let response: Response
  let text: string
  try {
    response = await fetch(address, { method, headers, signal: AbortSignal.timeout(answerTimeoutMs) })
    text = await response.text()
  } catch (error) {
    const { cause, name } = error as { readonly cause?: { readonly code?: unknown }; readonly name?: string }
    const code = typeof cause?.code === 'string' ? cause.code : name
    const reason = `${url.origin} does not answer (${code}); --url names the process, as in http://localhost:8080.`
    return { ok: false, status: 0, reason }
  }
  const body = parsed(text)
  if (response.ok) return { ok: true, value: (body ?? text) as T }
  if (response.status === 401) {
    const how = 'give it with RUNTIME_HTTP_AUTH_TOKEN or --token-file <file>'
    return { ok: false, status: 401, reason: `${url.origin} asks for a token; ${how}.` }
  }
  const said = (body as { readonly error?: unknown } | undefined)?.error
  const reason = typeof said === 'string' ? said : `the answer is ${response.status}`
  return { ok: false, status: response.status, reason: `${path.split('?')[0]}: ${reason}.` }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
