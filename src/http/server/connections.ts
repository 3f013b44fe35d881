import type { Socket } from 'node:net'
import { Inlet } from './inlet.ts'
import { error, type Reply, rawReply } from '../routes/reply.ts'

interface Connection {
  readonly socket: Socket
  readonly address: string
  /** Requests that wait for their answer, or whose answer is under way: not those whose body is still awaited. */
  inFlight: number
  /** When the answer under way was begun, by the monotonic clock. */
  beganAt: number
  /** The answer to the last request is on its way or out. */
  answering: boolean
  /** The last request, as far as it has come. */
  request: { readonly complete: boolean } | undefined
  served: number
  /** The parser gave up: this is the last word, said once the answers before it are out. */
  lastWord: string | undefined
  ended: boolean
  /** None where the connection has no parser yet. */
  inlet: Inlet | undefined
}

export interface ConnectionLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerAddress: number
  readonly maxRequestsPerSocket: number
  /** Requests that one connection may have unanswered. */
  readonly maxPipelinedRequests: number
  /** An answer that is not taken within this time no longer protects its connection. */
  readonly requestTimeoutMs: number
}

const lingerMs = 500
const mostLingerBytes = 1_048_576

/**
 * Keeps the number of connections bounded without shutting out those who ask: where the bound is reached, the oldest
 * connection that has no request under way makes room. A client that opens hundreds of connections and sends nothing
 * therefore only ever drives out its own kind.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #open = new Map<string, Connection>()
  readonly #perAddress = new Map<string, number>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size
  }

  admit(socket: Socket): void {
    const address = socket.remoteAddress ?? 'local'
    const full =
      this.#open.size >= this.#limits.maxConnections ||
      (this.#perAddress.get(address) ?? 0) >= this.#limits.maxConnectionsPerAddress
    if (full && !this.#makeRoom(address)) {
      const reply = error(503, 'too many connections are busy; retry later', { 'Retry-After': '1' })
      endGently(socket, rawReply(reply))
      return
    }
    const key = keyOf(socket)
    this.#open.set(key, {
      socket,
      address,
      inFlight: 0,
      beganAt: 0,
      answering: false,
      request: undefined,
      served: 0,
      lastWord: undefined,
      ended: false,
      inlet: undefined,
    })
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1)
    socket.once('close', () => this.#forget(key))
  }

  /** The server has set its parser to the connection. */
  attached(socket: Socket): void {
    const connection = this.#open.get(keyOf(socket))
    if (connection === undefined) return
    const { maxPipelinedRequests } = this.#limits
    connection.inlet = new Inlet(socket, {
      room: () => maxPipelinedRequests - connection.inFlight,
      flooded: () => this.refuse(socket, rawReply(tooManyUnanswered(maxPipelinedRequests))),
    })
  }

  /** A request's headers are read. @returns false where it is the last that the connection may carry. */
  received(socket: Socket, request: { readonly complete: boolean }): boolean {
    const connection = this.#open.get(keyOf(socket))
    if (connection === undefined) return false
    connection.served++
    connection.request = request
    connection.answering = false
    return connection.served < this.#limits.maxRequestsPerSocket
  }

  /** It waits for its answer, or has it made. */
  began(socket: Socket): void {
    const connection = this.#open.get(keyOf(socket))
    if (connection === undefined) return
    connection.inFlight++
    connection.beganAt = performance.now()
    connection.answering = true
  }

  ended(socket: Socket): void {
    const connection = this.#open.get(keyOf(socket))
    if (connection === undefined) return
    connection.inFlight--
    connection.inlet?.pump()
    if (connection.inFlight === 0 && connection.lastWord !== undefined) this.#sayLastWord(connection, socket)
  }

  /** Answers what is no HTTP, after the answers to what came before it on the same connection. */
  refuse(socket: Socket, raw: string): void {
    const connection = this.#open.get(keyOf(socket))
    if (connection === undefined) {
      socket.destroy()
      return
    }
    if (connection.lastWord !== undefined) return
    connection.inlet?.close()
    if (connection.answering && connection.inFlight === 0 && connection.request?.complete === false) {
      // The rest of a request that was answered already: a second answer would be taken for that to the next one.
      socket.destroy()
      return
    }
    connection.lastWord = raw
    if (connection.inFlight === 0) this.#sayLastWord(connection, socket)
  }

  /** The server took its parser off the connection, or it will answer nothing more. */
  deafen(socket: Socket): void {
    this.#open.get(keyOf(socket))?.inlet?.close()
  }

  destroyAll(): void {
    for (const { socket } of this.#open.values()) socket.destroy()
  }

  #sayLastWord(connection: Connection, socket: Socket): void {
    if (connection.ended || connection.lastWord === undefined) return
    connection.ended = true
    endGently(socket, connection.lastWord)
  }

  /**
   * In this order: the oldest connection that never asked anything, the oldest that asks nothing now, the one that has
   * most requests unanswered, if these are several, the oldest that does not take its answer.
   */
  #makeRoom(address: string): boolean {
    const crowded = (this.#perAddress.get(address) ?? 0) >= this.#limits.maxConnectionsPerAddress
    const overdue = performance.now() - this.#limits.requestTimeoutMs
    let idle: [string, Connection] | undefined
    let greedy: [string, Connection] | undefined
    let stalled: [string, Connection] | undefined
    for (const entry of this.#open) {
      const [, connection] = entry
      if (crowded && connection.address !== address) continue
      if (connection.inFlight > 0) {
        if (connection.inFlight > (greedy?.[1].inFlight ?? 1)) greedy = entry
        if (connection.beganAt < overdue) stalled ??= entry
      } else if (connection.served === 0) {
        idle = entry
        break
      } else idle ??= entry
    }
    idle ??= greedy ?? stalled
    if (idle === undefined) return false
    this.#forget(idle[0])
    idle[1].socket.destroy()
    return true
  }

  #forget(key: string): void {
    const connection = this.#open.get(key)
    if (connection === undefined) return
    this.#open.delete(key)
    const left = (this.#perAddress.get(connection.address) ?? 1) - 1
    if (left <= 0) this.#perAddress.delete(connection.address)
    else this.#perAddress.set(connection.address, left)
  }
}

const tooManyUnanswered = (limit: number): Reply =>
  error(503, `more than ${limit} requests of this connection are unanswered; wait for answers before asking for more`, {
    'Retry-After': '1',
  })

/** The same for a TLS socket and the plain one below it. */
function keyOf(socket: Socket): string {
  return `${socket.remoteAddress ?? 'local'}|${socket.remotePort ?? 0}`
}

/** Reads on for a moment after the answer: closing with input unread would reset the connection and lose the answer. */
function endGently(socket: Socket, raw: string): void {
  if (!socket.writable) {
    socket.destroy()
    return
  }
  socket.on('error', () => socket.destroy())
  let drained = 0
  socket.removeAllListeners('data')
  socket.on('data', (bytes: Buffer) => {
    drained += bytes.length
    if (drained > mostLingerBytes) socket.destroy()
  })
  socket.end(raw)
  socket.resume()
  setTimeout(() => socket.destroy(), lingerMs).unref()
}
