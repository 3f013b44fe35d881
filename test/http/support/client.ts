/** Asks over real sockets, without any cleverness of its own: what is sent is what the test wrote. */
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'

export interface Ask {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** The body as JSON, undefined where it is none. */
  readonly json: Json
}

/** JSON as a test reads it: every member may be there. */
export interface Json {
  readonly [name: string]: Json
}

export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined as unknown as Json
  }
}

export function ask(url: string, { method = 'GET', path, headers, body }: Ask): Promise<Answer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: hostname, port, method, path, headers: headers as Record<string, string | string[]>, agent: false },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: text, json: parseJson(text) })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly json: Json
}

/** Everything the server says to some bytes until it closes, or until `quietMs` pass without a word after the first. */
export async function talk(url: string, bytes: string | Buffer, quietMs = 300): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    const chunks: Buffer[] = []
    const done = (): void => {
      clearTimeout(quiet)
      socket.destroy()
      resolve(Buffer.concat(chunks).toString('latin1'))
    }
    // A server that says nothing at all is a finding, not a reason to wait for ever.
    let quiet: NodeJS.Timeout | undefined = setTimeout(done, 15_000)
    socket.on('connect', () => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      clearTimeout(quiet)
      quiet = setTimeout(done, quietMs)
    })
    socket.on('close', done)
    socket.on('error', (cause) => (chunks.length > 0 ? done() : reject(cause)))
  })
}

/** Splits what a server said into its answers. */
export function answersIn(said: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = said
  while (rest !== '') {
    const head = /^HTTP\/1\.1 (\d{3})[^\r]*\r\n([\s\S]*?)\r\n\r\n/.exec(rest)
    if (head === null) break
    const lines = (head[2] as string).split('\r\n').map((line) => line.split(/: (.*)/s))
    const headers = Object.fromEntries(lines.map(([name = '', value = '']) => [name.toLowerCase(), value]))
    const length = Number(headers['content-length'] ?? 0)
    const body = rest.slice(head[0].length, head[0].length + length)
    answers.push({ status: Number(head[1]), headers, body, json: parseJson(body) })
    rest = rest.slice(head[0].length + length)
  }
  return answers
}
