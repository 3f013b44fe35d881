/** As much of the platform's `fetch` as the license needs. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

const requestTimeoutMs = 10_000

/** A request that could not be made or was not answered as it should; `retryAfterMs` where the other side said so. */
export class RequestFailure extends Error {
  override readonly name = 'RequestFailure'
  readonly retryAfterMs: number | undefined

  constructor(message: string, retryAfterMs?: number) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

interface TextRequest {
  readonly signal: AbortSignal
  /** Most bytes of the answer. */
  readonly limit: number
  readonly method?: string
  readonly body?: string
  /** Statuses whose body counts besides 2xx. */
  readonly alsoAccept?: (status: number) => boolean
}

/**
 * The body of an answer. Redirects are not followed: the address that was configured is the only one talked to.
 * User-info in the address becomes an authorization header, since `fetch` takes none.
 *
 * @throws RequestFailure with a sentence that names no secret.
 */
export async function fetchText(fetch: Fetch, address: string, request: TextRequest): Promise<string> {
  const url = new URL(address)
  const headers: Record<string, string> = { accept: 'application/json' }
  if (request.body !== undefined) headers['content-type'] = 'application/json'
  if (url.username !== '' || url.password !== '') {
    const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`
    headers.authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    url.username = ''
    url.password = ''
  }
  const init: RequestInit = {
    method: request.method ?? 'GET',
    headers,
    redirect: 'error',
    signal: AbortSignal.any([request.signal, AbortSignal.timeout(requestTimeoutMs)]),
    ...(request.body === undefined ? {} : { body: request.body }),
  }
  try {
    const response = await fetch(url.href, init)
    if (!response.ok && !request.alsoAccept?.(response.status)) {
      await response.body?.cancel()
      throw new RequestFailure(`${url.host} answered ${response.status}`, retryAfter(response))
    }
    return await readLimited(response, request.limit)
  } catch (error) {
    if (error instanceof RequestFailure) throw error
    throw new RequestFailure(`${url.host} could not be asked: ${whyOf(error)}`)
  }
}

async function readLimited(response: Response, limit: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > limit) throw new RequestFailure(`the answer is longer than ${limit} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function retryAfter(response: Response): number | undefined {
  const text = response.headers.get('retry-after') ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) * 1000 : undefined
}

/** `fetch` hides the reason in the cause of a general error. */
function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  return code ?? (cause instanceof Error ? cause.message : error.message)
}
