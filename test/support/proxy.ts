/**
 * A TCP proxy that understands Kafka's framing: it can cut all connections, stand still, and lose or delay single requests
 * or responses by their api key, which no real network does on demand.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export const apiKeys = {
  produce: 0,
  fetch: 1,
  offsetCommit: 8,
  joinGroup: 11,
  heartbeat: 12,
  initProducerId: 22,
  addPartitionsToTxn: 24,
  endTxn: 26,
  txnOffsetCommit: 28,
} as const
export type ApiName = keyof typeof apiKeys

/** What to do with matching frames: how many more of them, and whether the connection is cut as well. */
interface Loss {
  readonly side: 'request' | 'response'
  readonly apiKey: number
  left: number
  readonly cut: boolean
  /** Lets the frame through all the same. */
  readonly pass: boolean
  readonly seen: (() => void) | undefined
  lost: number
}

interface Delay {
  readonly ms: number
  /** Aborted when it is taken back: what still waits goes on. */
  readonly over: AbortController
}

const host = '127.0.0.1'

export class KafkaProxy {
  readonly #server: Server
  readonly #pairs = new Set<readonly [client: Socket, broker: Socket]>()
  readonly #losses: Loss[] = []
  readonly #requests = new Map<number, number>()
  readonly #delays = new Map<number, Delay>()
  #target = 0
  #cut = false
  #still = false

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (client) => this.#accept(client))
  }

  static async listen(): Promise<KafkaProxy> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    return new KafkaProxy(server)
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  get bootstrap(): string {
    return `${host}:${this.port}`
  }

  /** Where connections go from now on. */
  set target(port: number) {
    this.#target = port
  }

  /** Ends all connections and takes no new ones, until `heal`. */
  cut(): void {
    this.#cut = true
    this.#endAll()
  }

  /** Ends all connections; new ones are taken at once. */
  reset(): void {
    this.#endAll()
  }

  /** Nothing goes through any more in either direction, and no connection ends: what a lost route looks like. */
  standStill(): void {
    this.#still = true
    for (const pair of this.#pairs) for (const socket of pair) socket.pause()
  }

  heal(): void {
    this.#cut = false
    if (!this.#still) return
    this.#still = false
    for (const pair of this.#pairs) for (const socket of pair) socket.resume()
  }

  /**
   * Loses the next `times` requests or responses of an api. With `cut` the connection ends at that moment, so that the
   * client need not wait until it gives up. Answers how many were lost so far.
   */
  lose(side: Loss['side'], api: ApiName, times = 1, cut = true): () => number {
    const loss: Loss = { side, apiKey: apiKeys[api], left: times, cut, pass: false, seen: undefined, lost: 0 }
    this.#losses.push(loss)
    return () => loss.lost
  }

  /** How many requests of an api have come by now, those that were lost among them. */
  seen(api: ApiName): number {
    return this.#requests.get(apiKeys[api]) ?? 0
  }

  /** Calls `seen` at the next frame of an api, before it goes on its way, or instead of that. */
  watch(side: Loss['side'], api: ApiName, pass: boolean, seen: () => void): void {
    this.#losses.push({ side, apiKey: apiKeys[api], left: 1, cut: !pass, pass, seen, lost: 0 })
  }

  /**
   * Holds back the responses of an api for so long, and what follows on their connections with them: a broker answers in
   * order. `Infinity` holds them back until the delay is taken back, with 0; then all go on.
   */
  delay(api: ApiName, ms: number): void {
    const apiKey = apiKeys[api]
    this.#delays.get(apiKey)?.over.abort()
    this.#delays.delete(apiKey)
    if (ms > 0) this.#delays.set(apiKey, { ms, over: new AbortController() })
  }

  async close(): Promise<void> {
    for (const { over } of this.#delays.values()) over.abort()
    this.#endAll()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #endAll(): void {
    for (const [client, broker] of this.#pairs) {
      client.destroy()
      broker.destroy()
    }
    this.#pairs.clear()
  }

  #accept(client: Socket): void {
    if (this.#cut) {
      client.destroy()
      return
    }
    const broker = connect({ host, port: this.#target, noDelay: true })
    client.setNoDelay(true)
    const pair = [client, broker] as const
    this.#pairs.add(pair)
    const end = (): void => {
      client.destroy()
      broker.destroy()
      this.#pairs.delete(pair)
    }
    for (const socket of pair) {
      socket.on('error', end)
      socket.on('close', end)
    }
    const asked = new Map<number, number>()
    let before = Promise.resolve()
    let held = 0
    const deliver = async (frame: Buffer, delay: Delay | undefined): Promise<void> => {
      if (delay !== undefined) await passed(delay)
      held--
      if (!client.destroyed) client.write(frame)
    }
    client.on(
      'data',
      frames((frame) => {
        const apiKey = frame.readInt16BE(4)
        asked.set(frame.readInt32BE(8), apiKey)
        this.#requests.set(apiKey, (this.#requests.get(apiKey) ?? 0) + 1)
        if (!this.#loses('request', apiKey, end)) broker.write(frame)
      }),
    )
    broker.on(
      'data',
      frames((frame) => {
        const correlationId = frame.readInt32BE(4)
        const apiKey = asked.get(correlationId) ?? -1
        asked.delete(correlationId)
        if (this.#loses('response', apiKey, end)) return
        const delay = this.#delays.get(apiKey)
        if (delay === undefined && held === 0) {
          client.write(frame)
          return
        }
        held++
        before = before.then(() => deliver(frame, delay))
      }),
    )
    if (this.#still) for (const socket of pair) socket.pause()
  }

  #loses(side: Loss['side'], apiKey: number, end: () => void): boolean {
    for (const done of this.#losses.filter((each) => each.left === 0))
      this.#losses.splice(this.#losses.indexOf(done), 1)
    const loss = this.#losses.find((each) => each.side === side && each.apiKey === apiKey && each.left > 0)
    if (!loss) return false
    loss.left--
    loss.lost++
    loss.seen?.()
    if (loss.cut) end()
    return !loss.pass
  }
}

async function passed({ ms, over: { signal } }: Delay): Promise<void> {
  if (signal.aborted) return
  const ended = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  const waits = ms === Number.POSITIVE_INFINITY ? [ended] : [ended, sleep(ms, undefined, { ref: false })]
  await Promise.race(waits)
}

/** Cuts a byte stream into frames: a length of four bytes, then that many bytes. */
function frames(take: (frame: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length ? Buffer.concat([rest, chunk]) : chunk
    while (rest.length >= 4) {
      const end = 4 + rest.readInt32BE(0)
      if (rest.length < end) return
      take(rest.subarray(0, end))
      rest = rest.subarray(end)
    }
  }
}
