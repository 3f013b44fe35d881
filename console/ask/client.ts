/** One question to one endpoint. The page lies at `console/`, the endpoints beside it, wherever that is mounted. */

export const base = new URL('..', document.baseURI).href.replace(/\/$/, '')
const answerTimeoutMs = 8000
const tokenKey = 'millrace.token'

export const settings = {
  readOnly: document.documentElement.dataset.readOnly === 'true',
  tokenNeeded: document.documentElement.dataset.token === 'true',
}

/** `status` 0: nobody answered. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** For this tab alone: it is forgotten with it. */
export function token(): string | null {
  return sessionStorage.getItem(tokenKey)
}

export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(tokenKey)
  else sessionStorage.setItem(tokenKey, value)
}

export async function ask<T>(path: string, method: 'GET' | 'POST' = 'GET', accept = 'application/json'): Promise<T> {
  const held = token()
  const headers = { accept, ...(held === null ? {} : { authorization: `Bearer ${held}` }) }
  let response: Response
  let text: string
  try {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    response = await fetch(`${base}${path}`, { method, headers, signal, cache: 'no-store' })
    text = await response.text()
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    throw new Refusal(0, isLate ? 'the process does not answer in time' : 'the process does not answer')
  }
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  const body = isJson ? (JSON.parse(text) as unknown) : text
  if (!response.ok) throw new Refusal(response.status, sentenceOf(body, response.status))
  return body as T
}

function sentenceOf(body: unknown, status: number): string {
  const said = (body as { readonly error?: unknown } | null)?.error
  return typeof said === 'string' ? said : `the answer is ${status}`
}

/** The same question for a terminal. The token stays out of it. */
export function curl(path: string, method = 'GET', accept?: string): string {
  const words = ['curl', '-s', ...(method === 'GET' ? [] : ['-X', method])]
  if (settings.tokenNeeded) words.push('-H', '"Authorization: Bearer $TOKEN"')
  if (accept !== undefined) words.push('-H', `'Accept: ${accept}'`)
  return [...words, `'${base}${path}'`].join(' ')
}
