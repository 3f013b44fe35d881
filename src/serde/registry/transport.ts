/** Requests to the registry over HTTP: several addresses, credentials, certificates. */
import { Agent, request as httpsRequest } from 'node:https'
import { readNamedFile } from '../../base/named-file.ts'
import { request as httpRequest } from '../../base/node-http.ts'

export interface RegistryRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the registry's address, with its query. */
  readonly path: string
  readonly body?: unknown
}

export interface RegistryResponse {
  readonly status: number
  readonly body: unknown
}

/** Whatever answers as a registry does. Rejects where nothing answers in time. */
export type RegistryCall = (request: RegistryRequest) => Promise<RegistryResponse>

export interface TransportOptions {
  readonly urls: readonly string[]
  readonly username?: string | null
  readonly password?: string | null
  readonly token?: string | null
  readonly caFile?: string | null
  readonly certFile?: string | null
  readonly keyFile?: string | null
  readonly keyPassphrase?: string | null
  readonly timeoutMs: number
}

const mostBytes = 16 * 1024 * 1024
const contentType = 'application/vnd.schemaregistry.v1+json'

export function httpTransport(options: TransportOptions): RegistryCall {
  const bases = options.urls.map((url) => new URL(url))
  const agent = bases.some(({ protocol }) => protocol === 'https:') ? agentOf(options) : undefined
  let first = 0
  return async (request) => {
    let failure: unknown
    for (let i = 0; i < bases.length; i++) {
      const at = (first + i) % bases.length
      try {
        const answer = await send(bases[at] as URL, request, options, agent)
        // One that is there and cannot answer is as good as one that is not, as long as there is another.
        if (answer.status >= 500 && i + 1 < bases.length) continue
        first = at
        return answer
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
}

function agentOf({ caFile, certFile, keyFile, keyPassphrase }: TransportOptions): Agent {
  const file = (path: string | null | undefined): Buffer | undefined =>
    path ? readNamedFile('a file that schema-registry.tls.* names', path) : undefined
  const given = { ca: file(caFile), cert: file(certFile), key: file(keyFile), passphrase: keyPassphrase ?? undefined }
  return new Agent({
    keepAlive: true,
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  })
}

function headersOf(
  base: URL,
  { username, password, token }: TransportOptions,
  body: string | undefined,
): Record<string, string> {
  const headers: Record<string, string> = { accept: `${contentType}, application/json` }
  const user = username ?? decodeURIComponent(base.username)
  const secret = password ?? decodeURIComponent(base.password)
  if (token) headers.authorization = `Bearer ${token}`
  else if (user !== '') headers.authorization = `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`
  if (body !== undefined) headers['content-type'] = contentType
  return headers
}

function send(
  base: URL,
  request: RegistryRequest,
  options: TransportOptions,
  agent: Agent | undefined,
): Promise<RegistryResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<RegistryResponse>()
  const body = request.body === undefined ? undefined : JSON.stringify(request.body)
  const isSecure = base.protocol === 'https:'
  const url = new URL(`${base.pathname.replace(/\/$/, '')}${request.path}`, base.origin)
  const settings = {
    method: request.method,
    headers: headersOf(base, options, body),
    // A timeout for the whole exchange: what trickles in does not count as an answer.
    signal: AbortSignal.timeout(options.timeoutMs),
    ...(isSecure && agent ? { agent } : {}),
  }
  const call = (isSecure ? httpsRequest : httpRequest)(url, settings, (response) => {
    const chunks: Buffer[] = []
    let bytes = 0
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > mostBytes) response.destroy(new Error(`the answer is larger than ${mostBytes} bytes`))
      else chunks.push(chunk)
    })
    response.on('error', reject)
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString('utf8')
      resolve({ status: response.statusCode ?? 0, body: parsed(text) })
    })
  })
  call.on('error', (error) =>
    reject(error.name === 'TimeoutError' || error.name === 'AbortError' ? late(options.timeoutMs) : error),
  )
  call.end(body)
  return promise
}

/** The registry is there, or somebody in its place, and takes too long. */
export class LateAnswer extends Error {
  override readonly name = 'LateAnswer'
}

function late(timeoutMs: number): LateAnswer {
  return new LateAnswer(`no answer within ${timeoutMs} ms`)
}

/** Text that is no JSON stays text: the status says what it is worth. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
