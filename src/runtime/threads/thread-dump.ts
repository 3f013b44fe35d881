/**
 * What every thread is doing, with the real stacks of busy lanes: also of one that loops for ever or waits in
 * `Atomics.wait`. The inspector interrupts a worker's JavaScript from outside, without its help. A worker that answers
 * without a stack is idle. One that does not answer at all is in native code, unless it only waits for a processor.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { currentFrames, maxFrames } from './thread-frames.ts'
import { type Look, WorkerInspector } from './thread-inspector.ts'
import { type OsThread, readOsThreads } from './thread-os.ts'
import type { ThreadsSnapshot } from '../../view/view.ts'

type EngineThread = ThreadsSnapshot['engineThreads'][number]
type ThreadState = EngineThread['state']

export interface DumpedThread {
  /** The name given to the `Worker`; the thread has it in the operating system, too. */
  readonly name: string
  readonly role: 'engine' | 'lane' | 'broker'
  /** `Worker.threadId`. */
  readonly threadId: number
  /** The thread is not there any more; another one may take its place. */
  readonly ended?: boolean
}

export interface ThreadDumperOptions {
  /** The engine's workers as they are now: an in-place restart may have made new ones. */
  readonly threads: () => readonly DumpedThread[]
  /** The node that a lane is at, by its counters. It is known even when the lane itself cannot be asked. */
  readonly currentNode?: (name: string) => string | null
  /** How long a dump waits for answers of workers that run. Default: 250 milliseconds. */
  readonly budgetMs?: number
}

export interface ThreadDumper {
  /** Makes one dump at a time. A caller that asks while one is under way gets the same. */
  dump(options: { readonly depth: number }): Promise<ThreadsSnapshot>
  close(): void
}

/**
 * The states of the operating system are read twice, this far apart: that tells a thread that waits from one that
 * happened to wait.
 */
const osSampleGapMs = 4
/**
 * JavaScript that had the processor for so long would have answered, the answer's way included: what has it without an
 * answer is native code.
 */
const nativeCpuMs = 200

/** In place of a stack. */
export const endedFrame = '(the thread has ended)'

export function createThreadDumper(options: ThreadDumperOptions): ThreadDumper {
  const { threads, currentNode = () => null, budgetMs = 250 } = options
  const inspector = new WorkerInspector()
  /** Of threads that owe an answer: the time on the processor that they had when they were asked. */
  const owing = new Map<number, number>()
  let running: Promise<ThreadsSnapshot> | undefined

  const dumpAll = async (): Promise<ThreadsSnapshot> => {
    const timestamp = new Date().toISOString()
    const known = threads()
    const first = readOsThreads()
    await sleep(osSampleGapMs)
    const asked = readOsThreads()
    const waited = asleepIn(first, asked)
    let seen = asked
    let asleep: ReadonlySet<string> = new Set()
    const glance = (): ReadonlySet<number> => {
      const now = readOsThreads()
      asleep = asleepIn(seen, now)
      seen = now
      return new Set(known.filter(({ name }) => asleep.has(name)).map(({ threadId }) => threadId))
    }
    const looks = await inspector.look(new Set(known.map(({ threadId }) => threadId)), budgetMs, glance)
    const last = byName(seen)
    const control: EngineThread = {
      name: 'control',
      role: 'control',
      state: 'RUNNABLE',
      currentNode: null,
      stack: currentFrames(maxFrames),
    }
    const before = byName(asked)
    const workers = known.map(({ name, role, threadId, ended }): EngineThread => {
      // Of the states that there are it is the one of a thread that does nothing.
      if (ended === true) return { name, role, state: 'WAITING', currentNode: null, stack: [endedFrame] }
      const look = looks.get(threadId)
      const now = last.get(name)
      const cpuMs = owing.get(threadId) ?? before.get(name)?.cpuMs ?? 0
      if (look === undefined || look.answered) owing.delete(threadId)
      else owing.set(threadId, cpuMs)
      const { state, stack } = judge(look, {
        waited: waited.has(name),
        // One that is woken and waits for a processor is not asleep.
        isBlocked: now === undefined || asleep.has(name) || now.cpuMs - cpuMs >= nativeCpuMs,
        state: now?.state,
      })
      return { name, role, state, currentNode: role === 'lane' ? currentNode(name) : null, stack }
    })
    return { timestamp, engineThreads: [control, ...workers], platformThreads: seen }
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

/** Names of threads asleep both times, with no processor time used in between. All threads of a name have to be. */
function asleepIn(before: readonly OsThread[], after: readonly OsThread[]): ReadonlySet<string> {
  const earlier = new Map(before.map((thread) => [thread.tid, thread]))
  const isAsleep = ({ tid, state, cpuMs }: OsThread): boolean => {
    const then = earlier.get(tid)
    return state === 'WAITING' && then?.state === 'WAITING' && then.cpuMs === cpuMs
  }
  const awake = new Set(after.filter((thread) => !isAsleep(thread)).map(({ name }) => name))
  return new Set(after.map(({ name }) => name).filter((name) => !awake.has(name)))
}

function judge(
  look: Look | undefined,
  os: { readonly waited: boolean; readonly isBlocked: boolean; readonly state: ThreadState | undefined },
): { state: ThreadState; stack: readonly string[] } {
  if (look?.answered === true) {
    const { frames } = look
    return { state: frames.length === 0 || os.waited ? 'WAITING' : 'RUNNABLE', stack: frames }
  }
  // One that runs, or would if a processor were free, only had no time to answer.
  return { state: look !== undefined && os.isBlocked ? 'BLOCKED' : (os.state ?? 'WAITING'), stack: [] }
}
