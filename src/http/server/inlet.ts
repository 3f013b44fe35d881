import type { Socket } from 'node:net'

type Parse = (this: Socket, bytes: Buffer) => void

const endOfHeaders = '\r\n\r\n'
/** More than any reasonable number of requests is long. */
const mostHeldBytes = 65_536
const nothing = Buffer.alloc(0)

export interface InletOptions {
  /** How many more requests the connection may have unanswered. */
  readonly room: () => number
  /** More came than is kept for it. */
  readonly flooded: () => void
}

/**
 * Stands between a connection and the server's parser, which makes an object of every request in what it is given: a
 * packet holds well over a thousand. It is given as many as may be unanswered; the rest waits here as bytes.
 */
export class Inlet {
  readonly #socket: Socket
  readonly #options: InletOptions
  readonly #parse: Parse | undefined
  #held: Buffer = nothing
  #closed = false

  constructor(socket: Socket, options: InletOptions) {
    this.#socket = socket
    this.#options = options
    const listeners = socket.listeners('data')
    this.#parse = listeners.length === 1 ? (listeners[0] as Parse) : undefined
    if (this.#parse === undefined) return
    socket.removeListener('data', this.#parse)
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    // The server stops reading while an answer does not get out, and must be given nothing meanwhile.
    socket.on('resume', () => this.pump())
  }

  /** Gives the parser what there is room for. */
  pump(): void {
    while (!this.#closed && this.#held.length > 0 && !this.#socket.isPaused()) {
      const end = this.#endOf(this.#options.room())
      if (end === 0) return
      const bytes = this.#held.subarray(0, end)
      this.#held = this.#held.subarray(end)
      this.#parse?.call(this.#socket, bytes)
    }
  }

  /** The parser gets nothing any more, and nothing more is read: to read in order to throw away costs as well. */
  close(): void {
    this.#closed = true
    this.#held = nothing
    this.#socket.pause()
  }

  #take(bytes: Buffer): void {
    if (this.#closed) {
      this.#socket.pause()
      return
    }
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes])
    this.pump()
    if (this.#held.length > mostHeldBytes) this.#options.flooded()
  }

  /** Up to where the held bytes have at most so many requests. */
  #endOf(requests: number): number {
    let end = 0
    for (let found = 0; found < requests; found++) {
      const at = this.#held.indexOf(endOfHeaders, end)
      if (at < 0) return this.#held.length
      end = at + endOfHeaders.length
    }
    return end
  }
}
