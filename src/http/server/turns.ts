import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

interface Turn {
  readonly response: ServerResponse
  readonly isProbe: boolean
  readonly answer: () => void
}

/** What one connection has asked and not been answered yet, in its order. */
interface Line {
  readonly socket: Socket
  readonly waiting: Turn[]
  /** An answer is being made, or is not taken yet. */
  busy: boolean
}

/** So long at a stretch, then the sockets are looked at again: a probe that has come meanwhile goes first. */
const stretchMs = 3

/**
 * Who is answered next. Each connection has one answer under way at a time: the next is made when the one before is
 * out, so that a client which asks much and takes nothing holds one answer in memory. Connections take turns, those
 * that ask for a probe first. What a connection still waits for when it closes is never made.
 */
export class Turns {
  readonly #lines = new Map<Socket, Line>()
  #probes: Line[] = []
  #others: Line[] = []
  #scheduled = false
  #hasArrivals = false

  /**
   * A connection has come. The loop takes one of those that wait at each of its rounds, so the next round is a short one:
   * a probe may be among those behind it.
   */
  arrived(): void {
    this.#hasArrivals = true
  }

  /** Has the answer made when its turn comes. */
  take(socket: Socket, response: ServerResponse, isProbe: boolean, answer: () => void): void {
    if (socket.destroyed) return
    const line = this.#lineOf(socket)
    line.waiting.push({ response, isProbe, answer })
    if (!line.busy && line.waiting.length === 1) this.#ready(line)
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket)
    if (known !== undefined) return known
    const line: Line = { socket, waiting: [], busy: false }
    this.#lines.set(socket, line)
    socket.once('close', () => {
      this.#lines.delete(socket)
      line.waiting.length = 0
    })
    return line
  }

  #ready(line: Line): void {
    if (line.waiting[0]?.isProbe === true) this.#probes.push(line)
    else this.#others.push(line)
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#work())
  }

  #work(): void {
    const end = this.#hasArrivals ? 0 : performance.now() + stretchMs
    this.#hasArrivals = false
    this.#probes = this.#serve(this.#probes, Number.POSITIVE_INFINITY)
    this.#others = this.#serve(this.#others, end)
    this.#scheduled = this.#probes.length > 0 || this.#others.length > 0
    if (this.#scheduled) setImmediate(() => this.#work())
  }

  /** @returns those whose turn has not come. */
  #serve(lines: Line[], end: number): Line[] {
    let served = 0
    do {
      const line = lines[served++]
      if (line !== undefined) this.#next(line)
    } while (served < lines.length && performance.now() < end)
    return lines.slice(served)
  }

  #next(line: Line): void {
    const turn = line.waiting.shift()
    if (turn === undefined || line.socket.destroyed) return
    line.busy = true
    turn.response.once('close', () => {
      line.busy = false
      if (line.waiting.length > 0) this.#ready(line)
    })
    turn.answer()
  }
}
