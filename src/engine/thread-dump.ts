/**
 * What every thread is doing, real stacks of busy lanes included, also of one that loops for ever or waits in
 * `Atomics.wait`: the inspector interrupts a worker's JavaScript from outside, without its help. A worker that answers
 * but does not pause is idle; one that does not answer at all is in native code.
 *
 * A pause must never stay unanswered, or the worker hangs, even in `terminate()`: every `Debugger.paused` is answered
 * with a resume at once, however late it comes, and the inspector session is not closed while one may still come.
 */
import { type InspectorNotification, type NodeWorker, Session } from 'node:inspector'
import { setTimeout as sleep } from 'node:timers/promises'
import { currentFrames, frameText, type InspectorFrame } from './thread-frames.ts'
import { type OsThread, readOsThreads } from './thread-os.ts'
import type { ThreadsSnapshot } from './view.ts'

type EngineThread = ThreadsSnapshot['engineThreads'][number]
type ThreadState = EngineThread['state']

export interface DumpedThread {
  /** As given to the `Worker`; the operating system's thread has it too. */
  readonly name: string
  readonly role: 'engine' | 'lane' | 'broker'
  /** `Worker.threadId`. */
  readonly threadId: number
}

export interface ThreadDumperOptions {
  /** The engine's workers as they are now: an in-place restart may have made new ones. */
  readonly threads: () => readonly DumpedThread[]
  /** Node that a lane is at, by its counters: known even where the lane itself cannot be asked. */
  readonly currentNode?: (name: string) => string | null
  /** Longest time a dump waits for answers of workers that run. Default 250 milliseconds. */
  readonly budgetMs?: number
  /** Longest time it waits for those that sleep or are asked for the first time. Default 1,000 milliseconds. */
  readonly patienceMs?: number
}

export interface ThreadDumper {
  /** One dump at a time: who asks while one is under way gets the same. */
  dump(options: { readonly depth: number }): Promise<ThreadsSnapshot>
  close(): void
}

/** More frames than this are never kept. */
const maxFrames = 1000
/** Two looks at the operating system's states this far apart tell a waiting thread from one that waits by chance. */
const osSampleGapMs = 4
/** A worker that runs pauses within a moment of having agreed to; one that has not by then is idle. */
const idleAfterMs = 25

export function createThreadDumper(options: ThreadDumperOptions): ThreadDumper {
  const { threads, currentNode = () => null, budgetMs = 250 } = options
  const patienceMs = Math.max(budgetMs, options.patienceMs ?? 1000)
  const inspector = new WorkerInspector()
  let running: Promise<ThreadsSnapshot> | undefined

  const dumpAll = async (): Promise<ThreadsSnapshot> => {
    const timestamp = new Date().toISOString()
    const known = threads()
    const before = byName(await readOsThreads())
    await sleep(osSampleGapMs)
    const os = await readOsThreads()
    const after = byName(os)
    const budgets = new Map(
      known.map(({ threadId, name }) => [threadId, after.get(name)?.state === 'WAITING' ? patienceMs : budgetMs]),
    )
    const looks = await inspector.look(budgets, patienceMs)
    const control: EngineThread = {
      name: 'control',
      role: 'control',
      state: 'RUNNABLE',
      currentNode: null,
      stack: currentFrames(maxFrames),
    }
    const workers = known.map(({ name, role, threadId }): EngineThread => {
      const waits = isWaiting(before.get(name), after.get(name))
      const { state, stack } = judge(looks.get(threadId), waits, after.get(name))
      return { name, role, state, currentNode: role === 'lane' ? currentNode(name) : null, stack }
    })
    return { timestamp, engineThreads: [control, ...workers], platformThreads: os }
  }

  return {
    dump: async ({ depth }) => {
      running ??= dumpAll().finally(() => {
        running = undefined
      })
      const { timestamp, engineThreads, platformThreads } = await running
      const cut = engineThreads.map((thread) => ({ ...thread, stack: thread.stack.slice(0, depth) }))
      return { timestamp, engineThreads: cut, platformThreads }
    },
    close: () => inspector.close(),
  }
}

function byName(threads: readonly OsThread[]): ReadonlyMap<string, OsThread> {
  return new Map(threads.map((thread) => [thread.name, thread]))
}

/** Asleep in both looks, and no processor time used in between. */
function isWaiting(before: OsThread | undefined, after: OsThread | undefined): boolean {
  return before?.state === 'WAITING' && after?.state === 'WAITING' && before.cpuMs === after.cpuMs
}

function judge(
  look: Look | undefined,
  waits: boolean,
  os: OsThread | undefined,
): { state: ThreadState; stack: readonly string[] } {
  if (look === undefined) return { state: os?.state ?? 'WAITING', stack: [] }
  if (look.frames !== undefined) return { state: waits ? 'WAITING' : 'RUNNABLE', stack: look.frames }
  return { state: look.answered ? 'WAITING' : 'BLOCKED', stack: [] }
}

interface Look {
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

class WorkerInspector {
  readonly #session = new Session()
  readonly #workers = new Map<string, Attached>()
  #connected: Promise<void> | undefined
  #closing = false
  #lastId = 0
  /** Called whenever a worker has said something. */
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
    return new Map(looks)
  }

  close(): void {
    this.#closing = true
    this.#disconnectWhenQuiet()
  }

  /** Resolves once every worker that runs now is attached; later ones are attached as they start. */
  #connect(): Promise<void> {
    this.#session.connect()
    this.#session.on('NodeWorker.attachedToWorker', ({ params }) => this.#attached(params))
    this.#session.on('NodeWorker.detachedFromWorker', ({ params }) => {
      this.#workers.delete(params.sessionId)
      this.#heard()
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
      this.#stopDebugging(worker)
      const frames = message.params?.callFrames ?? []
      if (worker.pauseId !== 0)
        worker.frames = frames.slice(0, maxFrames).map((frame) => frameText(frame, worker.scripts))
    }
    this.#heard()
    if (this.#closing) this.#disconnectWhenQuiet()
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
    worker.debugging = true
    this.#send(worker, 'Debugger.enable')
    worker.pauseId = this.#send(worker, 'Debugger.pause')
  }

  #letGo(worker: Attached): void {
    worker.pauseId = 0
    this.#stopDebugging(worker)
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
