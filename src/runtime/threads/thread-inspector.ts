/**
 * Has a worker read its own stack, in the midst of whatever it does: the inspector interrupts its JavaScript from
 * outside. One short question and one short answer a worker; the debugger, which announces hundreds of scripts before
 * it says anything, is not turned on, and nothing is paused.
 *
 * Messages of workers interrupt this thread between any two steps of whatever it does, even inside its timers' own
 * bookkeeping. There a message may be noted, but no timer may be touched and nobody woken: that waits for the end of
 * the turn.
 */
import { type InspectorNotification, type NodeWorker, Session } from 'node:inspector'
import { setImmediate as turn } from 'node:timers/promises'
import { framesOf, readSites } from './thread-frames.ts'

/** To attach to the workers takes so long at the most; those that are there by then are asked. */
const connectMs = 100
/** Those that say nothing are looked at from outside so often. */
const glanceMs = 40

export interface Look {
  /** It has answered, so its JavaScript runs. */
  readonly answered: boolean
  /** Where it stood; empty for one that ran nothing. */
  readonly frames: readonly string[]
}

/** One attached worker, and how far the exchange with it has come. */
interface Attached {
  readonly sessionId: string
  readonly threadId: number
  /** The question that it has not answered yet, maybe one of an earlier look; 0: none. */
  openId: number
  answer: string | undefined
}

interface WorkerMessage {
  readonly id?: number
  readonly result?: { readonly result?: { readonly value?: unknown } }
}

export class WorkerInspector {
  readonly #session = new Session()
  readonly #workers = new Map<string, Attached>()
  #connected: Promise<void> | undefined
  #closing = false
  #lastId = 0
  #telling = false
  /** Called when a worker has said something. */
  #heard: () => void = () => undefined

  /**
   * Asks the workers of these thread ids where they stand, and waits for so long at the most. `asleep`: those that
   * sleep although they were asked, so that no answer is to be expected of them. Workers that cannot be reached are left
   * out.
   */
  async look(
    threadIds: ReadonlySet<number>,
    budgetMs: number,
    asleep: () => ReadonlySet<number>,
  ): Promise<ReadonlyMap<number, Look>> {
    if (this.#closing) return new Map()
    this.#connected ??= this.#connect()
    await Promise.race([this.#connected, new Promise((done) => setTimeout(done, connectMs))])
    const asked = [...this.#workers.values()].filter(({ threadId }) => threadIds.has(threadId))
    for (const worker of asked) this.#ask(worker)
    await this.#settled(asked, performance.now() + budgetMs, asleep)
    return new Map(asked.map(({ threadId, answer }) => [threadId, lookOf(answer)]))
  }

  close(): void {
    this.#closing = true
    if (this.#connected !== undefined) this.#session.disconnect()
    this.#connected = undefined
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
    this.#workers.set(sessionId, { sessionId, threadId, openId: 0, answer: undefined })
  }

  #received({ params }: InspectorNotification<NodeWorker.ReceivedMessageFromWorkerEventDataType>): void {
    const worker = this.#workers.get(params.sessionId)
    if (worker === undefined) return
    const { id, result } = JSON.parse(params.message) as WorkerMessage
    if (id === undefined || id !== worker.openId) return
    worker.openId = 0
    worker.answer = String(result?.result?.value ?? '[]')
    this.#tell()
  }

  /** At the end of the interrupted turn: wakes those who wait for news. */
  #tell(): void {
    if (this.#telling) return
    this.#telling = true
    void Promise.resolve().then(() => {
      this.#telling = false
      this.#heard()
    })
  }

  #ask(worker: Attached): void {
    worker.answer = undefined
    // One that still owes the answer of an earlier look would only be asked twice: it reads its stack when it answers.
    if (worker.openId !== 0) return
    worker.openId = ++this.#lastId
    const params = { expression: readSites, returnByValue: true, silent: true }
    this.#session.post('NodeWorker.sendMessageToWorker', {
      sessionId: worker.sessionId,
      message: JSON.stringify({ id: worker.openId, method: 'Runtime.evaluate', params }),
    })
  }

  /** Waits until each worker has answered or ended, or cannot answer, or the time is over. */
  async #settled(asked: readonly Attached[], deadline: number, asleep: () => ReadonlySet<number>): Promise<void> {
    const silent = (): Attached[] =>
      asked.filter(({ answer, sessionId }) => answer === undefined && this.#workers.has(sessionId))
    let glanceAt = performance.now() + glanceMs
    while (silent().length > 0) {
      const now = performance.now()
      if (now >= glanceAt) {
        const sleepers = asleep()
        const isHopeless = silent().every(({ threadId }) => sleepers.has(threadId))
        // What a worker said before it slept may still lie unread.
        await turn()
        await turn()
        if (isHopeless || now >= deadline) return
        glanceAt = performance.now() + glanceMs
      } else await this.#news(Math.min(glanceAt, deadline) - now)
    }
  }

  #news(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, timeoutMs))
      this.#heard = () => {
        clearTimeout(timer)
        this.#heard = () => undefined
        resolve()
      }
    })
  }
}

function lookOf(answer: string | undefined): Look {
  return { answered: answer !== undefined, frames: answer === undefined ? [] : framesOf(answer) }
}
