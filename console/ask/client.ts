/** One question to one endpoint. The page lies at `console/`, the endpoints beside it, wherever that is mounted. */

export const home = new URL('..', document.baseURI).href.replace(/\/$/, '')

/** Other processes that may be asked. */
export const pods: readonly string[] = (document.documentElement.dataset.pods ?? '')
  .split(' ')
  .filter((pod) => pod !== '' && pod !== new URL(home).origin)

const chosenKey = 'millrace.pod'

/** The process whose pages are shown. */
export const base = pods.find((pod) => pod === sessionStorage.getItem(chosenKey)) ?? home

export function showPod(pod: string): void {
  sessionStorage.setItem(chosenKey, pod)
  location.reload()
}

const answerTimeoutMs = 8000
const tokenKey = 'millrace.token'

export const settings = {
  /** What another process is told to do, its own console tells it: pages of this origin only read there. */
  readOnly: document.documentElement.dataset.readOnly === 'true' || base !== home,
  tokenNeeded: document.documentElement.dataset.token === 'true',
}

/** `status` 0: nobody answered. */
export class Refusal extends Error {
  readonly status: number
  /** The whole answer: a probe that says DOWN says why as well. */
  readonly body: unknown

  constructor(status: number, message: string, body?: unknown) {
    super(message)
    this.status = status
    this.body = body
  }

  /** Of the process that has what was asked for. */
  get address(): string | undefined {
    const said = (this.body as { readonly address?: unknown } | null | undefined)?.address
    return typeof said === 'string' && /^https?:\/\//.test(said) ? said : undefined
  }
}

/** Each process has its own, for this tab alone: it is forgotten with it. */
export function token(at = base): string | null {
  return sessionStorage.getItem(tokenKeyOf(at))
}

export function setToken(value: string | null, at = base): void {
  if (value === null) sessionStorage.removeItem(tokenKeyOf(at))
  else sessionStorage.setItem(tokenKeyOf(at), value)
}

function tokenKeyOf(at: string): string {
  return at === home ? tokenKey : `${tokenKey} ${at}`
}

export async function ask<T>(
  path: string,
  method: 'GET' | 'POST' = 'GET',
  accept = 'application/json',
  at = base,
): Promise<T> {
  const held = token(at)
  const headers = { accept, ...(held === null ? {} : { authorization: `Bearer ${held}` }) }
  let response: Response
  let text: string
  try {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    response = await fetch(`${at}${path}`, { method, headers, signal, cache: 'no-store' })
    text = await response.text()
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    throw new Refusal(0, isLate ? 'the process does not answer in time' : 'the process does not answer')
  }
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  const body = isJson ? (JSON.parse(text) as unknown) : text
  if (!response.ok) throw new Refusal(response.status, sentenceOf(body, response.status), body)
  return body as T
}

function sentenceOf(body: unknown, status: number): string {
  const said = (body as { readonly error?: unknown } | null)?.error
  return typeof said === 'string' ? said : `the answer is ${status}`
}

/** The same question for a terminal. The token stays out of it. */
export function curl(path: string, method = 'GET', accept?: string, at = base): string {
  const words = ['curl', '-s', ...(method === 'GET' ? [] : ['-X', method])]
  if (settings.tokenNeeded || token() !== null) words.push('-H', '"Authorization: Bearer $TOKEN"')
  if (accept !== undefined) words.push('-H', `'Accept: ${accept}'`)
  return [...words, `'${at}${path}'`].join(' ')
}
