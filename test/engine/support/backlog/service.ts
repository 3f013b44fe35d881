/** A service that answers in 10 ms for up to twenty calls at once, and the slower the more there are; it may fail for a while. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

const usualMs = 10
const atOnce = 20

export class Service {
  readonly #server: Server
  #out = 0
  /** Most calls at once. */
  most = 0
  answered = 0
  refused = 0
  fails = false

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#out++
      this.most = Math.max(this.most, this.#out)
      // Twice as many as it can take are not twice as slow, but more.
      const ms = usualMs * Math.max(1, this.#out / atOnce) ** 1.5
      setTimeout(() => {
        this.#out--
        if (this.fails) {
          this.refused++
          response.writeHead(503).end()
        } else {
          this.answered++
          response.end(request.url?.slice(1))
        }
      }, ms)
    })
  }

  static async start(): Promise<Service> {
    const service = new Service()
    await new Promise<void>((resolve) => service.#server.listen(0, '127.0.0.1', resolve))
    return service
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
