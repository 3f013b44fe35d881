/**
 * Stops a worker's JavaScript from outside for the moment it takes to read where it stands.
 *
 * A pause must never stay unanswered, or the worker hangs, even in `terminate()`: every `Debugger.paused` is answered
 * with a resume at once, however late it comes, and the inspector session is not closed while one may still come.
 *
 * What workers say interrupts this thread between any two steps of whatever it is doing, also in the middle of its timers'
 * own bookkeeping. There a message may be noted and a resume be sent, but no timer be touched and nobody be woken: that
 * waits for the end of the turn.
 */
import { type InspectorNotification, type NodeWorker, Session } from 'node:inspector'
import { frameText, type InspectorFrame } from './thread-frames.ts'

/** More frames than this are never kept. */
export const maxFrames = 1000
/** A worker that runs pauses within a moment of having agreed to; one that has not by then is idle. */
const idleAfterMs = 25
/**
 * Turning the debugger on makes a worker announce some hundred scripts, which takes most of what a look costs. It stays on
 * for this long where the next look may come soon.
 */
const keepDebuggingMs = 10_000

export interface Look {
  /** The worker took the request to pause. */
  readonly answered: boolean
  /** Where it stood, if it ran anything. */
  readonly frames: readonly string[] | undefined
}

/** One attached worker, and how far the exchange with it is. */
interface Attached {
  readonly sessionId: string
  readonly threadId: number
  /** Requests sent and not yet answered. */
  readonly open: Set<number>
  /** Number of the request that asked for the pause; 0 when none is under way. */
  pauseId: number
  answered: boolean
  everAnswered: boolean
  frames: readonly string[] | undefined
  /** Addresses of scripts by their id. */
  readonly scripts: Map<string, string>
  /** The debugger is on, or was asked to be. */
  debugging: boolean
}

const scriptParsed = '{"method":"Debugger.scriptParsed"'
const scriptHead = /"scriptId":"(\d+)","url":"((?:[^"\\]|\\.)*)"/

const isSilent = (worker: Attached): boolean => !worker.answered && worker.frames === undefined

interface WorkerMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly callFrames?: readonly InspectorFrame[] }
}

export class WorkerInspector {
  readonly #session = new Session()
  readonly #workers = new Map<string, Attached>()
  #connected: Promise<void> | undefined
  #closing = false
  #lastId = 0
  #telling = false
  #resting: NodeJS.Timeout | undefined
  /** Called when a worker has said something. */
  #heard: () => void = () => undefined

  /**
   * Asks the workers of these thread ids where they stand, each for its budget, or for `firstMs` where it never answered
   * before: on a busy machine the first answer takes long. Workers that cannot be reached are left out.
   */
  async look(budgets: ReadonlyMap<number, number>, firstMs: number): Promise<ReadonlyMap<number, Look>> {
    if (this.#closing) return new Map()
    this.#connected ??= this.#connect()
    await this.#connected
    const asked = [...this.#workers.values()].filter((worker) => budgets.has(worker.threadId))
    for (const worker of asked) this.#askToPause(worker)
    const beganAt = performance.now()
    const deadlineOf = (worker: Attached): number =>
      beganAt + (worker.everAnswered ? (budgets.get(worker.threadId) ?? 0) : firstMs)
    await this.#settled(asked, deadlineOf)
    const looks = asked.map(({ threadId, answered, frames }): [number, Look] => [threadId, { answered, frames }])
    for (const worker of asked) this.#letGo(worker)
    this.#restLater()
    return new Map(looks)
  }

  close(): void {
    this.#closing = true
    clearTimeout(this.#resting)
    for (const worker of this.#workers.values()) this.#stopDebugging(worker)
    this.#disconnectWhenQuiet()
  }

  /** Resolves once every worker that runs now is attached; later ones are attached as they start. */
  #connect(): Promise<void> {
    this.#session.connect()
    this.#session.on('NodeWorker.attachedToWorker', ({ params }) => this.#attached(params))
    this.#session.on('NodeWorker.detachedFromWorker', ({ params }) => {
      this.#workers.delete(params.sessionId)
      this.#tell()
    })
    this.#session.on('NodeWorker.receivedMessageFromWorker', (message) => this.#received(message))
    return new Promise((resolve) => {
      this.#session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () => resolve())
    })
  }

  #attached({ sessionId, workerInfo }: NodeWorker.AttachedToWorkerEventDataType): void {
    const threadId = Number(/^\[worker (\d+)\]/.exec(workerInfo.title)?.[1] ?? -1)
    this.#workers.set(sessionId, {
      sessionId,
      threadId,
      open: new Set(),
      pauseId: 0,
      answered: false,
      everAnswered: false,
      frames: undefined,
      scripts: new Map(),
      debugging: false,
    })
  }

  #received({ params }: InspectorNotification<NodeWorker.ReceivedMessageFromWorkerEventDataType>): void {
    const worker = this.#workers.get(params.sessionId)
    if (worker === undefined || this.#isScript(worker, params.message)) return
    const message = JSON.parse(params.message) as WorkerMessage
    if (message.id !== undefined) {
      worker.open.delete(message.id)
      worker.everAnswered = true
      if (message.id === worker.pauseId) worker.answered = true
    } else if (message.method === 'Debugger.paused') {
      // First of all the worker goes on; what it said is looked at afterwards.
      this.#send(worker, 'Debugger.resume')
      const frames = message.params?.callFrames ?? []
      if (worker.pauseId !== 0)
        worker.frames = frames.slice(0, maxFrames).map((frame) => frameText(frame, worker.scripts))
    }
    this.#tell()
  }

  /** At the end of the turn that was interrupted: tells who waits for news. */
  #tell(): void {
    if (this.#telling) return
    this.#telling = true
    void Promise.resolve().then(() => {
      this.#telling = false
      this.#heard()
      if (this.#closing) this.#disconnectWhenQuiet()
    })
  }

  /** Scripts are announced by the hundred at each start of the debugger; their names are kept for the frames. */
  #isScript(worker: Attached, message: string): boolean {
    if (!message.startsWith(scriptParsed)) return false
    const [, id, url] = scriptHead.exec(message) ?? []
    if (id !== undefined && url !== undefined) worker.scripts.set(id, url)
    return true
  }

  #askToPause(worker: Attached): void {
    worker.frames = undefined
    worker.answered = false
    // A worker that still owes the answers of an earlier look would only be asked twice.
    if (worker.open.size > 0) {
      worker.pauseId = -1
      return
    }
    if (!worker.debugging) this.#send(worker, 'Debugger.enable')
    worker.debugging = true
    worker.pauseId = this.#send(worker, 'Debugger.pause')
  }

  #letGo(worker: Attached): void {
    worker.pauseId = 0
    // One that did not pause still would, at the next thing that it does.
    if (worker.frames === undefined || this.#closing) this.#stopDebugging(worker)
  }

  #restLater(): void {
    clearTimeout(this.#resting)
    if (this.#closing) return
    this.#resting = setTimeout(() => {
      for (const worker of this.#workers.values()) this.#stopDebugging(worker)
    }, keepDebuggingMs)
    this.#resting.unref()
  }

  #stopDebugging(worker: Attached): void {
    if (!worker.debugging) return
    worker.debugging = false
    this.#send(worker, 'Debugger.disable')
  }

  /** Waits until each worker showed its stack, or agreed and had time to, or its time is over. */
  async #settled(asked: readonly Attached[], deadlineOf: (worker: Attached) => number): Promise<void> {
    let quietSince = Number.POSITIVE_INFINITY
    for (;;) {
      const now = performance.now()
      const awaited = asked.filter(
        (worker) => worker.frames === undefined && this.#workers.has(worker.sessionId) && deadlineOf(worker) > now,
      )
      if (awaited.length === 0) return
      const silent = awaited.filter(isSilent)
      if (silent.length > 0) quietSince = Number.POSITIVE_INFINITY
      else if (quietSince === Number.POSITIVE_INFINITY) quietSince = now
      const until = Math.min(quietSince + idleAfterMs, ...awaited.map(deadlineOf))
      if (silent.length === 0 && now >= until) return
      await this.#news(Math.max(1, until - now))
    }
  }

  #news(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs)
      this.#heard = () => {
        clearTimeout(timer)
        this.#heard = () => undefined
        resolve()
      }
    })
  }

  #send(worker: Attached, method: string): number {
    const id = ++this.#lastId
    worker.open.add(id)
    this.#session.post('NodeWorker.sendMessageToWorker', {
      sessionId: worker.sessionId,
      message: JSON.stringify({ id, method }),
    })
    return id
  }

  #disconnectWhenQuiet(): void {
    if (this.#connected === undefined) return
    if ([...this.#workers.values()].some((worker) => worker.open.size > 0)) return
    this.#connected = undefined
    this.#session.disconnect()
  }
}
