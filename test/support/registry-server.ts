/** A schema registry over HTTP for tests, which can be made to fail in every way. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedRegistry } from '../../src/serde/registry/index.ts'

export type RegistryMood =
  | 'well'
  | 'error'
  | 'missing'
  | 'elsewhere'
  | 'invalid'
  | 'cut'
  | 'refusing'
  | 'garbage'
  | 'slow'

export class RegistryServer {
  registry = new EmbeddedRegistry()
  /** Requests for schemas by id, in the order in which they came. */
  readonly asked: string[] = []
  readonly authorizations: Array<string | undefined> = []
  mood: RegistryMood = 'well'
  slowMs = 1500
  #port = 0
  #server = createServer((request, response) => void this.#answer(request, response))

  static async start(t: TestContext): Promise<RegistryServer> {
    const server = new RegistryServer()
    await server.up()
    t.after(() => server.down())
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Listens, after `down` at the same address. */
  async up(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
  }

  async down(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += chunk
    const { url = '/', method } = request
    if (url.startsWith('/schemas/ids/')) this.asked.push(url.slice('/schemas/ids/'.length))
    this.authorizations.push(request.headers.authorization)
    if (this.mood === 'slow') await sleep(this.slowMs)
    const { status, body } = this.#reply(method as 'GET', url, text)
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  #reply(method: 'GET' | 'POST', path: string, text: string): { status: number; body: unknown } {
    switch (this.mood) {
      case 'error':
        return { status: 500, body: { error_code: 50001, message: 'the store is broken' } }
      case 'missing':
        return { status: 404, body: { error_code: 40403, message: 'Schema not found' } }
      case 'elsewhere':
        return { status: 404, body: 'default backend - 404' }
      case 'invalid':
        return { status: 422, body: { error_code: 42201, message: 'Invalid schema' } }
      case 'refusing':
        return { status: 401, body: { message: 'Unauthorized' } }
      case 'garbage':
        return { status: 200, body: '<html>a proxy</html>' }
      default:
        return this.#whole(method, path, text)
    }
  }

  #whole(method: 'GET' | 'POST', path: string, text: string): { status: number; body: unknown } {
    const answer = this.registry.handle({ method, path, ...(text !== '' && { body: JSON.parse(text) }) })
    const { schema } = answer.body as { schema?: string }
    if (this.mood !== 'cut' || schema === undefined) return answer
    return { ...answer, body: { ...(answer.body as object), schema: schema.slice(0, -3) } }
  }
}
