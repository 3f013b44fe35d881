/**
 * What every thread is doing, real stacks of busy lanes included, also of one that loops for ever or waits in
 * `Atomics.wait`: the inspector interrupts a worker's JavaScript from outside, without its help. A worker that answers
 * but does not pause is idle; one that does not answer at all is in native code.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { currentFrames } from './thread-frames.ts'
import { type Look, maxFrames, WorkerInspector } from './thread-inspector.ts'
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

/** Two looks at the operating system's states this far apart tell a waiting thread from one that waits by chance. */
const osSampleGapMs = 4

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
